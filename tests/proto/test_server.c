/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base.h"
#include "tests/proto/fixture.h"

enum { STARTERS = 8, ROUNDS = 30 };

#define STATUS "{\"method\":\"io.stackd.Status\"}"
#define STREAM                                              \
	"{\"method\":\"io.stackd.Snapshot\",\"more\":true," \
	"\"parameters\":{\"probe\":\"offcpu\",\"top\":5000}}"

/* Tests the server with bad clients, each beside a good one that must not notice. */
static void good_peer_is_served(struct fixture *fixture)
{
	struct peer peer;

	peer_connect(&peer, fixture_path(fixture));
	peer_call(&peer, STATUS);
	json_object_put(peer_reply(&peer));
	peer_close(&peer);
}

static void test_what_is_not_a_call_closes(void **state)
{
	static const char *const bad[] = {
		"",
		"GET / HTTP/1.1\r\n",
		"{\"method\":",
		"[]",
		"{}",
		"{\"method\":7}",
		"{\"method\":\"io.stackd.Status\",\"parameters\":7}",
		"{\"method\":\"io.stackd.Status\"}}",
		"{\"method\":\"io.stackd.Status\",\"method\":\"io.stackd.Probes\"}",
		"{\"method\":\"io.stackd.\xff\"}",
	};
	struct fixture *fixture = fixture_start(NULL);
	struct peer good;

	peer_connect(&good, fixture_path(fixture));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct peer peer;

		peer_connect(&peer, fixture_path(fixture));
		peer_call(&peer, bad[i]);
		if (!peer_is_closed(&peer))
			fail_msg("not closed after %s", bad[i]);
		peer_close(&peer);
		peer_call(&good, STATUS);
		json_object_put(peer_reply(&good));
	}
	peer_close(&good);
	assert_int_equal(fixture_stats(fixture).bad_messages, ARRAY_SIZE(bad));
	fixture_stop(fixture);
}

static void test_deep_nesting_closes(void **state)
{
	struct fixture *fixture = fixture_start(NULL);
	static char call[200000];
	struct peer peer;

	strcpy(call, "{\"method\":\"io.stackd.Status\",\"parameters\":{\"x\":");
	memset(call + strlen(call), '[', 100000);
	peer_connect(&peer, fixture_path(fixture));
	peer_call(&peer, call);
	assert_true(peer_is_closed(&peer));
	peer_close(&peer);
	good_peer_is_served(fixture);
	fixture_stop(fixture);
}

static void test_a_message_without_end(void **state)
{
	struct fixture *fixture = fixture_start(NULL);
	static char piece[65536];
	struct peer peer;
	size_t sent = 0;

	memset(piece, ' ', sizeof(piece));
	peer_connect(&peer, fixture_path(fixture));
	while (sent < 64 * 1024 * 1024) {
		ssize_t n = send(peer.fd, piece, sizeof(piece), MSG_NOSIGNAL);

		if (n < 0)
			break;
		sent += (size_t)n;
	}
	/* The limit, one read, and the socket's buffers. */
	assert_in_range(sent, 1024 * 1024, 4 * 1024 * 1024);
	peer_close(&peer);
	good_peer_is_served(fixture);
	assert_int_equal(fixture_stats(fixture).message_hits, 1);
	fixture_stop(fixture);
}

static void test_half_a_message_times_out(void **state)
{
	struct server_options options = fixture_options();
	struct fixture *fixture;
	struct peer half, drip, idle;

	options.message_timeout_ns = 300 * NS_PER_MS;
	fixture = fixture_start(&options);
	peer_connect(&idle, fixture_path(fixture));
	peer_connect(&half, fixture_path(fixture));
	peer_connect(&drip, fixture_path(fixture));
	peer_send(&half, "{\"method\"", 9);
	for (int i = 0; i < 30; i++) { /* bytes arrive, but never the end of the message */
		if (send(drip.fd, " ", 1, MSG_NOSIGNAL) < 0)
			break;
		sleep_ms(20);
	}
	assert_true(peer_is_closed(&half));
	assert_true(peer_is_closed(&drip));
	assert_int_equal(fixture_stats(fixture).message_timeout_hits, 2);
	/* A client that sends nothing may stay. */
	peer_call(&idle, STATUS);
	json_object_put(peer_reply(&idle));
	peer_close(&idle);
	peer_close(&half);
	peer_close(&drip);
	fixture_stop(fixture);
}

