/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/query/time_range.h"

/* Times in seconds since the epoch; no clock is read. */
#define S(seconds) ((int64_t)(seconds)*NS_PER_S)

enum { NOW = 10000, BEGAN = 9000 };

static const struct session_info always = { .is_always = true };
static const struct session_info client = { .since_real_ns = (int64_t)BEGAN * 1000000000 };

static struct query_range range;
static struct wire_error error;

static struct wire_snapshot_request request_of(int64_t since_ns, int64_t until_ns,
					       int64_t window_ns)
{
	return (struct wire_snapshot_request){
		.since_ns = since_ns,
		.until_ns = until_ns,
		.window_ns = window_ns,
	};
}

static int resolve(const struct session_info *info, int64_t ended_ns, int64_t since_ns,
		   int64_t until_ns, int64_t window_ns)
{
	const struct wire_snapshot_request request = request_of(since_ns, until_ns, window_ns);

	range = (struct query_range){};
	wire_error_clear(&error);
	return query_range_resolve(&request, info, ended_ns, S(NOW), &range, &error);
}

static void assert_range(int64_t since_s, int64_t until_s)
{
	assert_int_equal(range.since, S(since_s));
	assert_int_equal(range.until, S(until_s));
}

static void assert_invalid(int r, const char *field)
{
	assert_int_equal(r, -EINVAL);
	assert_string_equal(error.what, field);
	wire_error_clear(&error);
}

static void test_nothing_given_is_the_last_30_seconds(void **state)
{
	assert_int_equal(resolve(&always, INT64_MAX, WIRE_ABSENT, WIRE_ABSENT, WIRE_ABSENT), 0);
	assert_range(NOW - 30, NOW);
	assert_true(range.is_to_now && range.is_length);
	assert_false(range.is_whole);
}

static void test_a_length_up_to_now(void **state)
{
	assert_int_equal(resolve(&always, INT64_MAX, WIRE_ABSENT, WIRE_ABSENT, S(100)), 0);
	assert_range(NOW - 100, NOW);
	assert_int_equal(resolve(&always, INT64_MAX, WIRE_ABSENT, WIRE_ABSENT, INT64_MAX), 0);
	assert_range(0, NOW);
	assert_invalid(resolve(&always, INT64_MAX, WIRE_ABSENT, WIRE_ABSENT, 0), "window_ns");
	assert_invalid(resolve(&always, INT64_MAX, S(1), WIRE_ABSENT, S(1)), "window_ns");
	assert_invalid(resolve(&always, INT64_MAX, WIRE_ABSENT, S(1), S(1)), "window_ns");
}

static void test_since_and_until(void **state)
{
	assert_int_equal(resolve(&always, INT64_MAX, S(NOW - 60), S(NOW - 50), WIRE_ABSENT), 0);
	assert_range(NOW - 60, NOW - 50);
	assert_false(range.is_to_now || range.is_length);
	assert_int_equal(resolve(&always, INT64_MAX, S(NOW - 60), S(NOW + 5), WIRE_ABSENT), 0);
	assert_range(NOW - 60, NOW);
	assert_true(range.is_to_now);
	assert_int_equal(resolve(&always, INT64_MAX, WIRE_ABSENT, S(NOW - 50), WIRE_ABSENT), 0);
	assert_range(NOW - 80, NOW - 50);
}

static void test_times_that_make_no_range(void **state)
{
	assert_invalid(resolve(&always, INT64_MAX, S(5), S(5), WIRE_ABSENT), "since_ns");
	assert_invalid(resolve(&always, INT64_MAX, S(NOW + 1), WIRE_ABSENT, WIRE_ABSENT),
		       "since_ns");
	assert_invalid(resolve(&always, INT64_MAX, -1, WIRE_ABSENT, WIRE_ABSENT), "since_ns");
	assert_invalid(resolve(&always, INT64_MAX, WIRE_ABSENT, -1, WIRE_ABSENT), "until_ns");
}

static void test_all_of_a_session(void **state)
{
	assert_int_equal(resolve(&client, INT64_MAX, WIRE_ABSENT, WIRE_ABSENT, WIRE_ABSENT), 0);
	assert_range(BEGAN, NOW);
	assert_true(range.is_whole && range.is_to_now);
	assert_int_equal(resolve(&client, S(BEGAN + 7), WIRE_ABSENT, WIRE_ABSENT, WIRE_ABSENT), 0);
	assert_range(BEGAN, BEGAN + 7);
	assert_true(range.is_whole && range.is_to_now);
}

