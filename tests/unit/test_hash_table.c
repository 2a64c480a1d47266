/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/hash_table.h"

enum { N = 60000, PLACES_PER_ITEM = 16 };

struct item {
	uint64_t key[2];
	UT_hash_handle hh;
};

/*
 * Returns how many buckets a table has for N keys at this distance from each other, in their first
 * or second word.
 */
static unsigned places(uint64_t step, size_t word)
{
	struct item *items = calloc(N, sizeof(*items)), *table = NULL, *found;
	const size_t size = (word + 1) * sizeof(uint64_t);
	unsigned n;

	assert_non_null(items);
	for (size_t i = 0; i < N; i++) {
		items[i].key[word] = (i + 1) * step;
		HASH_ADD(hh, table, key, size, &items[i]);
		assert_true(HASH_HAS(&items[i]));
	}
	for (size_t i = 0; i < N; i++) {
		HASH_FIND(hh, table, items[i].key, size, found);
		assert_ptr_equal(found, &items[i]);
	}
	n = table->hh.tbl->num_buckets;
	HASH_CLEAR(hh, table);
	free(items);
	return n;
}

static void test_numbers_in_turn_are_spread(void **state)
{
	(void)state;
	for (uint64_t step = 1; step <= UINT64_C(1) << 44; step *= 16) {
		assert_in_range(places(step, 0), N / 5, PLACES_PER_ITEM * N);
		assert_in_range(places(step, 1), N / 5, PLACES_PER_ITEM * N);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_in_turn_are_spread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