static void test_the_idle_time_out(void **state)
{
	struct server_options options = fixture_options();
	struct fixture *fixture;
	struct peer idle, slow, busy;

	options.idle_timeout_ns = 1500 * NS_PER_MS;
	fixture = fixture_start(&options);
	peer_connect(&idle, fixture_path(fixture));
	peer_connect(&slow, fixture_path(fixture));
	peer_connect(&busy, fixture_path(fixture));
	/* A client that waits for its answer is not idle, nor is one that calls now and then. */
	peer_call(&slow, "{\"method\":\"io.stackd.Snapshot\",\"parameters\":{\"probe\":\"slow\"}}");
	for (int i = 0; i < 1000 && fixture_stats(fixture).idle_timeout_hits < 2; i++) {
		peer_call(&busy, STATUS);
		json_object_put(peer_reply(&busy));
		sleep_ms(25);
	}
	json_object_put(peer_reply(&slow));
	assert_true(peer_is_closed(&idle));
	WAIT_FOR(fixture_stats(fixture).clients == 0);
	assert_int_equal(fixture_stats(fixture).idle_timeout_hits, 3);
	assert_true(peer_is_closed(&busy));
	peer_close(&idle);
	peer_close(&slow);
	peer_close(&busy);
	good_peer_is_served(fixture);
	fixture_stop(fixture);
}

/* No recording is ended to make room: where all clients record, a new one is turned away. */
static void test_recordings_are_left_alone(void **state)
{
	static const char start[] = "{\"method\":\"io.stackd.Start\",\"more\":true,"
				    "\"parameters\":{\"probe\":\"begins\"}}";
	struct server_options options = fixture_options();
	struct json_object *reply;
	struct fixture *fixture;
	struct peer peers[3], late;
	size_t i;
	bool goes_on;

	options.max_clients = ARRAY_SIZE(peers);
	fixture = fixture_start(&options);
	atomic_store(&fixture_recorder(fixture)->is_running, true);
	for (i = 0; i < ARRAY_SIZE(peers); i++) {
		peer_connect(&peers[i], fixture_path(fixture));
		peer_call(&peers[i], start);
		json_object_put(peer_reply(&peers[i]));
	}
	peer_connect(&late, fixture_path(fixture));
	assert_true(peer_is_closed(&late));
	peer_close(&late);
	assert_int_equal(fixture_stats(fixture).clients, ARRAY_SIZE(peers));
	atomic_store(&fixture_recorder(fixture)->is_running, false);
	for (i = 0; i < ARRAY_SIZE(peers); i++) {
		do {
			reply = peer_reply(&peers[i]);
			goes_on = json_object_object_get(reply, "continues") != NULL;
			json_object_put(reply);
		} while (goes_on);
	}
	/* A client whose recording has ended is disconnected to make room like any other. */
	WAIT_FOR(atomic_load(&fixture_recorder(fixture)->answers) == 0);
	good_peer_is_served(fixture);
	for (i = 0; i < ARRAY_SIZE(peers); i++)
		peer_close(&peers[i]);
	fixture_stop(fixture);
}