static void test_a_session_ends_the_range(void **state)
{
	assert_int_equal(resolve(&client, S(BEGAN + 7), S(BEGAN + 2), S(NOW - 1), WIRE_ABSENT), 0);
	assert_range(BEGAN + 2, BEGAN + 7);
	assert_true(range.is_to_now);
	assert_false(range.is_whole);
	assert_invalid(resolve(&client, S(BEGAN + 7), S(BEGAN + 8), WIRE_ABSENT, WIRE_ABSENT),
		       "since_ns");
}

/* The clock was set back to before the session's start: its windows will make the range. */
static void test_a_session_that_seems_to_begin_later(void **state)
{
	const struct session_info info = { .since_real_ns = S(NOW + 100) };

	assert_int_equal(resolve(&info, INT64_MAX, WIRE_ABSENT, WIRE_ABSENT, WIRE_ABSENT), 0);
	assert_true(range.is_whole);
	assert_int_equal(range.since, S(NOW) - 1);
	assert_int_equal(range.until, S(NOW));
}

/* A range of a given length moves as a whole, so that it has that length. */
static void test_a_length_ends_at_the_newest_window(void **state)
{
	range = (struct query_range){ .since = S(70), .until = S(100), .is_length = true };
	query_range_align(&range, S(98), S(2));
	assert_range(68, 98);
	query_range_align(&range, S(98), S(2));
	assert_range(68, 98);
}

/* Where the request gave the start, the start stays. */
static void test_a_start_stays(void **state)
{
	range = (struct query_range){ .since = S(70), .until = S(100) };
	query_range_align(&range, S(98), S(2));
	assert_range(70, 98);
	range = (struct query_range){ .since = S(99), .until = S(100) };
	query_range_align(&range, S(98), S(2));
	assert_range(99, 100);
}

/* A range up to now that ends before it leaves out a window that is too young, not a late one. */
static void test_what_is_left_out_is_young(void **state)
{
	range = (struct query_range){ .since = S(70), .until = S(100) };
	query_range_align(&range, S(98), S(2));
	assert_false(range.is_before_now);
	range = (struct query_range){ .since = S(70), .until = S(100), .is_to_now = true };
	query_range_align(&range, S(100), S(2));
	assert_false(range.is_before_now);
	query_range_align(&range, S(98), S(2));
	assert_true(range.is_before_now);
	range = (struct query_range){ .since = S(99),
				      .until = S(100),
				      .is_to_now = true,
				      .is_length = true,
				      .is_late = true };
	query_range_fall_back(&range, S(96));
	assert_false(range.is_before_now);
}

/* If windows are late, the range has a gap at its end, rather than older windows. */
static void test_late_windows_leave_a_gap(void **state)
{
	range = (struct query_range){ .since = S(70), .until = S(100), .is_length = true };
	query_range_align(&range, S(98) - 1, S(2));
	assert_range(70, 100);
	query_range_align(&range, S(101), S(2));
	assert_range(70, 100);
}

/* A question about the last second has an answer even if windows are some seconds late. */
static void test_late_windows_answer_for_a_short_length(void **state)
{
	const struct query_range asked = {
		.since = S(99),
		.until = S(100),
		.is_length = true,
		.is_to_now = true,
	};

	range = asked;
	query_range_fall_back(&range, S(96));
	assert_range(95, 96);
	range = asked;
	query_range_fall_back(&range, 0);
	assert_range(99, 100);
	range.since = S(70);
	query_range_fall_back(&range, S(96));
	assert_range(70, 100);
	range = asked;
	range.is_length = false;
	query_range_fall_back(&range, S(96));
	assert_range(99, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_given_is_the_last_30_seconds),
		cmocka_unit_test(test_a_length_up_to_now),
		cmocka_unit_test(test_since_and_until),
		cmocka_unit_test(test_times_that_make_no_range),
		cmocka_unit_test(test_all_of_a_session),
		cmocka_unit_test(test_a_session_ends_the_range),
		cmocka_unit_test(test_a_session_that_seems_to_begin_later),
		cmocka_unit_test(test_a_length_ends_at_the_newest_window),
		cmocka_unit_test(test_a_start_stays),
		cmocka_unit_test(test_what_is_left_out_is_young),
		cmocka_unit_test(test_late_windows_leave_a_gap),
		cmocka_unit_test(test_late_windows_answer_for_a_short_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
