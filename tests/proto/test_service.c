/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/service/internal.h"
#include "daemon/service/loop.h"
#include "proto/varlink.h"
#include "tests/proto/fixture.h"

#define SNAPSHOT(parameters) "{\"method\":\"io.stackd.Snapshot\",\"parameters\":{" parameters "}}"
#define SNAPSHOT_MORE(parameters) \
	"{\"method\":\"io.stackd.Snapshot\",\"more\":true,\"parameters\":{" parameters "}}"

/* Tests the replies of the service with one well-behaved client. */
struct env {
	struct fixture *fixture;
	struct peer peer;
};

static int setup(void **state)
{
	struct env *env = calloc(1, sizeof(*env));

	env->fixture = fixture_start(NULL);
	peer_connect(&env->peer, fixture_path(env->fixture));
	*state = env;
	return 0;
}

static int teardown(void **state)
{
	struct env *env = *state;

	peer_close(&env->peer);
	fixture_stop(env->fixture);
	free(env);
	return 0;
}

static struct json_object *ask(struct env *env, const char *json)
{
	peer_call(&env->peer, json);
	return peer_reply(&env->peer);
}

static void test_get_info(void **state)
{
	struct json_object *reply = ask(*state, "{\"method\":\"org.varlink.service.GetInfo\"}");
	struct json_object *interfaces = reply_get(reply, "parameters", "interfaces");

	assert_string_equal(json_object_get_string(reply_get(reply, "parameters", "vendor")),
			    "stackd");
	assert_string_equal(json_object_get_string(reply_get(reply, "parameters", "product")),
			    "stackd");
	assert_true(json_object_get_string_len(reply_get(reply, "parameters", "version")) > 0);
	assert_true(json_object_get_string_len(reply_get(reply, "parameters", "url")) > 0);
	assert_int_equal(json_object_array_length(interfaces), 2);
	json_object_put(reply);
}

static void description_is_file(struct env *env, const char *interface, const char *path)
{
	static char expected[65536];
	FILE *file = fopen(path, "r");
	struct json_object *reply;
	char call[256];
	size_t n;

	assert_non_null(file);
	n = fread(expected, 1, sizeof(expected) - 1, file);
	expected[n] = '\0';
	fclose(file);
	assert_true(n > 500 && n < sizeof(expected) - 1);
	snprintf(call, sizeof(call),
		 "{\"method\":\"org.varlink.service.GetInterfaceDescription\","
		 "\"parameters\":{\"interface\":\"%s\"}}",
		 interface);
	reply = ask(env, call);
	assert_string_equal(json_object_get_string(reply_get(reply, "parameters", "description")),
			    expected);
	json_object_put(reply);
}

static void test_descriptions_are_the_files(void **state)
{
	description_is_file(*state, "io.stackd", SOURCE_DIR "/proto/io.stackd.varlink");
	description_is_file(*state, "org.varlink.service",
			    SOURCE_DIR "/proto/org.varlink.service.varlink");
}

static void test_what_there_is_not(void **state)
{
	reply_is_error(ask(*state, "{\"method\":\"io.stackd.Nope\"}"), ERROR_METHOD_NOT_FOUND,
		       "method", "io.stackd.Nope");
	reply_is_error(ask(*state, "{\"method\":\"Nope\"}"), ERROR_METHOD_NOT_FOUND, "method",
		       "Nope");
	reply_is_error(ask(*state, "{\"method\":\"io.stack.Status\"}"), ERROR_INTERFACE_NOT_FOUND,
		       "interface", "io.stack");
	reply_is_error(ask(*state, "{\"method\":\"org.varlink.service.GetInterfaceDescription\","
				   "\"parameters\":{\"interface\":\"io.x\"}}"),
		       ERROR_INTERFACE_NOT_FOUND, "interface", "io.x");
}

static void test_wrong_parameters_are_named(void **state)
{
	reply_is_error(ask(*state, SNAPSHOT("")), ERROR_INVALID_PARAMETER, "parameter", "probe");
	reply_is_error(ask(*state, SNAPSHOT("\"probe\":[]")), ERROR_INVALID_PARAMETER, "parameter",
		       "probe");
	reply_is_error(ask(*state, SNAPSHOT("\"probe\":\"offcpu\",\"filter\":{\"pids\":[1,1.5]}")),
		       ERROR_INVALID_PARAMETER, "parameter", "filter.pids[1]");
	reply_is_error(ask(*state, "{\"method\":\"io.stackd.Windows\","
				   "\"parameters\":{\"since_ns\":\"now\"}}"),
		       ERROR_INVALID_PARAMETER, "parameter", "since_ns");
	reply_is_error(ask(*state, "{\"method\":\"org.varlink.service.GetInterfaceDescription\"}"),
		       ERROR_INVALID_PARAMETER, "parameter", "interface");
}

static void test_refusals_and_failures(void **state)
{
	reply_is_error(ask(*state, SNAPSHOT("\"probe\":\"x\xc3\xa9\"")), ERROR_UNKNOWN_PROBE,
		       "probe", "x\xc3\xa9");
	reply_is_error(ask(*state, SNAPSHOT("\"probe\":\"broken\"")), ERROR_FAILED, "method",
		       "io.stackd.Snapshot");
	/* The connection can still be used. */
	json_object_put(ask(*state, SNAPSHOT("\"probe\":\"offcpu\"")));
}

