/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists of long waits with their holders: merged, limited, searched, stored and read. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/store/held_section.h"

#define REAL_NS (INT64_C(1700000000) * NS_PER_S)

enum { TID = 4711 };

/* Puts a wait that began `since` seconds after REAL_NS and was seen last `ns` later. */
static void put(struct window_held *held, int32_t tid, int64_t since, int64_t ns,
		enum wait_reason reason, const char *object)
{
	struct held_wait wait = {
		.pid = tid,
		.tid = tid,
		.comm = "waiter",
		.since_ns = REAL_NS + since * NS_PER_S,
		.looked_ns = object ? REAL_NS + (since + 1) * NS_PER_S : 0,
		.last_ns = REAL_NS + since * NS_PER_S + ns,
		.reason = reason,
		.object = object ? strdup(object) : NULL,
	};

	assert_int_equal(window_held_put(held, &wait), 0);
}

static const struct held_wait *find(const struct window_held *held, int32_t tid, int64_t since)
{
	return window_held_find(held, tid, REAL_NS + since * NS_PER_S);
}

static void test_waits_are_found_by_thread_and_start(void **state)
{
	struct window_held held = {};

	put(&held, TID + 1, 10, NS_PER_S, REASON_FLOCK, "/b");
	put(&held, TID, 20, NS_PER_S, REASON_FLOCK, "/c");
	put(&held, TID, 10, NS_PER_S, REASON_FLOCK, "/a");
	assert_int_equal(held.n, 3);
	assert_string_equal(find(&held, TID, 10)->object, "/a");
	assert_string_equal(find(&held, TID, 20)->object, "/c");
	assert_string_equal(find(&held, TID + 1, 10)->object, "/b");
	assert_null(find(&held, TID, 11));
	assert_null(find(&held, TID, 9));
	assert_null(find(&held, TID - 1, 10));
	assert_null(find(&held, TID + 2, 10));
	/* A clock that was set a bit in between makes no other wait. */
	assert_ptr_equal(window_held_find(&held, TID, REAL_NS + 10 * NS_PER_S + 400 * NS_PER_MS),
			 find(&held, TID, 10));
	assert_ptr_equal(window_held_find(&held, TID, REAL_NS + 10 * NS_PER_S - 400 * NS_PER_MS),
			 find(&held, TID, 10));
	window_held_fini(&held);
	assert_int_equal(held.n, 0);
}

static void test_moments(void **state)
{
	struct window_held held = {};

	put(&held, TID, 10, 5 * NS_PER_S, REASON_FLOCK, "/a");
	put(&held, TID, 30, 5 * NS_PER_S, REASON_FLOCK, "/b");
	assert_null(window_held_at(&held, TID, REAL_NS + 10 * NS_PER_S - 1));
	assert_string_equal(window_held_at(&held, TID, REAL_NS + 10 * NS_PER_S)->object, "/a");
	assert_string_equal(window_held_at(&held, TID, REAL_NS + 15 * NS_PER_S)->object, "/a");
	assert_null(window_held_at(&held, TID, REAL_NS + 15 * NS_PER_S + 1));
	assert_string_equal(window_held_at(&held, TID, REAL_NS + 31 * NS_PER_S)->object, "/b");
	assert_null(window_held_at(&held, TID + 1, REAL_NS + 31 * NS_PER_S));
	window_held_fini(&held);
}

/* A wait that several windows have is one: what was looked up last stays, and the last moment. */
static void test_one_wait_of_several_windows(void **state)
{
	struct window_held sum = {}, window = {};

	put(&sum, TID, 10, 9 * NS_PER_S, REASON_FLOCK, NULL);
	put(&window, TID, 10, 4 * NS_PER_S, REASON_FLOCK, "/a");
	assert_int_equal(window_held_add(&sum, &window), 0);
	window_held_fini(&window);
	assert_int_equal(sum.n, 1);
	assert_string_equal(sum.v[0].object, "/a");
	assert_int_equal(sum.v[0].last_ns, REAL_NS + 19 * NS_PER_S);
	/* A later window, and an earlier one. */
	put(&window, TID, 10, 20 * NS_PER_S, REASON_FLOCK, "/later");
	window.v[0].looked_ns += 5;
	assert_int_equal(window_held_add(&sum, &window), 0);
	window_held_fini(&window);
	put(&window, TID, 10, 5 * NS_PER_S, REASON_FLOCK, "/a");
	assert_int_equal(window_held_add(&sum, &window), 0);
	window_held_fini(&window);
	assert_int_equal(sum.n, 1);
	assert_string_equal(sum.v[0].object, "/later");
	assert_int_equal(sum.v[0].last_ns, REAL_NS + 30 * NS_PER_S);
	window_held_fini(&sum);
}

