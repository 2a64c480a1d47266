/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests how a range is divided into slices; times are in seconds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/query/snapshot_internal.h"

enum { SINCE = 1000, UNTIL = 1060, WINDOWS = 6 };

static struct store_entry entries[WINDOWS];
static struct slices slices;
static bool follows_waits;

/* Divides a range with windows that begin at these times and last 5 s each. */
static void divide(const int *starts, size_t n, int64_t each_ns)
{
	struct timeline_list list = { .entries = entries, .n = n };
	size_t i;

	for (i = 0; i < n; i++) {
		/* The real clock is 100 s ahead of the monotonic one. */
		entries[i].start_ns = (starts[i] - 100) * NS_PER_S;
		entries[i].end_ns = entries[i].start_ns + 5 * NS_PER_S;
		entries[i].real_offset_ns = 100 * NS_PER_S;
	}
	free(slices.v);
	memset(&slices, 0, sizeof(slices));
	slices.question.range.since = SINCE * NS_PER_S;
	slices.question.range.until = UNTIL * NS_PER_S;
	slices.question.follows_waits = follows_waits;
	assert_int_equal(slices_make(&list, each_ns, &slices), 0);
}

static void assert_slice(size_t i, size_t first, size_t end, int64_t since, int64_t until)
{
	assert_in_range(i, 0, slices.n - 1);
	assert_int_equal(slices.v[i].first, first);
	assert_int_equal(slices.v[i].end, end);
	assert_int_equal(slices.v[i].since_ns, since * NS_PER_S);
	assert_int_equal(slices.v[i].until_ns, until * NS_PER_S);
}

static int tear_down(void **state)
{
	free(slices.v);
	slices.v = NULL;
	return 0;
}

static const int starts[] = { 1003, 1008, 1013, 1018 };

static void test_one_slice(void **state)
{
	divide(starts, ARRAY_SIZE(starts), WIRE_ABSENT);
	assert_int_equal(slices.n, 1);
	assert_slice(0, 0, 4, SINCE, UNTIL);
}

static void test_a_slice_for_each_window(void **state)
{
	divide(starts, ARRAY_SIZE(starts), 0);
	assert_int_equal(slices.n, 4);
	assert_slice(0, 0, 1, SINCE, 1008);
	assert_slice(1, 1, 2, 1008, 1013);
	assert_slice(3, 3, 4, 1018, UNTIL);
}

/* The window from 1008 to 1013 has its middle behind 1010, and that from 1018 to 1023 behind 1020.
 */
static void test_a_window_belongs_where_its_middle_is(void **state)
{
	divide(starts, ARRAY_SIZE(starts), 10 * NS_PER_S);
	assert_int_equal(slices.n, 3);
	assert_slice(0, 0, 1, SINCE, 1008);
	assert_slice(1, 1, 3, 1008, 1018);
	assert_slice(2, 3, 4, 1018, UNTIL);
}

/* The time without windows belongs to the slice behind it. */
static void test_a_slice_without_windows(void **state)
{
	static const int late[] = { 1000, 1005, 1045 };

	divide(late, ARRAY_SIZE(late), 10 * NS_PER_S);
	assert_int_equal(slices.n, 2);
	assert_slice(0, 0, 2, SINCE, 1010);
	assert_slice(1, 2, 3, 1010, UNTIL);
}

/*
 * Samples and I/O of an overview are of the time that its waits are of: a window that only touches
 * it is left out, but not the only one.
 */
static void test_windows_beside_the_range(void **state)
{
	static const int around[] = { 996, 1001, 1052, 1059 };

	follows_waits = true;
	divide(around, ARRAY_SIZE(around), WIRE_ABSENT);
	assert_slice(0, 1, 3, 1001, 1059);
	divide(starts, ARRAY_SIZE(starts), WIRE_ABSENT);
	assert_slice(0, 0, 4, SINCE, UNTIL);
	divide(around, 1, WIRE_ABSENT);
	assert_slice(0, 0, 1, SINCE, UNTIL);
	follows_waits = false;
	divide(around, ARRAY_SIZE(around), WIRE_ABSENT);
	assert_slice(0, 0, 4, SINCE, UNTIL);
}

static void test_no_windows(void **state)
{
	divide(NULL, 0, 10 * NS_PER_S);
	assert_int_equal(slices.n, 1);
	assert_slice(0, 0, 0, SINCE, UNTIL);
}

/* The second window was recorded after the first, but before it by the clock. */
static void test_a_clock_that_was_set_back(void **state)
{
	static const int back[] = { 1040, 1020, 1025 };

	divide(back, ARRAY_SIZE(back), 0);
	assert_int_equal(slices.n, 3);
	assert_slice(0, 0, 1, SINCE, 1045);
	assert_slice(1, 1, 2, 1020, 1025);
	assert_slice(2, 2, 3, 1025, UNTIL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windows_beside_the_range),
		cmocka_unit_test(test_one_slice),
		cmocka_unit_test(test_a_slice_for_each_window),
		cmocka_unit_test(test_a_window_belongs_where_its_middle_is),
		cmocka_unit_test(test_a_slice_without_windows),
		cmocka_unit_test(test_no_windows),
		cmocka_unit_test(test_a_clock_that_was_set_back),
	};

	return cmocka_run_group_tests(tests, NULL, tear_down);
}
