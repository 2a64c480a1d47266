/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/query/aggregate_set.h"

static void test_exact(void **state)
{
	struct aggregate_set set = {};
	uint64_t i;

	assert_int_equal(aggregate_set_count(&set), 0);
	for (i = 0; i < 2 * 5000; i++)
		assert_int_equal(aggregate_set_add(&set, i % 5000, 7, i % 5000 < 20), 0);
	assert_int_equal(aggregate_set_count(&set), 5000);
	assert_int_equal(aggregate_set_marked(&set), 20);
	/* The same id with another start is another member; a mark stays. */
	assert_int_equal(aggregate_set_add(&set, 1, 8, false), 0);
	assert_int_equal(aggregate_set_add(&set, 2, 7, false), 0);
	assert_int_equal(aggregate_set_count(&set), 5001);
	assert_int_equal(aggregate_set_marked(&set), 20);
	aggregate_set_fini(&set);
}

/* Up to its limit the set is exact; a million members are counted within 2 % in bounded memory. */
static void test_many(void **state)
{
	const uint64_t many = 1000000;
	struct aggregate_set set = {};
	uint64_t i;

	for (i = 0; i < many; i++) {
		assert_int_equal(aggregate_set_add(&set, i, i / 3, i % 2), 0);
		if (i + 1 == AGGREGATE_SET_MAX)
			assert_int_equal(aggregate_set_count(&set), AGGREGATE_SET_MAX);
	}
	assert_true(set.capacity <= 2 * AGGREGATE_SET_MAX);
	assert_true(llabs((long long)aggregate_set_count(&set) - (long long)many) < 20000);
	assert_true(llabs((long long)aggregate_set_marked(&set) - (long long)many / 2) < 20000);
	aggregate_set_fini(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