static void test_every_method_answers(void **state)
{
	static const char *const lists[] = { "Probes",	"probes",  "Sessions", "sessions",
					     "Windows", "windows", "Status",   "problems" };

	for (size_t i = 0; i < ARRAY_SIZE(lists); i += 2) {
		char call[128];
		struct json_object *reply;

		snprintf(call, sizeof(call), "{\"method\":\"io.stackd.%s\"}", lists[i]);
		reply = ask(*state, call);
		assert_true(json_object_is_type(reply_get(reply, "parameters", lists[i + 1]),
						json_type_array));
		json_object_put(reply);
	}
}

static void test_settled_wants_a_process(void **state)
{
	static const char *const calls[] = { "{\"pid\":1}", "{\"pid\":2}" };

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		char call[128];
		struct json_object *reply;

		snprintf(call, sizeof(call), "{\"method\":\"io.stackd.Settled\",\"parameters\":%s}",
			 calls[i]);
		reply = ask(*state, call);
		assert_int_equal(json_object_get_boolean(reply_get(reply, "parameters", "settled")),
				 i == 0);
		json_object_put(reply);
	}
	reply_is_error(ask(*state, "{\"method\":\"io.stackd.Settled\"}"), ERROR_INVALID_PARAMETER,
		       "parameter", "pid");
}

static void test_status_has_all_limits(void **state)
{
	struct json_object *reply = ask(*state, "{\"method\":\"io.stackd.Status\"}");
	struct json_object *limits = reply_get(reply, "parameters", "limits");
	struct json_object *clients = json_object_array_get_idx(limits, 1);

	assert_int_equal(json_object_array_length(limits), 15);
	assert_string_equal(json_object_get_string(reply_get(clients, "name", NULL)),
			    "control.max_clients");
	assert_int_equal(json_object_get_int64(reply_get(clients, "value", NULL)), 64);
	assert_int_equal(json_object_get_int64(reply_get(clients, "used", NULL)), 1);
	json_object_put(reply);
}

static void test_names_become_utf8(void **state)
{
	struct json_object *reply = ask(*state, SNAPSHOT("\"probe\":\"bytes\""));
	struct json_object *row =
		json_object_array_get_idx(reply_get(reply, "parameters", "rows"), 0);

	assert_string_equal(json_object_get_string(reply_get(row, "comm", NULL)),
			    "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
			    "\xef\xbf\xbd\n\"");
	json_object_put(reply);
}

static void row_check(struct json_object *row, size_t i)
{
	struct json_object *frames = reply_get(row, "user", "frames");
	char name[64];

	assert_int_equal(json_object_get_int64(reply_get(row, "count", NULL)), i);
	assert_int_equal(json_object_array_length(frames), FAKE_FRAMES);
	for (size_t f = 0; f < FAKE_FRAMES; f++) {
		snprintf(name, sizeof(name), "function_%zu_of_%zu", f, i);
		assert_string_equal(json_object_get_string(reply_get(
					    json_object_array_get_idx(frames, f), "name", NULL)),
				    name);
	}
}

static bool is_continued(struct json_object *reply)
{
	struct json_object *continues = NULL;

	json_object_object_get_ex(reply, "continues", &continues);
	return json_object_get_boolean(continues);
}

static void test_a_stream_is_the_whole(void **state)
{
	struct env *env = *state;
	size_t rows = 0, replies = 0;
	bool is_more = true;

	peer_call(&env->peer, SNAPSHOT_MORE("\"probe\":\"offcpu\",\"top\":5000,\"window_ns\":7"));
	for (; is_more; replies++) {
		struct json_object *reply = peer_reply(&env->peer);
		struct json_object *part = reply_get(reply, "parameters", "rows");

		is_more = is_continued(reply);
		assert_int_equal(
			json_object_get_int64(reply_get(reply, "parameters", "min_wait_ns")), 7);
		assert_int_equal(
			json_object_get_int64(reply_get(reply_get(reply, "parameters", "totals"),
							"threads", NULL)),
			5000);
		for (size_t i = 0; i < json_object_array_length(part); i++)
			row_check(json_object_array_get_idx(part, i), rows++);
		json_object_put(reply);
	}
	assert_int_equal(rows, 5000);
	assert_true(replies > 10);
	/* No reply is left over, and the connection can still be used. */
	json_object_put(ask(env, SNAPSHOT("\"probe\":\"offcpu\"")));
}

/* Each reply has 64 KiB of rows, and the last of these rows. */
static void test_replies_are_small(void **state)
{
	struct env *env = *state;
	size_t bytes = 0, most = 0;
	bool is_more = true;

	peer_call(&env->peer, SNAPSHOT_MORE("\"probe\":\"offcpu\",\"top\":5000"));
	while (is_more) {
		struct json_object *reply = peer_reply(&env->peer);
		size_t n = strlen(json_object_to_json_string_ext(reply, JSON_C_TO_STRING_PLAIN));

		is_more = is_continued(reply);
		bytes += n;
		most = n > most ? n : most;
		json_object_put(reply);
	}
	assert_true(bytes > 10 << 20);
	assert_in_range(most, 64 << 10, 80 << 10);
}

/*
 * While a client does not read, no more rows are made than fit into the socket. When it goes away,
 * the answer is freed.
 */