static void test_a_client_that_never_reads_is_disconnected(void **state)
{
	struct server_options options = fixture_options();
	struct fixture *fixture;
	struct peer peer;

	options.write_timeout_ns = 300 * NS_PER_MS;
	fixture = fixture_start(&options);
	peer_connect(&peer, fixture_path(fixture));
	for (int i = 0; i < 20; i++)
		peer_call(&peer, STREAM);
	for (int i = 0; i < 400 && fixture_stats(fixture).write_timeout_hits == 0; i++) {
		good_peer_is_served(fixture);
		/* No more than one part of its answer waits for it. */
		assert_true(fixture_stats(fixture).output <= 1024 * 1024);
		sleep_ms(50);
	}
	WAIT_FOR(fixture_stats(fixture).clients == 0 &&
		 atomic_load(&fixture_recorder(fixture)->answers) == 0);
	assert_int_equal(fixture_stats(fixture).write_timeout_hits, 1);
	assert_int_equal(fixture_stats(fixture).output, 0);
	assert_int_equal(fixture_stats(fixture).clients, 0);
	assert_int_equal(atomic_load(&fixture_recorder(fixture)->answers), 0);
	assert_int_equal(atomic_load(&fixture_recorder(fixture)->snapshots), 1);
	peer_close(&peer);
	fixture_stop(fixture);
}

static void test_all_output_is_bounded(void **state)
{
	struct server_options options = fixture_options();
	struct fixture *fixture;
	struct peer peers[16];

	options.max_output = 512 * 1024;
	fixture = fixture_start(&options);
	for (size_t i = 0; i < ARRAY_SIZE(peers); i++) {
		peer_connect(&peers[i], fixture_path(fixture));
		peer_call(&peers[i], STREAM);
	}
	WAIT_FOR(fixture_stats(fixture).output_hits >= 8);
	assert_in_range(fixture_stats(fixture).output_hits, 8, 15);
	assert_true(fixture_stats(fixture).output <= 512 * 1024);
	good_peer_is_served(fixture);
	for (size_t i = 0; i < ARRAY_SIZE(peers); i++)
		peer_close(&peers[i]);
	fixture_stop(fixture);
}

static void test_hanging_up_cancels(void **state)
{
	struct fixture *fixture = fixture_start(NULL);

	for (int i = 0; i < 20; i++) {
		struct peer peer;

		peer_connect(&peer, fixture_path(fixture));
		peer_call(&peer, STREAM);
		peer_call(&peer, STATUS);
		if (i % 2)
			json_object_put(peer_reply(&peer)); /* the first part */
		peer_close(&peer);
	}
	WAIT_FOR(fixture_stats(fixture).clients == 0 &&
		 atomic_load(&fixture_recorder(fixture)->answers) == 0);
	assert_int_equal(fixture_stats(fixture).clients, 0);
	assert_int_equal(fixture_stats(fixture).output, 0);
	assert_int_equal(atomic_load(&fixture_recorder(fixture)->answers), 0);
	good_peer_is_served(fixture);
	fixture_stop(fixture);
}

static void test_stopping_amid_everything(void **state)
{
	struct fixture *fixture = fixture_start(NULL);
	struct peer peers[12];

	for (size_t i = 0; i < ARRAY_SIZE(peers); i++) {
		peer_connect(&peers[i], fixture_path(fixture));
		peer_call(&peers[i], i % 2 ? STREAM
					   : "{\"method\":\"io.stackd.Snapshot\","
					     "\"parameters\":{\"probe\":\"slow\"}}");
	}
	sleep_ms(100);
	fixture_stop(fixture); /* also checks that all answers are freed */
	for (size_t i = 0; i < ARRAY_SIZE(peers); i++)
		peer_close(&peers[i]);
}

static void test_half_closed_is_still_answered(void **state)
{
	struct fixture *fixture = fixture_start(NULL);
	struct peer peer;

	peer_connect(&peer, fixture_path(fixture));
	peer_call(&peer, "{\"method\":\"io.stackd.Snapshot\",\"parameters\":{\"probe\":\"slow\"}}");
	peer_call(&peer, STATUS);
	shutdown(peer.fd, SHUT_WR);
	json_object_put(peer_reply(&peer));
	json_object_put(peer_reply(&peer));
	assert_true(peer_is_closed(&peer));
	peer_close(&peer);
	fixture_stop(fixture);
}