static void test_limit_keeps_locks_and_long_waits(void **state)
{
	struct window_held held = {};
	int i;

	for (i = 0; i < 10; i++)
		put(&held, TID + i, 10, (i + 1) * NS_PER_S, REASON_PIPE_READ, "pipe 17");
	put(&held, TID + 10, 10, NS_PER_S, REASON_MUTEX, "0x7f00");
	window_held_limit(&held, 3);
	assert_int_equal(held.n, 3);
	assert_non_null(find(&held, TID + 10, 10));
	assert_non_null(find(&held, TID + 9, 10));
	assert_non_null(find(&held, TID + 8, 10));
	assert_null(find(&held, TID, 10));
	window_held_fini(&held);
}

static void test_a_sum_has_a_limit(void **state)
{
	struct window_held held = {};
	int i;

	for (i = 0; i < HELD_SUM_MAX + 5; i++)
		put(&held, 1 + i, 10, NS_PER_S, REASON_FLOCK, "/a");
	assert_int_equal(held.n, HELD_SUM_MAX);
	assert_int_equal(held.dropped, 5);
	assert_true(window_held_bytes(&held) >= HELD_SUM_MAX * (sizeof(struct held_wait) + 3));
	window_held_fini(&held);
}

static void held_make(struct window_held *held)
{
	struct held_wait *wait;

	put(held, TID, 10, 5 * NS_PER_S, REASON_FLOCK, "/run/lock\n\xff");
	wait = &held->v[0];
	wait->unknown = strdup("why");
	wait->more = 7;
	wait->n_by = HELD_BY_MAX;
	for (int i = 0; i < HELD_BY_MAX; i++)
		wait->by[i] = (struct held_by){ .pid = 100 + i, .tid = i };
	memset(wait->by[0].comm, 'x', sizeof(wait->by[0].comm));
	put(held, TID + 1, 12, 3 * NS_PER_S, REASON_SLEEP, NULL);
}

static void test_stored_and_read(void **state)
{
	_cleanup_(bytes_fini) struct bytes bytes = {};
	struct window_held held = {}, back;
	struct window window = {};
	struct bytes_reader in;
	size_t i;

	held_make(&held);
	store_held_encode(&(struct window){ .held = held }, &bytes);
	assert_false(bytes.is_failed);
	in = (struct bytes_reader){ .at = bytes.data, .end = bytes.data + bytes.n };
	assert_int_equal(store_held_decode(&in, &window), 0);
	back = window.held;
	assert_int_equal(bytes_left(&in), 0);
	assert_int_equal(back.n, held.n);
	for (i = 0; i < held.n; i++) {
		struct held_wait *a = &held.v[i], *b = &back.v[i];

		assert_int_equal(!a->object, !b->object);
		assert_int_equal(!a->unknown, !b->unknown);
		if (a->object)
			assert_string_equal(a->object, b->object);
		if (a->unknown)
			assert_string_equal(a->unknown, b->unknown);
		assert_memory_equal(a->comm, b->comm, sizeof(a->comm));
		assert_memory_equal(a->by, b->by, sizeof(a->by));
		assert_int_equal(a->since_ns, b->since_ns);
		assert_int_equal(a->looked_ns, b->looked_ns);
		assert_int_equal(a->last_ns, b->last_ns);
		assert_int_equal(a->reason, b->reason);
		assert_int_equal(a->n_by, b->n_by);
		assert_int_equal(a->more, b->more);
	}
	window_held_fini(&held);
	window_held_fini(&back);
}

static int decode(const uint8_t *data, size_t n)
{
	struct bytes_reader in = { .at = data, .end = data + n };
	struct window window = {};
	int r = store_held_decode(&in, &window);
	struct window_held held = window.held;

	for (size_t i = 0; i < held.n; i++)
		assert_true(held.v[i].n_by <= HELD_BY_MAX && held.v[i].tid > 0 &&
			    held.v[i].last_ns >= held.v[i].since_ns);
	window_held_fini(&held);
	return r;
}

static void test_damaged(void **state)
{
	_cleanup_(bytes_fini) struct bytes bytes = {};
	struct window_held held = {};
	size_t i, refused = 0;
	unsigned int bit;

	held_make(&held);
	store_held_encode(&(struct window){ .held = held }, &bytes);
	window_held_fini(&held);
	for (i = 0; i < bytes.n; i++)
		assert_int_equal(decode(bytes.data, i), -EBADMSG);
	for (i = 0; i < bytes.n; i++)
		for (bit = 0; bit < 8; bit++) {
			bytes.data[i] ^= (uint8_t)(1U << bit);
			refused += decode(bytes.data, bytes.n) != 0;
			bytes.data[i] ^= (uint8_t)(1U << bit);
		}
	assert_true(refused > 0);
	assert_int_equal(decode(bytes.data, bytes.n), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waits_are_found_by_thread_and_start),
		cmocka_unit_test(test_moments),
		cmocka_unit_test(test_one_wait_of_several_windows),
		cmocka_unit_test(test_limit_keeps_locks_and_long_waits),
		cmocka_unit_test(test_a_sum_has_a_limit),
		cmocka_unit_test(test_stored_and_read),
		cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