static void test_rows_are_made_as_they_are_read(void **state)
{
	struct env *env = *state;
	struct recorder *recorder = fixture_recorder(env->fixture);
	int made = -1, before;
	struct peer slow;

	peer_connect(&slow, fixture_path(env->fixture));
	peer_call(&slow, SNAPSHOT_MORE("\"probe\":\"offcpu\",\"top\":50000"));
	WAIT_FOR(atomic_load(&recorder->rows) > 0);
	do {
		before = made;
		sleep_ms(200);
		made = atomic_load(&recorder->rows);
	} while (made != before);
	assert_in_range(made, 1, 1000);
	/* Others are answered meanwhile. */
	json_object_put(ask(env, SNAPSHOT("\"probe\":\"offcpu\"")));
	for (int i = 0; i < 20; i++)
		json_object_put(peer_reply(&slow));
	assert_true(atomic_load(&recorder->rows) > made + 1);
	peer_close(&slow);
	WAIT_FOR(atomic_load(&recorder->answers) == 0);
	assert_int_equal(atomic_load(&recorder->answers), 0);
	assert_true(atomic_load(&recorder->rows) < 2000);
}

#define LONG_CALL SNAPSHOT_MORE("\"probe\":\"offcpu\",\"top\":50000")

/* Checks one of the limits that the method Status reports. */
static void limit_is(struct env *env, const char *name, int64_t used, int64_t hits)
{
	struct json_object *reply = ask(env, "{\"method\":\"io.stackd.Status\"}");
	struct json_object *limits = reply_get(reply, "parameters", "limits"), *limit = NULL;
	size_t i;

	for (i = 0; i < json_object_array_length(limits); i++) {
		limit = json_object_array_get_idx(limits, i);
		if (strcmp(json_object_get_string(reply_get(limit, "name", NULL)), name) == 0)
			break;
	}
	assert_true(i < json_object_array_length(limits));
	assert_int_equal(json_object_get_int64(reply_get(limit, "used", NULL)), used);
	assert_int_equal(json_object_get_int64(reply_get(limit, "hits", NULL)), hits);
	json_object_put(reply);
}

/* Asks for the status, which has this problem and no other; NULL: it has none. */
static void problem_is(struct env *env, const char *text)
{
	struct json_object *reply = ask(env, "{\"method\":\"io.stackd.Status\"}"), *problems;

	problems = reply_get(reply, "parameters", "problems");
	assert_int_equal(json_object_array_length(problems), text != NULL);
	if (text)
		assert_string_equal(json_object_get_string(json_object_array_get_idx(problems, 0)),
				    text);
	assert_false(text && json_object_get_boolean(reply_get(reply, "parameters", "healthy")));
	json_object_put(reply);
}

static const struct admission_limits wide_limits = {
	.max_long = 64,
	.max_bytes = SIZE_MAX,
	.answer_bytes = 1,
	.max_per_user = 64,
	.max_wait_ns = 3600 * NS_PER_S,
};

/* Limits the number of long answers that are made at the same time, and nothing else. */
static void max_long_set(struct env *env, size_t max)
{
	struct admission_limits limits = wide_limits;

	limits.max_long = max;
	service_set_limits(fixture_service(env->fixture), &limits);
}

/*
 * Only some long answers are made at the same time. The other calls get theirs in the order in
 * which they came, and short answers do not wait.
 */
static void test_long_answers_wait(void **state)
{
	struct env *env = *state;
	struct recorder *recorder = fixture_recorder(env->fixture);
	struct peer peers[6];
	size_t i;

	/* However long this test takes on a busy host, nobody reads too slowly here. */
	fixture_service(env->fixture)->admission.slow_ns = 3600 * NS_PER_S;
	max_long_set(env, 2);
	for (i = 0; i < ARRAY_SIZE(peers); i++) {
		peer_connect(&peers[i], fixture_path(env->fixture));
		peer_call(&peers[i], LONG_CALL);
		if (i < 2)
			json_object_put(peer_reply(&peers[i]));
		else /* It is in the queue before the next one. */
			WAIT_FOR(fixture_service(env->fixture)->admission.waited[PLACE_NO_LONG] ==
				 i - 1);
	}
	for (i = 2; i < ARRAY_SIZE(peers); i++)
		assert_true(peer_is_silent(&peers[i], SERVER_TICK_MS));
	assert_int_equal(atomic_load(&recorder->snapshots), 2);
	json_object_put(ask(env, SNAPSHOT_MORE("\"probe\":\"offcpu\",\"top\":1")));
	json_object_put(ask(env, SNAPSHOT("\"probe\":\"offcpu\"")));
	limit_is(env, "query.max_streams", 2, 4);

	peer_close(&peers[0]);
	json_object_put(peer_reply(&peers[2]));
	assert_true(peer_is_silent(&peers[3], SERVER_TICK_MS));
	/* Who hangs up while it waits leaves the queue. */
	peer_close(&peers[3]);
	peer_close(&peers[1]);
	json_object_put(peer_reply(&peers[4]));
	assert_true(peer_is_silent(&peers[5], SERVER_TICK_MS));
	limit_is(env, "query.max_streams", 2, 4);
	/* A higher limit lets the next one in. */
	max_long_set(env, 3);
	json_object_put(peer_reply(&peers[5]));
	for (i = 2; i < ARRAY_SIZE(peers); i++)
		if (i != 3)
			peer_close(&peers[i]);
	WAIT_FOR(fixture_service(env->fixture)->admission.n_held == 0);
	assert_int_equal(atomic_load(&recorder->answers), 0);
	limit_is(env, "query.max_streams", 0, 4);
}

