/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/service/socket.h"
#include "tests/proto/fixture.h"

/* Tests who has to go when more clients connect than control.max_clients allows. */

enum { ROOT = 0, ALICE = 1001, BOB = 1002 };

#define STATUS	"{\"method\":\"io.stackd.Status\"}"
#define ENDLESS "{\"method\":\"io.stackd.Snapshot\",\"parameters\":{\"probe\":\"endless\"}}"

static atomic_uint user; /* the user as whom clients connect now */
static gid_t query_group;

/* Makes the server believe that clients are of `user`, who is in the group that may query. */
int __real_getsockopt(int fd, int level, int option, void *value, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *len);

int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *len)
{
	int r = __real_getsockopt(fd, level, option, value, len);
	struct ucred *peer = value;

	if (r < 0 || level != SOL_SOCKET || option != SO_PEERCRED)
		return r;
	peer->uid = atomic_load(&user);
	peer->gid = query_group;
	return r;
}

static struct fixture *start(size_t max_clients)
{
	struct server_options options = fixture_options();

	options.max_clients = max_clients;
	return fixture_start(&options);
}

static void check_answered(struct peer *peer)
{
	struct json_object *reply;

	peer_call(peer, STATUS);
	reply = peer_reply(peer);
	reply_get(reply, "parameters", "version");
	json_object_put(reply);
}

static void check_closed(struct peer *peer)
{
	assert_true(peer_is_closed(peer));
	peer_close(peer);
}

/* Connects as a user and waits for an answer, after which the client is idle. */
static void connect_idle(struct fixture *fixture, struct peer *peer, uid_t uid)
{
	atomic_store(&user, uid);
	peer_connect(peer, fixture_path(fixture));
	check_answered(peer);
}

/* Connects as a user and makes a call that is worked on until the client is disconnected. */
static void connect_working(struct fixture *fixture, struct peer *peer, uid_t uid)
{
	struct recorder *recorder = fixture_recorder(fixture);
	int before = atomic_load(&recorder->snapshots);

	atomic_store(&user, uid);
	peer_connect(peer, fixture_path(fixture));
	peer_call(peer, ENDLESS);
	WAIT_FOR(atomic_load(&recorder->snapshots) > before);
	assert_int_equal(atomic_load(&recorder->snapshots), before + 1);
}

/* Connects as a user for whom there is no room. */
static void connect_refused(struct fixture *fixture, uid_t uid)
{
	struct peer peer;

	atomic_store(&user, uid);
	peer_connect(&peer, fixture_path(fixture));
	check_closed(&peer);
	assert_int_equal(fixture_stats(fixture).dropped_uid, uid);
}

static void test_a_crowd_drops_its_own(void **state)
{
	enum { N = 20, MAX = 4 };
	struct fixture *fixture = start(MAX);
	struct peer root, bob, alice[N];

	connect_idle(fixture, &root, ROOT);
	connect_idle(fixture, &bob, BOB);
	for (size_t i = 0; i < N; i++)
		connect_idle(fixture, &alice[i], ALICE);
	/* These two have been idle for longest. */
	check_answered(&root);
	check_answered(&bob);
	for (size_t i = 0; i + 2 < N; i++)
		check_closed(&alice[i]);
	assert_int_equal(fixture_stats(fixture).clients_hits, N + 2 - MAX);
	assert_int_equal(fixture_stats(fixture).dropped_uid, ALICE);
	for (size_t i = N - 2; i < N; i++)
		peer_close(&alice[i]);
	peer_close(&root);
	peer_close(&bob);
	fixture_stop(fixture);
}

static void test_a_crowd_that_works_makes_room(void **state)
{
	struct fixture *fixture = start(4);
	struct peer alice[4], bob[2], root;

	for (size_t i = 0; i < 3; i++)
		connect_working(fixture, &alice[i], ALICE);
	connect_idle(fixture, &alice[3], ALICE);
	connect_idle(fixture, &bob[0], BOB);
	check_closed(&alice[3]); /* the idle one goes first */
	connect_refused(fixture, ALICE);
	connect_idle(fixture, &root, ROOT);
	check_closed(&alice[0]);
	/* Bob would have as many as Alice now, and only his own is idle. */
	connect_idle(fixture, &bob[1], BOB);
	check_closed(&bob[0]);
	connect_refused(fixture, ALICE);
	check_answered(&root);
	check_answered(&bob[1]);
	for (size_t i = 1; i < 3; i++)
		peer_close(&alice[i]);
	peer_close(&bob[1]);
	peer_close(&root);
	fixture_stop(fixture);
}

static void test_one_client_at_a_time(void **state)
{
	struct fixture *fixture = start(1);
	struct peer alice, bob, root, again;

	connect_idle(fixture, &alice, ALICE);
	connect_working(fixture, &bob, BOB);
	check_closed(&alice);
	connect_refused(fixture, ALICE);
	connect_idle(fixture, &root, ROOT);
	check_closed(&bob);
	connect_refused(fixture, ALICE);
	connect_idle(fixture, &again, ROOT);
	check_closed(&root);
	peer_close(&again);
	fixture_stop(fixture);
}

static void test_the_limit_names_the_user(void **state)
{
	struct fixture *fixture = start(1);
	struct json_object *reply;
	const char *effect;
	struct peer alice, root;

	connect_idle(fixture, &alice, ALICE);
	connect_idle(fixture, &root, ROOT);
	check_closed(&alice);
	peer_call(&root, STATUS);
	reply = peer_reply(&root);
	effect = json_object_get_string(
		reply_get(json_object_array_get_idx(reply_get(reply, "parameters", "limits"), 1),
			  "effect", NULL));
	assert_non_null(strstr(effect, "the last one of uid 1001"));
	json_object_put(reply);
	peer_close(&root);
	fixture_stop(fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_crowd_drops_its_own),
		cmocka_unit_test(test_a_crowd_that_works_makes_room),
		cmocka_unit_test(test_one_client_at_a_time),
		cmocka_unit_test(test_the_limit_names_the_user),
	};

	if (server_group_find("daemon", &query_group) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
