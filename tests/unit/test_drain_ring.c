/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A ring made of its two positions and one record that is reserved but not yet committed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/drain/ring.h"

enum { BUSY_AT = 100, END = 300, NEVER = 1 << 30 };

struct ring {
	uint64_t consumer;
	uint64_t producer;
	int busy_calls; /* the number of reads for which BUSY_AT is still not committed */
	int calls;
};

/* Reads as libbpf does, up to a record that is not committed; meanwhile programs send more. */
static void consume(void *context)
{
	struct ring *ring = context;

	ring->consumer = ring->calls++ < ring->busy_calls ? BUSY_AT : ring->producer;
	ring->producer += 8;
}

static bool catch_up(struct ring *ring, int64_t timeout_ns)
{
	return ring_catch_up(&ring->consumer, &ring->producer, consume, ring, timeout_ns);
}

static void test_nothing_is_behind_a_busy_record(void **state)
{
	struct ring ring = { .producer = END, .busy_calls = 5 };

	assert_true(catch_up(&ring, 60 * NS_PER_S));
	assert_true(ring.consumer >= END);
	assert_int_equal(ring.calls, 6);
}

/* Records that are sent after the begin do not count, or catching up would never end. */
static void test_the_end_does_not_move(void **state)
{
	struct ring ring = { .producer = END };

	assert_true(catch_up(&ring, 60 * NS_PER_S));
	assert_int_equal(ring.calls, 1);
	ring = (struct ring){ .consumer = END, .producer = END, .busy_calls = NEVER };
	assert_false(catch_up(&ring, 0));
}

static void test_a_record_that_is_never_committed(void **state)
{
	struct ring ring = { .producer = END, .busy_calls = NEVER };

	assert_false(catch_up(&ring, NS_PER_MS));
	assert_int_equal(ring.consumer, BUSY_AT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_behind_a_busy_record),
		cmocka_unit_test(test_the_end_does_not_move),
		cmocka_unit_test(test_a_record_that_is_never_committed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