/* A call that has waited for too long is refused, and told by which setting. */
static void test_who_waits_too_long_is_refused(void **state)
{
	struct env *env = *state;
	struct service *service = fixture_service(env->fixture);
	struct admission_limits limits = wide_limits;
	struct peer peers[2];

	limits.max_bytes = 1; /* one short and one long answer */
	limits.max_wait_ns = 150 * NS_PER_MS;
	service_set_limits(service, &limits);
	peer_connect(&peers[0], fixture_path(env->fixture));
	peer_connect(&peers[1], fixture_path(env->fixture));
	peer_call(&peers[0], LONG_CALL);
	json_object_put(peer_reply(&peers[0]));
	peer_call(&peers[1], LONG_CALL);
	reply_is_error(peer_reply(&peers[1]), ERROR_BUSY, "setting", "query.max_answers");
	limit_is(env, "query.max_wait", 0, 1);
	limit_is(env, "query.max_answers", 1, 1);
	problem_is(env, "1 query was refused because others took too long, the last in the last 10 "
			"minutes: see query.max_answers");
	service->admission.starved_ns -= 601 * NS_PER_S;
	problem_is(env, NULL);
	/* A short answer is possible. The connection can still be used, also for the same call. */
	json_object_put(ask(env, SNAPSHOT("\"probe\":\"offcpu\"")));
	peer_close(&peers[0]);
	WAIT_FOR(service->admission.n_held == 0);
	peer_call(&peers[1], LONG_CALL);
	json_object_put(peer_reply(&peers[1]));
	peer_close(&peers[1]);
}

/* Clients that follow and do not read hold as many answers as others may, and no more are made. */
static void test_deaf_followers(void **state)
{
	struct env *env = *state;
	struct recorder *recorder = fixture_recorder(env->fixture);
	struct admission_limits limits = wide_limits;
	struct peer peers[8];
	size_t i;

	fixture_service(env->fixture)->admission.slow_ns = 3600 * NS_PER_S;
	limits.max_long = 2;
	limits.max_wait_ns = NS_PER_MS; /* not for followers */
	service_set_limits(fixture_service(env->fixture), &limits);
	for (i = 0; i < ARRAY_SIZE(peers); i++) {
		peer_connect(&peers[i], fixture_path(env->fixture));
		peer_call(&peers[i],
			  "{\"method\":\"io.stackd.Follow\",\"more\":true,\"parameters\":{"
			  "\"probe\":\"endless_rows\"}}");
	}
	WAIT_FOR(atomic_load(&recorder->answers) == 2);
	/* The others ask again at each tick. */
	sleep_ms(3 * SERVER_TICK_MS);
	assert_int_equal(atomic_load(&recorder->answers), 2);
	assert_int_equal(atomic_load(&recorder->snapshots), 2);
	/* Whoever goes makes room for another, and none is refused. */
	for (i = 0; i + 2 < ARRAY_SIZE(peers); i++) {
		peer_close(&peers[i]);
		WAIT_FOR(atomic_load(&recorder->answers) <= 2);
	}
	WAIT_FOR(atomic_load(&recorder->answers) == 2);
	limit_is(env, "query.max_wait", 0, 0);
	peer_close(&peers[6]);
	peer_close(&peers[7]);
	/* Those that went while they waited may hold a place until the server notices it. */
	WAIT_FOR(!fixture_service(env->fixture)->admission.waiting &&
		 fixture_service(env->fixture)->admission.n_held == 0);
	assert_int_equal(atomic_load(&recorder->answers), 0);
	limit_is(env, "query.max_streams", 0, 6);
}

/* A client that reads slowly is cut off when others wait, and only then. */
static void test_a_slow_reader_gives_way(void **state)
{
	struct env *env = *state;
	struct service *service = fixture_service(env->fixture);
	struct json_object *reply, *name = NULL;
	struct peer slow, stalled;
	int parts;

	service->admission.slow_ns = 100 * NS_PER_MS;
	max_long_set(env, 1);
	peer_connect(&slow, fixture_path(env->fixture));
	peer_call(&slow, LONG_CALL);
	for (parts = 0; parts < 3; parts++) {
		sleep_ms(200);
		reply = peer_reply(&slow);
		assert_true(is_continued(reply));
		json_object_put(reply);
	}
	peer_connect(&stalled, fixture_path(env->fixture));
	peer_call(&stalled, LONG_CALL);
	do { /* until the parts that were in the socket already are read */
		sleep_ms(400);
		reply = peer_reply(&slow);
		if (json_object_object_get_ex(reply, "error", &name))
			break;
		json_object_put(reply);
	} while (++parts < 50);
	assert_in_range(parts, 3, 49);
	reply_is_error(reply, ERROR_FAILED, "method", "io.stackd.Snapshot");
	json_object_put(peer_reply(&stalled));
	limit_is(env, "slow_reader_ns", 0, 1);
	/* One that does not read at all gets no error, but is disconnected. */
	peer_call(&slow, LONG_CALL);
	json_object_put(peer_reply(&slow));
	limit_is(env, "slow_reader_ns", 0, 2);
	assert_int_equal(fixture_stats(env->fixture).write_timeout_hits, 1);
	peer_close(&slow);
	peer_close(&stalled);
}

/* A query ends when its client hangs up, even if the client has said before that it sends no more.
 */
