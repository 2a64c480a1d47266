/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests which numbers a set has, and which tiers it has for each of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/store/id_set.h"

/* Numbers at the edges of pages and of bytes, and far apart. */
static const int64_t edges[] = { 1, 2, 4095, 4096, 4097, 8191, 8192, INT64_C(1) << 40 };

static void numbers_that_were_not_added(void **state)
{
	struct id_set set = {};

	assert_false(id_set_has(&set, 1));
	assert_int_equal(id_set_tiers(&set, 1), 0);
	assert_int_equal(id_set_add(&set, 3, 1), 0);
	assert_false(id_set_has(&set, 2));
	assert_false(id_set_has(&set, 4));
	assert_false(id_set_has(&set, 3 + 4096));
	id_set_clear(&set);
	assert_false(id_set_has(&set, 3));
}

static void each_number_has_its_own_tiers(void **state)
{
	struct id_set set = {};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(edges); i++)
		assert_int_equal(id_set_add(&set, edges[i], (unsigned int)i % 15 + 1), 0);
	for (i = 0; i < ARRAY_SIZE(edges); i++) {
		assert_true(id_set_has(&set, edges[i]));
		assert_int_equal(id_set_tiers(&set, edges[i]), i % 15 + 1);
	}
	id_set_clear(&set);
}

/* A number that is added again keeps the tiers that it had. */
static void tiers_are_added(void **state)
{
	struct id_set set = {};
	unsigned int tier;

	for (tier = 0; tier < ID_SET_TIERS; tier++) {
		assert_int_equal(id_set_add(&set, 7, 1U << tier), 0);
		assert_int_equal(id_set_tiers(&set, 7), (2U << tier) - 1);
	}
	assert_int_equal(id_set_tiers(&set, 6), 0);
	assert_int_equal(id_set_tiers(&set, 8), 0);
	id_set_clear(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_that_were_not_added),
		cmocka_unit_test(each_number_has_its_own_tiers),
		cmocka_unit_test(tiers_are_added),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