static void test_a_thousand_connections(void **state)
{
	enum { N = 1000, MAX = 64 };
	struct fixture *fixture;
	const struct rlimit files = { 4096, 4096 };
	static struct peer peers[N];
	struct peer busy;
	int closed = 0;

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
	fixture = fixture_start(NULL);
	peer_connect(&busy, fixture_path(fixture));
	for (int i = 0; i < N; i++) {
		peer_connect(&peers[i], fixture_path(fixture));
		if (i % 16 != 0)
			continue;
		/* A client that calls is never the one that was idle for longest. */
		peer_call(&busy, STATUS);
		json_object_put(peer_reply(&busy));
	}
	peer_call(&peers[N - 1], STATUS);
	json_object_put(peer_reply(&peers[N - 1]));
	assert_int_equal(fixture_stats(fixture).clients, MAX);
	assert_int_equal(fixture_stats(fixture).clients_hits, N + 1 - MAX);
	for (int i = 0; i < N; i++) {
		char byte;

		closed += recv(peers[i].fd, &byte, 1, MSG_DONTWAIT) == 0;
	}
	assert_int_equal(closed, N + 1 - MAX);
	peer_call(&busy, STATUS);
	json_object_put(peer_reply(&busy));
	for (int i = 0; i < N; i++)
		peer_close(&peers[i]);
	peer_close(&busy);
	fixture_stop(fixture);
}

static void test_random_bytes(void **state)
{
	struct fixture *fixture = fixture_start(NULL);
	static const char call[] =
		"{\"method\":\"io.stackd.Snapshot\",\"more\":true,\"parameters\":"
		"{\"probe\":\"offcpu\",\"filter\":{\"pids\":[1,2]},\"top\":3}}";

	srand(7);
	for (int i = 0; i < 300; i++) {
		char bytes[sizeof(call)];
		struct peer peer;

		memcpy(bytes, call, sizeof(call));
		for (int flips = rand() % 4; flips >= 0; flips--)
			bytes[(size_t)rand() % sizeof(call)] = (char)rand();
		peer_connect(&peer, fixture_path(fixture));
		peer_send(&peer, bytes, sizeof(bytes));
		shutdown(peer.fd, SHUT_WR);
		/* Its replies are valid, and then the server closes the connection. */
		while (!peer_is_closed(&peer))
			json_object_put(peer_reply(&peer));
		peer_close(&peer);
	}
	good_peer_is_served(fixture);
	fixture_stop(fixture);
}

/* Tests what may exist at the socket's path when the server starts to listen. */
static int listen_at(const char *path)
{
	int fd = -1;
	int r = server_socket_listen(path, "no-such-group", &fd);
	struct stat st;

	if (r < 0)
		return r;
	assert_int_equal(server_socket_check(fd), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode, S_IFSOCK | 0660);
	close(fd);
	return 0;
}

static void test_the_path(void **state)
{
	char directory[] = "/tmp/stackd-test-XXXXXX", path[64], target[64], too_long[200];
	struct fixture *fixture = fixture_start(NULL);
	mode_t mask = umask(0077);
	struct stat st;

	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/sock", directory);
	snprintf(target, sizeof(target), "%s/file", directory);
	assert_int_equal(listen_at(path), 0);
	assert_int_equal(listen_at(path), 0); /* leaves a stale socket */
	assert_int_equal(unlink(path), 0);

	close(open(path, O_CREAT | O_WRONLY, 0600));
	assert_int_equal(listen_at(path), -EEXIST);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(rename(path, target), 0);
	assert_int_equal(symlink(target, path), 0);
	assert_int_equal(listen_at(path), -EEXIST);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(unlink(target), 0);

	assert_int_equal(listen_at(fixture_path(fixture)), -EADDRINUSE);
	good_peer_is_served(fixture);

	memset(too_long, 'x', sizeof(too_long) - 1);
	too_long[sizeof(too_long) - 1] = '\0';
	assert_int_equal(listen_at(too_long), -ENAMETOOLONG);
	assert_int_equal(listen_at(""), -EINVAL);
	assert_int_equal(server_socket_check(0) == 0, 0);
	assert_int_equal(rmdir(directory), 0);
	umask(mask);
	fixture_stop(fixture);
}