static void test_hanging_up_ends_a_query(void **state)
{
	struct env *env = *state;
	struct recorder *recorder = fixture_recorder(env->fixture);
	struct peer peers[3];
	size_t i;

	max_long_set(env, 1);
	for (i = 0; i < ARRAY_SIZE(peers); i++) {
		peer_connect(&peers[i], fixture_path(env->fixture));
		peer_call(&peers[i], i == 2 ? SNAPSHOT_MORE("\"probe\":\"endless\"")
					    : SNAPSHOT("\"probe\":\"endless\""));
	}
	WAIT_FOR(atomic_load(&recorder->snapshots) == 3);
	assert_int_equal(atomic_load(&recorder->cancelled), 0);
	peer_close(&peers[0]);
	WAIT_FOR(atomic_load(&recorder->cancelled) == 1);
	assert_int_equal(atomic_load(&recorder->cancelled), 1);
	shutdown(peers[1].fd, SHUT_WR);
	sleep_ms(50);
	assert_int_equal(atomic_load(&recorder->cancelled), 1);
	peer_close(&peers[1]);
	WAIT_FOR(atomic_load(&recorder->cancelled) == 2);
	assert_int_equal(atomic_load(&recorder->cancelled), 2);
	/* Its place is free again. */
	peer_close(&peers[2]);
	peer_call(&env->peer, LONG_CALL);
	json_object_put(peer_reply(&env->peer));
	assert_int_equal(atomic_load(&recorder->cancelled), 3);
	/* A follower's query ends, too, and its place is free. */
	max_long_set(env, 2);
	peer_connect(&peers[0], fixture_path(env->fixture));
	peer_call(&peers[0], "{\"method\":\"io.stackd.Follow\",\"more\":true,\"parameters\":{"
			     "\"probe\":\"endless\"}}");
	WAIT_FOR(atomic_load(&recorder->snapshots) == 5);
	assert_int_equal(fixture_service(env->fixture)->admission.n_long, 2);
	peer_close(&peers[0]);
	WAIT_FOR(atomic_load(&recorder->cancelled) == 4);
	WAIT_FOR(fixture_service(env->fixture)->admission.n_long == 1);
	assert_int_equal(fixture_service(env->fixture)->admission.n_held, 1);
}

/* A query that is to be made again later keeps nobody waiting: neither for a place nor a thread. */
static void test_a_query_is_put_off(void **state)
{
	struct env *env = *state;
	struct recorder *recorder = fixture_recorder(env->fixture);
	struct peer peers[2 * LOOP_WORKERS];

	max_long_set(env, 1);
	atomic_store(&recorder->is_held, true);
	for (size_t i = 0; i < ARRAY_SIZE(peers); i++) {
		peer_connect(&peers[i], fixture_path(env->fixture));
		peer_call(&peers[i], SNAPSHOT_MORE("\"probe\":\"later\""));
	}
	WAIT_FOR(atomic_load(&recorder->snapshots) > 2 * (int)ARRAY_SIZE(peers));
	peer_call(&env->peer, SNAPSHOT_MORE("\"probe\":\"offcpu\""));
	json_object_put(peer_reply(&env->peer));
	assert_true(peer_is_silent(&peers[0], 1));
	atomic_store(&recorder->is_held, false);
	for (size_t i = 0; i < ARRAY_SIZE(peers); i++) {
		json_object_put(peer_reply(&peers[i]));
		peer_close(&peers[i]);
	}
}

/* An answer that is not read in time ends with an error, and its memory is free. */
static void test_an_answer_has_its_time(void **state)
{
	struct env *env = *state;
	struct service *service = fixture_service(env->fixture);
	struct json_object *reply, *name = NULL;
	int parts = 0;

	service->answer_time_ns = 100 * NS_PER_MS;
	peer_call(&env->peer, SNAPSHOT_MORE("\"probe\":\"offcpu\",\"top\":50000"));
	sleep_ms(300);
	for (;; parts++) {
		reply = peer_reply(&env->peer);
		if (json_object_object_get_ex(reply, "error", &name))
			break;
		assert_true(is_continued(reply));
		json_object_put(reply);
	}
	assert_in_range(parts, 1, 50);
	reply_is_error(reply, ERROR_FAILED, "method", "io.stackd.Snapshot");
	WAIT_FOR(atomic_load(&fixture_recorder(env->fixture)->answers) == 0);
	assert_int_equal(atomic_load(&fixture_recorder(env->fixture)->answers), 0);
	assert_int_equal(atomic_load(&service->answer_time_hits), 1);
	/* The connection can still be used. */
	json_object_put(ask(env, SNAPSHOT("\"probe\":\"offcpu\"")));
}

static void test_no_rows_are_one_reply(void **state)
{
	struct json_object *reply = ask(*state, SNAPSHOT_MORE("\"probe\":\"offcpu\",\"top\":0"));

	assert_false(is_continued(reply));
	assert_int_equal(json_object_array_length(reply_get(reply, "parameters", "rows")), 0);
	json_object_put(reply);
}

static void test_too_large_for_one_reply(void **state)
{
	struct env *env = *state;

	reply_is_error(ask(env, SNAPSHOT("\"probe\":\"offcpu\",\"top\":5000")), ERROR_EXPECTED_MORE,
		       NULL, NULL);
	reply_is_error(ask(env, SNAPSHOT("\"probe\":\"offcpu\",\"top\":1,\"ranges\":[{"
					 "\"since_ns\":1}]")),
		       ERROR_EXPECTED_MORE, NULL, NULL);
	reply_is_error(ask(env, SNAPSHOT("\"probe\":\"offcpu\",\"top\":1,\"stacks_once\":true")),
		       ERROR_EXPECTED_MORE, NULL, NULL);
	json_object_put(ask(env, SNAPSHOT("\"probe\":\"offcpu\",\"top\":100")));
	fixture_recorder(env->fixture)->windows = 20000;
	reply_is_error(ask(env, "{\"method\":\"io.stackd.Windows\"}"), ERROR_EXPECTED_MORE, NULL,
		       NULL);
}

