/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/base/key_index.h"
#include "daemon/query/aggregate_lacks.h"

enum { MANY = 100000 };

static uint64_t hash_of(uint64_t i)
{
	return key_index_hash(&i, sizeof(i));
}

static void test_memory(void **state)
{
	struct aggregate_lacks lacks;
	size_t mib;

	aggregate_lacks_init(&lacks, 1);
	assert_int_equal(aggregate_lacks_bytes(&lacks), 64 << 10);
	for (mib = 1; mib <= 16; mib *= 2) {
		aggregate_lacks_init(&lacks, mib << 20);
		assert_int_equal(aggregate_lacks_bytes(&lacks), (mib << 20) / 8);
	}
	aggregate_lacks_init(&lacks, SIZE_MAX);
	assert_int_equal(aggregate_lacks_bytes(&lacks), 2 << 20);
	assert_null(lacks.cells);
}

/* As long as no group was given up, none is low. */
static void test_nothing_is_low_at_first(void **state)
{
	const struct aggregate_sums nothing = {};
	struct aggregate_lacks lacks;

	aggregate_lacks_init(&lacks, 1);
	assert_false(aggregate_lacks_is_low(&lacks, 1, AGGREGATE_BY_TOTAL, &nothing));
	assert_int_equal(aggregate_lacks_give_up(&lacks, 10), 0);
	assert_true(aggregate_lacks_is_low(&lacks, 1, AGGREGATE_BY_TOTAL, &nothing));
	aggregate_lacks_fini(&lacks);
}

/* A group that comes again and again in small parts is low until their sum is too high. */
static void test_small_parts_add_up(void **state)
{
	const struct aggregate_sums sums = { .ns = 3, .count = 2, .max_ns = 11 };
	struct aggregate_lacks lacks;
	unsigned int n = 0;

	aggregate_lacks_init(&lacks, 1);
	assert_int_equal(aggregate_lacks_give_up(&lacks, 10), 0);
	assert_int_equal(aggregate_lacks_give_up(&lacks, 9), 0); /* it does not fall again */
	for (; aggregate_lacks_is_low(&lacks, hash_of(1), AGGREGATE_BY_TOTAL, &sums); n++)
		aggregate_lacks_add(&lacks, hash_of(1), &sums);
	assert_int_equal(n, 3);
	assert_true(aggregate_lacks_is_low(&lacks, hash_of(1), AGGREGATE_BY_COUNT, &sums));
	assert_false(aggregate_lacks_is_low(&lacks, hash_of(1), AGGREGATE_BY_MAX, &sums));
	assert_true(aggregate_lacks_is_low(&lacks, hash_of(2), AGGREGATE_BY_TOTAL, &sums));
	assert_int_equal(lacks.bound_ns, 9);
	assert_int_equal(lacks.bound_count, 6);
	aggregate_lacks_fini(&lacks);
}

/* With far more groups than cells, the bound is never less than what one of them lacks. */
static void test_the_bound_holds(void **state)
{
	_cleanup_(freep) struct aggregate_sums *lacked = calloc(MANY, sizeof(*lacked));
	struct aggregate_lacks lacks;
	uint64_t i, k;

	assert_non_null(lacked);
	aggregate_lacks_init(&lacks, 1);
	assert_int_equal(aggregate_lacks_give_up(&lacks, 1000), 0);
	for (k = 0; k < 5; k++) {
		for (i = 0; i < MANY; i++) {
			const struct aggregate_sums sums = { .ns = i % 97, .count = i % 7 };

			aggregate_lacks_add(&lacks, hash_of(i), &sums);
			lacked[i].ns += sums.ns;
			lacked[i].count += sums.count;
		}
	}
	for (i = 0; i < MANY; i++) {
		assert_true(lacked[i].ns <= lacks.bound_ns);
		assert_true(lacked[i].count <= lacks.bound_count);
	}
	/* A cell has the sums of some 24 groups, which lack 240 ns and 15 in count on average. */
	assert_in_range(lacks.bound_ns, 480, 50 * 480);
	assert_in_range(lacks.bound_count, 30, 50 * 30);
	aggregate_lacks_fini(&lacks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_nothing_is_low_at_first),
		cmocka_unit_test(test_small_parts_add_up),
		cmocka_unit_test(test_the_bound_holds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
