/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests the server where memory or descriptors run out: the connection that meets it gets its
 * answer late, gets an error, or is closed; the next connection is served.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base.h"
#include "proto/varlink.h"
#include "tests/fault/fault.h"
#include "tests/proto/fixture.h"

#define STATUS "{\"method\":\"io.stackd.Status\"}"

enum { SWEEP_MS = 20 };

static struct server_options options_make(void)
{
	struct server_options options = fixture_options();

	options.idle_timeout_ns = 8 * SWEEP_MS * NS_PER_MS; /* eight sweeps fit into it */
	return options;
}

static void is_served(struct fixture *fixture)
{
	struct peer peer;

	peer_connect(&peer, fixture_path(fixture));
	peer_call(&peer, STATUS);
	json_object_put(peer_reply(&peer));
	peer_close(&peer);
}

/* Accepts an answer, the error Failed, or the end of the connection. */
static void peer_takes(struct peer *peer)
{
	struct json_object *reply, *error;

	if (send(peer->fd, STATUS, sizeof(STATUS), MSG_NOSIGNAL) < 0 || peer_is_closed(peer))
		return;
	reply = peer_reply(peer);
	if (json_object_object_get_ex(reply, "error", &error))
		assert_string_equal(json_object_get_string(error), wire_error_name(ERROR_FAILED));
	json_object_put(reply);
}

static void test_memory(void **state)
{
	struct server_options options = options_make();
	struct peer peer;
	long n, hits = 1;

	for (n = 1; hits > 0; n++) {
		struct fixture *fixture = fixture_start(&options);

		fault_arm(FAULT_MEMORY, n, 1);
		peer_connect(&peer, fixture_path(fixture));
		peer_takes(&peer);
		hits = fault_disarm();
		peer_close(&peer);
		is_served(fixture);
		fixture_stop(fixture);
	}
	assert_in_range(n, 5, 1000);
}

static void test_descriptors(void **state)
{
	struct server_options options = options_make();
	struct fixture *fixture = fixture_start(&options);
	int64_t tries, begin, sweeps;
	struct peer peer;

	begin = clock_ns(CLOCK_MONOTONIC);
	fault_arm(FAULT_ACCEPT, 1, 1000000);
	peer_connect(&peer, fixture_path(fixture));
	peer_call(&peer, STATUS);
	assert_true(peer_is_silent(&peer, 10 * SWEEP_MS));
	tries = fault_disarm();
	/* The server tries again at each sweep only, however long this thread was held up. */
	sweeps = (clock_ns(CLOCK_MONOTONIC) - begin) / (SWEEP_MS * NS_PER_MS) + 1;
	assert_in_range(tries, 2, sweeps + 1);
	json_object_put(peer_reply(&peer));
	assert_int_equal(fixture_stats(fixture).accept_failures, tries);
	peer_close(&peer);
	is_served(fixture);
	fixture_stop(fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_descriptors),
	};

	fault_exempt();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