static void test_windows_stream(void **state)
{
	struct env *env = *state;
	int64_t n = 0;
	bool is_more = true;

	fixture_recorder(env->fixture)->windows = 20000;
	peer_call(&env->peer, "{\"method\":\"io.stackd.Windows\",\"more\":true}");
	while (is_more) {
		struct json_object *reply = peer_reply(&env->peer);
		struct json_object *part = reply_get(reply, "parameters", "windows");

		is_more = is_continued(reply);
		for (size_t i = 0; i < json_object_array_length(part); i++)
			assert_int_equal(json_object_get_int64(reply_get(
						 json_object_array_get_idx(part, i), "seq", NULL)),
					 n++);
		json_object_put(reply);
	}
	assert_int_equal(n, 20000);
}

static void large_row_is_cut(struct env *env, const char *request)
{
	size_t rows = 0;
	bool is_more = true;

	peer_call(&env->peer, request);
	while (is_more) {
		struct json_object *reply = peer_reply(&env->peer);
		struct json_object *part = reply_get(reply, "parameters", "rows");

		is_more = is_continued(reply);
		for (size_t i = 0; i < json_object_array_length(part); i++, rows++) {
			struct json_object *row = json_object_array_get_idx(part, i);
			struct json_object *flags = reply_get(row, "user", "flags");
			struct json_object *frames = reply_get(row, "user", "frames");

			assert_int_equal(json_object_array_length(flags), rows == 1);
			if (rows != 1)
				continue;
			assert_string_equal(
				json_object_get_string(json_object_array_get_idx(flags, 0)),
				"truncated");
			assert_in_range(json_object_array_length(frames), 1, FAKE_FRAMES - 1);
		}
		json_object_put(reply);
	}
	assert_int_equal(rows, 3);
}

static void test_a_row_too_large_is_cut_and_marked(void **state)
{
	large_row_is_cut(*state, SNAPSHOT_MORE("\"probe\":\"large\",\"top\":3"));
	large_row_is_cut(*state,
			 SNAPSHOT_MORE("\"probe\":\"large\",\"top\":3,\"stacks_once\":true"));
}

/* Each reply of a stream continues, also where a row had to be truncated. */
static void test_a_row_too_large_ends_no_stream(void **state)
{
	struct env *env = *state;
	struct json_object *reply;
	size_t rows;

	peer_call(&env->peer, "{\"method\":\"io.stackd.Follow\",\"more\":true,"
			      "\"parameters\":{\"probe\":\"large\"}}");
	for (rows = 0; rows < 2;) {
		reply = peer_reply(&env->peer);
		assert_true(is_continued(reply));
		rows += json_object_array_length(reply_get(reply, "parameters", "rows"));
		json_object_put(reply);
	}
	assert_int_equal(rows, 2);
}

/* Queries are answered while more sessions are being started than there are threads. */
static void test_beginnings_leave_room(void **state)
{
	static const char start[] =
		"{\"method\":\"io.stackd.Start\",\"parameters\":{\"probe\":\"slow\"}}";
	struct env *env = *state;
	struct recorder *recorder = fixture_recorder(env->fixture);
	struct peer peers[2 * LOOP_WORKERS];
	size_t i;

	atomic_store(&recorder->is_held, true);
	for (i = 0; i < ARRAY_SIZE(peers); i++) {
		peer_connect(&peers[i], fixture_path(env->fixture));
		peer_call(&peers[i], start);
	}
	WAIT_FOR(atomic_load(&recorder->starting) > 0);
	/* Meanwhile the calls that wait are tried again. */
	sleep_ms(3 * SERVER_TICK_MS);
	json_object_put(ask(env, "{\"method\":\"io.stackd.Status\"}"));
	assert_in_range(atomic_load(&recorder->starting), 1, LOOP_WORKERS - 1);
	atomic_store(&recorder->is_held, false);
	for (i = 0; i < ARRAY_SIZE(peers); i++) {
		reply_is_error(peer_reply(&peers[i]), ERROR_NOT_SUPPORTED, "what", "sessions");
		peer_close(&peers[i]);
	}
}

/* One user who is not root leaves places for the slow calls of others. */
static void test_slow_calls_of_one_user(void **state)
{
	struct slow_calls slow = { .lock = PTHREAD_MUTEX_INITIALIZER };
	struct slow_call *calls[SLOW_AT_ONCE];
	size_t i;

	for (i = 0; i < SLOW_PER_USER; i++)
		assert_non_null(calls[i] = slow_begin(&slow, 1000));
	assert_null(slow_begin(&slow, 1000));
	for (; i < SLOW_AT_ONCE; i++)
		assert_non_null(calls[i] = slow_begin(&slow, 0));
	assert_null(slow_begin(&slow, 0));
	assert_null(slow_begin(&slow, 1001));
	slow_end(&slow, calls[0]);
	assert_non_null(calls[0] = slow_begin(&slow, 1001));
	assert_null(slow_begin(&slow, 1000)); /* no place is free */
	for (i = 0; i < SLOW_AT_ONCE; i++)
		slow_end(&slow, calls[i]);
	for (i = 0; i < SLOW_AT_ONCE; i++) /* root may have all */
		assert_non_null(calls[i] = slow_begin(&slow, 0));
}

