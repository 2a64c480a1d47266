/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/base/activity.h"

static void test_stuck(void **state)
{
	struct activity reader = { .thread = "reader", .work = "reading" };
	struct activity other = { .thread = "other", .work = "idling", .kind = ACTIVITY_OTHER };
	struct activity_stuck stuck[4];

	assert_int_equal(activity_list_stuck(0, stuck, 4), 0);
	activity_watch(&reader);
	activity_watch(&other);
	assert_int_equal(activity_list_stuck(0, stuck, 4), 0); /* both wait */
	activity_begin(&reader);
	assert_int_equal(activity_list_stuck(3600 * NS_PER_S, stuck, 4), 0);
	atomic_store(&reader.begun_ns, clock_ns(CLOCK_MONOTONIC) - 5 * NS_PER_S);
	assert_int_equal(activity_list_stuck(4 * NS_PER_S, stuck, 4), 1);
	assert_string_equal(stuck[0].thread, "reader");
	assert_string_equal(stuck[0].work, "reading");
	assert_int_equal(stuck[0].kind, ACTIVITY_RECORDING);
	assert_true(stuck[0].ns >= 5 * NS_PER_S);
	activity_begin(&other);
	assert_int_equal(activity_list_stuck(0, stuck, 4), 2);
	assert_int_equal(activity_list_stuck(0, stuck, 1), 1);
	activity_end(&reader);
	assert_int_equal(activity_list_stuck(0, stuck, 4), 1);
	assert_string_equal(stuck[0].thread, "other");
	assert_int_equal(stuck[0].kind, ACTIVITY_OTHER);
	activity_unwatch(&reader);
	activity_unwatch(&other);
	activity_unwatch(&other);
	assert_int_equal(activity_list_stuck(0, stuck, 4), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_stuck) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
