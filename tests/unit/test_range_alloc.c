/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/unwind/range_alloc.h"

enum { FIRST = 10, END = 110, ALL = END - FIRST, TAKERS = 20, TURNS = 20000 };

static uint32_t take(struct range_alloc *alloc, uint32_t n)
{
	uint32_t first = 0;

	assert_int_equal(range_alloc_take(alloc, n, &first), 0);
	assert_true(first >= FIRST && first + n <= END);
	return first;
}

/* Whatever the order in which neighbours are freed, they become one range. */
static void test_free_neighbours_are_one(void **state)
{
	static const size_t orders[][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
					    { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
	static const uint32_t lengths[3] = { 20, 30, 50 };
	struct range_alloc alloc;
	uint32_t firsts[3], none;
	size_t i, k;

	assert_int_equal(range_alloc_init(&alloc, FIRST, END), 0);
	for (i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		for (k = 0; k < 3; k++)
			firsts[k] = take(&alloc, lengths[k]);
		assert_int_equal(alloc.used, ALL);
		assert_int_equal(range_alloc_take(&alloc, 1, &none), -ENOSPC);
		for (k = 0; k < 3; k++)
			range_alloc_give(&alloc, firsts[orders[i][k]], lengths[orders[i][k]]);
		assert_int_equal(alloc.used, 0);
		assert_int_equal(alloc.n_free, 1);
		assert_int_equal(alloc.free[0].first, FIRST);
		assert_int_equal(alloc.free[0].n, ALL);
	}
	range_alloc_fini(&alloc);
}

static void test_the_first_range_that_fits(void **state)
{
	struct range_alloc alloc;
	uint32_t a, b, c;

	assert_int_equal(range_alloc_init(&alloc, FIRST, END), 0);
	a = take(&alloc, 10);
	b = take(&alloc, 10);
	c = take(&alloc, 10);
	take(&alloc, 10);
	range_alloc_give(&alloc, a, 10);
	range_alloc_give(&alloc, c, 10);
	assert_int_equal(take(&alloc, 11), FIRST + 40);
	assert_int_equal(take(&alloc, 10), a);
	assert_int_equal(take(&alloc, 4), c);
	assert_int_equal(take(&alloc, 6), c + 4);
	range_alloc_give(&alloc, b, 10);
	range_alloc_fini(&alloc);
}

static void test_no_range_at_all(void **state)
{
	struct range_alloc alloc;
	uint32_t first;

	assert_int_equal(range_alloc_init(&alloc, FIRST, FIRST), 0);
	assert_int_equal(range_alloc_take(&alloc, 1, &first), -ENOSPC);
	range_alloc_fini(&alloc);
}

/* No index is given to two at once, and all are free again at the end. */
static void test_many_turns(void **state)
{
	uint32_t firsts[TAKERS], lengths[TAKERS] = {}, used = 0, i, k;
	unsigned char taken[END] = {};
	struct range_alloc alloc;
	size_t turn, at;

	srand(7);
	assert_int_equal(range_alloc_init(&alloc, FIRST, END), 0);
	for (turn = 0; turn < TURNS; turn++) {
		at = (size_t)rand() % TAKERS;
		if (lengths[at]) {
			range_alloc_give(&alloc, firsts[at], lengths[at]);
			for (k = 0; k < lengths[at]; k++)
				taken[firsts[at] + k] = 0;
			used -= lengths[at];
			lengths[at] = 0;
			continue;
		}
		i = 1 + (uint32_t)rand() % 12;
		if (range_alloc_take(&alloc, i, &firsts[at]))
			continue;
		lengths[at] = i;
		used += i;
		for (k = 0; k < i; k++)
			assert_int_equal(taken[firsts[at] + k]++, 0);
		assert_int_equal(alloc.used, used);
	}
	for (at = 0; at < TAKERS; at++)
		if (lengths[at])
			range_alloc_give(&alloc, firsts[at], lengths[at]);
	assert_int_equal(alloc.used, 0);
	assert_int_equal(alloc.n_free, 1);
	assert_int_equal(take(&alloc, ALL), FIRST);
	range_alloc_fini(&alloc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_free_neighbours_are_one),
		cmocka_unit_test(test_the_first_range_that_fits),
		cmocka_unit_test(test_no_range_at_all),
		cmocka_unit_test(test_many_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