/* A Start with oneway has to wait for its turn, too, and then gets it. */
static void test_a_beginning_without_a_reply(void **state)
{
	static const char start[] =
		"{\"method\":\"io.stackd.Start\",\"parameters\":{\"probe\":\"slow\"}}";
	struct env *env = *state;
	struct recorder *recorder = fixture_recorder(env->fixture);
	struct peer peers[LOOP_WORKERS / 2];
	size_t i;

	atomic_store(&recorder->is_held, true);
	for (i = 0; i < ARRAY_SIZE(peers); i++) {
		peer_connect(&peers[i], fixture_path(env->fixture));
		peer_call(&peers[i], start);
	}
	WAIT_FOR(atomic_load(&recorder->starting) == (int)ARRAY_SIZE(peers));
	peer_call(&env->peer, "{\"method\":\"io.stackd.Start\",\"oneway\":true,"
			      "\"parameters\":{\"probe\":\"begins\"}}");
	peer_call(&env->peer, "{\"method\":\"io.stackd.Status\"}");
	sleep_ms(3 * SERVER_TICK_MS);
	assert_int_equal(atomic_load(&recorder->begun), 0);
	atomic_store(&recorder->is_held, false);
	json_object_put(peer_reply(&env->peer));
	assert_int_equal(atomic_load(&recorder->begun), 1);
	for (i = 0; i < ARRAY_SIZE(peers); i++) {
		json_object_put(peer_reply(&peers[i]));
		peer_close(&peers[i]);
	}
}

/* A session is ended again if its client disconnects before the reply can be written. */
static void test_who_starts_and_goes(void **state)
{
	static const char start[] =
		"{\"method\":\"io.stackd.Start\",\"parameters\":{\"probe\":\"begins\"}}";
	struct env *env = *state;
	struct recorder *recorder = fixture_recorder(env->fixture);
	struct json_object *reply;
	struct peer peer;

	atomic_store(&recorder->is_held, true);
	peer_connect(&peer, fixture_path(env->fixture));
	peer_call(&peer, start);
	WAIT_FOR(atomic_load(&recorder->starting) == 1);
	peer_close(&peer);
	WAIT_FOR(fixture_stats(env->fixture).clients == 1);
	assert_int_equal(atomic_load(&recorder->given_up), 0);
	atomic_store(&recorder->is_held, false);
	WAIT_FOR(atomic_load(&recorder->given_up) == 1);
	assert_int_equal(atomic_load(&recorder->given_up), 1);

	/* Not where the reply was written, or not wanted (oneway). */
	reply = ask(env, start);
	assert_string_equal(json_object_get_string(json_object_object_get(
				    reply_get(reply, "parameters", "session"), "id")),
			    "100");
	assert_null(json_object_object_get(reply, "continues"));
	json_object_put(reply);
	peer_call(&env->peer, "{\"method\":\"io.stackd.Start\",\"oneway\":true,"
			      "\"parameters\":{\"probe\":\"begins\"}}");
	json_object_put(ask(env, "{\"method\":\"io.stackd.Status\"}"));
	WAIT_FOR(atomic_load(&recorder->answers) == 0);
	assert_int_equal(atomic_load(&recorder->answers), 0);
	assert_int_equal(atomic_load(&recorder->given_up), 1);
}

static void test_oneway_has_no_reply(void **state)
{
	struct env *env = *state;
	struct json_object *reply;

	peer_call(&env->peer, "{\"method\":\"io.stackd.Snapshot\",\"oneway\":true,"
			      "\"parameters\":{\"probe\":\"offcpu\"}}");
	peer_call(&env->peer, "{\"method\":\"io.stackd.Snapshot\",\"oneway\":true,\"more\":true,"
			      "\"parameters\":{\"probe\":\"offcpu\",\"top\":5000}}");
	peer_call(&env->peer, "{\"method\":\"io.stackd.Nope\",\"oneway\":true}");
	peer_call(&env->peer, "{\"method\":\"io.stackd.Snapshot\",\"oneway\":true}");
	reply = ask(env, "{\"method\":\"io.stackd.Status\"}");
	assert_string_equal(json_object_get_string(reply_get(reply, "parameters", "version")),
			    "fake");
	assert_int_equal(atomic_load(&fixture_recorder(env->fixture)->snapshots), 2);
	json_object_put(reply);
}

static void test_calls_are_answered_in_order(void **state)
{
	struct env *env = *state;

	/* The slow call comes first: the quick ones must wait for it. */
	peer_call(&env->peer, SNAPSHOT("\"probe\":\"slow\",\"window_ns\":0"));
	for (int i = 1; i < 200; i++) {
		char call[128];

		snprintf(call, sizeof(call), SNAPSHOT("\"probe\":\"offcpu\",\"window_ns\":%d"), i);
		peer_call(&env->peer, call);
	}
	for (int i = 0; i < 200; i++) {
		struct json_object *reply = peer_reply(&env->peer);

		assert_int_equal(
			json_object_get_int64(reply_get(reply, "parameters", "min_wait_ns")), i);
		json_object_put(reply);
	}
	assert_true(peer_is_silent(&env->peer, 50));
}

static void test_calls_in_single_bytes(void **state)
{
	static const char call[] = "{\"method\":\"io.stackd.Status\"}";
	struct env *env = *state;

	for (size_t i = 0; i < sizeof(call); i++)
		peer_send(&env->peer, call + i, 1);
	json_object_put(peer_reply(&env->peer));
}

/* Becomes another user in other groups. Returns 0, or which step failed, as an exit status. */
static int become(const gid_t *groups, size_t n)
{
	return setgroups(n, groups) < 0 || setgid(65534) < 0 || setuid(65534) < 0 ? 1 : 0;
}