/* Listens as a daemon does that starts, until `end` is closed; then exits with 0. */
static void starter(const char *path, int begin, int end)
{
	struct pollfd ended = { .fd = end, .events = POLLIN };
	char byte;
	int fd, r;

	read(begin, &byte, 1);
	r = server_socket_listen(path, NULL, &fd);
	if (r == 0)
		poll(&ended, 1, 10000);
	_exit(r == 0 ? 0 : r == -EADDRINUSE ? 1 : 2);
}

/* Starts many at once on a stale socket: for all but one, the path is in use. */
static void start_together(const char *path)
{
	int begin[2], end[2], status;

	assert_int_equal(pipe(begin), 0);
	assert_int_equal(pipe(end), 0);
	for (size_t i = 0; i < STARTERS; i++) {
		if (fork() == 0) {
			close(begin[1]);
			close(end[1]);
			starter(path, begin[0], end[0]);
		}
	}
	close(begin[1]);
	/* The losers exit by themselves, the winner when `end` is closed. */
	for (size_t i = 0; i + 1 < STARTERS; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(WEXITSTATUS(status), 1);
	}
	close(end[1]);
	assert_true(wait(&status) > 0);
	assert_int_equal(WEXITSTATUS(status), 0);
	close(begin[0]);
	close(end[0]);
}

static void test_one_of_many_gets_the_path(void **state)
{
	char directory[] = "/tmp/stackd-test-XXXXXX", path[64];

	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/sock", directory);
	assert_int_equal(listen_at(path), 0);
	for (int round = 0; round < ROUNDS; round++)
		start_together(path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(directory), 0);
}

static void test_the_peer_is_known(void **state)
{
	int pair[2];
	struct server_peer peer;
	gid_t groups[256];
	int n = getgroups(ARRAY_SIZE(groups), groups);

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(server_peer_get(pair[0], &peer), 0);
	assert_int_equal(peer.pid, getpid());
	assert_int_equal(peer.uid, geteuid());
	assert_int_equal(peer.n_groups, n);
	for (int i = 0; i < n; i++)
		assert_true(server_peer_in_group(&peer, groups[i]));
	assert_true(server_peer_in_group(&peer, getegid()));
	assert_false(server_peer_in_group(&peer, 4242424));
	server_peer_fini(&peer);
	close(pair[0]);
	close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_not_a_call_closes),
		cmocka_unit_test(test_deep_nesting_closes),
		cmocka_unit_test(test_a_message_without_end),
		cmocka_unit_test(test_half_a_message_times_out),
		cmocka_unit_test(test_the_idle_time_out),
		cmocka_unit_test(test_recordings_are_left_alone),
		cmocka_unit_test(test_a_client_that_never_reads_is_disconnected),
		cmocka_unit_test(test_all_output_is_bounded),
		cmocka_unit_test(test_hanging_up_cancels),
		cmocka_unit_test(test_stopping_amid_everything),
		cmocka_unit_test(test_half_closed_is_still_answered),
		cmocka_unit_test(test_a_thousand_connections),
		cmocka_unit_test(test_random_bytes),
		cmocka_unit_test(test_the_path),
		cmocka_unit_test(test_one_of_many_gets_the_path),
		cmocka_unit_test(test_the_peer_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
