/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base.h"
#include "tests/proto/fixture.h"

#define STATUS "{\"method\":\"io.stackd.Status\"}"
#define STREAM                                              \
	"{\"method\":\"io.stackd.Snapshot\",\"more\":true," \
	"\"parameters\":{\"probe\":\"offcpu\",\"top\":300}}"

static int64_t rss_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	long size = 0, resident = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%ld %ld", &size, &resident), 2);
	fclose(file);
	return (int64_t)resident * sysconf(_SC_PAGESIZE);
}

/* Clients up to the limit each send half of a message, or leave long answers unread. */
static void greedy_round(struct fixture *fixture, struct peer *good)
{
	enum { N = 60, HALF = 512 * 1024 };
	static char half[HALF];
	static struct peer peers[N];

	memset(half, 'x', sizeof(half));
	for (size_t i = 0; i < N; i++) {
		peer_connect(&peers[i], fixture_path(fixture));
		if (i % 2)
			peer_call(&peers[i], STREAM);
		else
			peer_send(&peers[i], half, sizeof(half));
	}
	peer_call(good, STATUS);
	json_object_put(peer_reply(good));
	for (size_t i = 0; i < N; i++)
		peer_close(&peers[i]);
	WAIT_FOR(fixture_stats(fixture).clients == 1 &&
		 atomic_load(&fixture_recorder(fixture)->answers) == 0);
	assert_int_equal(fixture_stats(fixture).clients, 1);
	assert_int_equal(fixture_stats(fixture).output, 0);
}

static void test_memory_is_given_back(void **state)
{
	enum { REPEATS = 4, SLACK = 4 * 1024 * 1024 };
	struct fixture *fixture = fixture_start(NULL);
	struct peer good;
	int64_t before;

	peer_connect(&good, fixture_path(fixture));
	peer_call(&good, STATUS);
	json_object_put(peer_reply(&good));
	/* The first burst leaves arenas of the workers and pages of code; a leak grows each time.
	 */
	for (int i = 0; i < REPEATS; i++)
		greedy_round(fixture, &good);
	before = rss_bytes();
	for (int i = 0; i < REPEATS; i++)
		greedy_round(fixture, &good);
#ifndef __SANITIZE_ADDRESS__ /* it keeps freed memory */
	WAIT_FOR(rss_bytes() - before < SLACK);
	assert_in_range(rss_bytes(), 0, before + SLACK);
#endif
	peer_close(&good);
	fixture_stop(fixture);
}

static void test_wrong_types(void **state)
{
	static const char *const values[] = { "null", "true",	"7",	     "1.5",
					      "[]",   "[null]", "{\"a\":1}", "\"text\"" };
	static const char *const fields[] = { "probe", "window_ns", "filter", "open", "by",
					      "sort",  "reverse",   "top",    "idle" };
	struct fixture *fixture = fixture_start(NULL);
	struct peer peer;
	char call[256];

	peer_connect(&peer, fixture_path(fixture));
	for (size_t i = 0; i < ARRAY_SIZE(fields) * ARRAY_SIZE(values); i++) {
		const char *field = fields[i / ARRAY_SIZE(values)];
		struct json_object *reply, *error;

		snprintf(call, sizeof(call),
			 "{\"method\":\"io.stackd.Snapshot\",\"parameters\":{%s\"%s\":%s}}",
			 strcmp(field, "probe") == 0 ? "" : "\"probe\":\"offcpu\",", field,
			 values[i % ARRAY_SIZE(values)]);
		peer_call(&peer, call);
		reply = peer_reply(&peer);
		/* A wrong parameter is refused by its name, and the connection goes on. */
		if (json_object_object_get_ex(reply, "error", &error) &&
		    strcmp(json_object_get_string(error), "io.stackd.UnknownProbe") != 0) {
			const char *named =
				json_object_get_string(reply_get(reply, "parameters", "parameter"));

			assert_string_equal(json_object_get_string(error),
					    "org.varlink.service.InvalidParameter");
			assert_int_equal(strncmp(named, field, strlen(field)), 0);
		}
		json_object_put(reply);
	}
	peer_close(&peer);
	assert_int_equal(fixture_stats(fixture).bad_messages, 0);
	fixture_stop(fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_is_given_back),
		cmocka_unit_test(test_wrong_types),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