static int stranger(const char *path)
{
	struct peer peer;
	struct json_object *reply;

	if (become(NULL, 0) != 0)
		return 1;
	peer_connect(&peer, path);
	peer_call(&peer, "{\"method\":\"io.stackd.Status\"}");
	reply = peer_reply(&peer);
	if (strcmp(json_object_get_string(reply_get(reply, "error", NULL)),
		   wire_error_name(ERROR_PERMISSION_DENIED)) != 0)
		return 2;
	if (strcmp(json_object_get_string(reply_get(reply, "parameters", "group")), "daemon") != 0)
		return 4;
	peer_call(&peer, "{\"method\":\"org.varlink.service.GetInfo\"}");
	reply = peer_reply(&peer);
	return json_object_object_get_ex(reply, "error", NULL) ? 3 : 0;
}

/* The query group is a supplementary group of the client, which SO_PEERCRED does not report. */
static int member(const char *path)
{
	const struct group *group = getgrnam("daemon");
	struct peer peer;
	struct json_object *reply;

	if (!group || become(&group->gr_gid, 1) != 0)
		return 1;
	peer_connect(&peer, path);
	peer_call(&peer, "{\"method\":\"io.stackd.Status\"}");
	reply = peer_reply(&peer);
	return json_object_object_get_ex(reply, "error", NULL) ? 2 : 0;
}

static int as_child(int (*run)(const char *path), const char *path)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(run(path));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void test_a_stranger_is_refused(void **state)
{
	struct env *env = *state;
	char *directory = strdup(fixture_path(env->fixture));

	if (geteuid() != 0)
		skip();
	/* Stands for modes that were changed by accident. */
	*strrchr(directory, '/') = '\0';
	assert_int_equal(chmod(directory, 0755), 0);
	assert_int_equal(chmod(fixture_path(env->fixture), 0666), 0);
	assert_int_equal(as_child(stranger, fixture_path(env->fixture)), 0);
	assert_int_equal(as_child(member, fixture_path(env->fixture)), 0);
	free(directory);
}

/* A group is found however many members it has (see __wrap_getgrnam_r()). */
static void test_groups(void **state)
{
	const struct group *group = getgrnam("daemon");
	gid_t gid = 77;

	assert_int_equal(server_group_find("no-such-group", &gid), -ENOENT);
	assert_int_equal(gid, 77);
	assert_non_null(group);
	assert_int_equal(server_group_find("daemon", &gid), 0);
	assert_int_equal(gid, group->gr_gid);
}

/* Root and our own user may do all, others what their groups may. Control includes query. */
static void test_classes(void **state)
{
	struct service service = { .groups = {
					   [METHOD_QUERY] = { "ask", true, 100 },
					   [METHOD_CONTROL] = { "start", true, 200 },
				   } };
	gid_t groups[] = { 100, 200 };
	struct server_peer peer = { .uid = geteuid() + 1, .gid = 7, .groups = groups };
	struct server_peer root = { .uid = 0 };
	static const enum method_class refused[][METHOD_CLASSES] = {
		{ METHOD_OPEN, METHOD_QUERY, METHOD_QUERY },
		{ METHOD_OPEN, METHOD_OPEN, METHOD_CONTROL },
		{ METHOD_OPEN, METHOD_OPEN, METHOD_OPEN },
	};

	for (enum method_class class = METHOD_OPEN; class < METHOD_CLASSES; class ++) {
		for (size_t n = 0; n < ARRAY_SIZE(refused); n++) {
			peer.n_groups = n;
			assert_int_equal(method_refused(&service, &peer, class), refused[n][class]);
		}
		assert_int_equal(method_refused(&service, &root, class), METHOD_OPEN);
	}
	peer.groups = groups + 1; /* in the control group, but not in the query group */
	peer.n_groups = 1;
	assert_int_equal(method_refused(&service, &peer, METHOD_CONTROL), METHOD_QUERY);
	/* A group that does not exist has no members. */
	service.groups[METHOD_QUERY].is_known = false;
	peer.gid = 100;
	assert_int_equal(method_refused(&service, &peer, METHOD_QUERY), METHOD_QUERY);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_get_info),
		TEST(test_descriptions_are_the_files),
		TEST(test_what_there_is_not),
		TEST(test_wrong_parameters_are_named),
		TEST(test_refusals_and_failures),
		TEST(test_every_method_answers),
		TEST(test_settled_wants_a_process),
		TEST(test_status_has_all_limits),
		TEST(test_names_become_utf8),
		TEST(test_a_stream_is_the_whole),
		TEST(test_replies_are_small),
		TEST(test_an_answer_has_its_time),
		TEST(test_rows_are_made_as_they_are_read),
		TEST(test_long_answers_wait),
		TEST(test_who_waits_too_long_is_refused),
		TEST(test_deaf_followers),
		TEST(test_a_slow_reader_gives_way),
		TEST(test_hanging_up_ends_a_query),
		TEST(test_a_query_is_put_off),
		TEST(test_no_rows_are_one_reply),
		TEST(test_too_large_for_one_reply),
		TEST(test_windows_stream),
		TEST(test_a_row_too_large_is_cut_and_marked),
		TEST(test_a_row_too_large_ends_no_stream),
		TEST(test_beginnings_leave_room),
		cmocka_unit_test(test_slow_calls_of_one_user),
		TEST(test_a_beginning_without_a_reply),
		TEST(test_who_starts_and_goes),
		TEST(test_oneway_has_no_reply),
		TEST(test_calls_are_answered_in_order),
		TEST(test_calls_in_single_bytes),
		TEST(test_a_stranger_is_refused),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_classes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
