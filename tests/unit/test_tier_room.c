/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests which tier makes room when the database is full, and when a tier may have more rows again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/store/internal.h"

enum { TIERS = 3, MAX_BYTES = 3000 };

static struct store store;

/* Gives each tier windows of so many bytes; -1: it has none. */
static void tiers_fill(int first, int second, int third)
{
	static const unsigned int shares[TIERS] = { 20, 30, 50 };
	const int bytes[TIERS] = { first, second, third };
	size_t i;

	store = (struct store){ .n_tiers = TIERS };
	for (i = 0; i < TIERS; i++) {
		store.tiers[i].share = shares[i];
		store.sums[i].windows = bytes[i] >= 0;
		store.sums[i].bytes = bytes[i];
	}
}

/* The tier makes room that is furthest above its share, whatever it takes in bytes. */
static void test_the_furthest_above_its_share(void **state)
{
	tiers_fill(200, 300, 501);
	assert_int_equal(store_tier_over(&store, 0), 2);
	tiers_fill(200, 303, 501);
	assert_int_equal(store_tier_over(&store, 0), 1);
	tiers_fill(210, 303, 501);
	assert_int_equal(store_tier_over(&store, 0), 0);
	assert_int_equal(store_tier_over(&store, 1 << 0), 1);
	assert_int_equal(store_tier_over(&store, 1 << 0 | 1 << 1), 2);
	assert_int_equal(store_tier_over(&store, 1 << 0 | 1 << 1 | 1 << 2), TIERS);
}

static void test_a_tier_without_windows(void **state)
{
	tiers_fill(-1, 0, -1);
	assert_int_equal(store_tier_over(&store, 0), 1);
	tiers_fill(-1, -1, -1);
	assert_int_equal(store_tier_over(&store, 0), TIERS);
}

/* One without a share comes before all others. */
static void test_a_tier_without_a_share(void **state)
{
	tiers_fill(1, 1000, 1000);
	store.tiers[0].share = 0;
	assert_int_equal(store_tier_over(&store, 0), 0);
}

/* Windows count with the stacks, frames and processes to which they refer. */
static void test_rows_of_windows_count(void **state)
{
	tiers_fill(200, 300, 500);
	assert_int_equal(store_tiers_bytes(&store), 1000);
	store.sums[0].weight = 4.5;
	store.sums[1].weight = 2;
	store.sums[2].weight = 1.25;
	assert_int_equal(store_tier_over(&store, 0), 0);
	assert_int_equal(store_tier_over(&store, 1 << 0), 1);
	assert_int_equal(store_tier_bytes(&store, 0), 900);
	assert_int_equal(store_tier_bytes(&store, 2), 625);
	assert_int_equal(store_tiers_bytes(&store), 900 + 600 + 625);
	/* Removed windows count with their rows, too; added ones are not removed. */
	store_tier_resized(&store, 0, -100);
	assert_int_equal(store.sums[0].bytes, 100);
	assert_int_equal(store.removed_bytes, 450);
	store_tier_resized(&store, 2, 60);
	assert_int_equal(store.sums[2].bytes, 560);
	assert_int_equal(store.removed_bytes, 450);
}

/* A tier of which nothing is known yet is like the one from which its windows come. */
static void test_a_tier_without_a_weight(void **state)
{
	tiers_fill(0, 300, 500);
	assert_true(store_tiers_unweighed(&store));
	assert_int_equal(store_tiers_bytes(&store), 800);
	store.sums[1].weight = 3;
	assert_false(store_tiers_unweighed(&store));
	assert_int_equal(store_tier_bytes(&store, 0), 0);
	assert_int_equal(store_tier_bytes(&store, 2), 1500);
	tiers_fill(0, 0, 0);
	assert_false(store_tiers_unweighed(&store));
}

/* A tier gets twice as many rows once it takes less than a third of its room, step by step. */
static void test_more_rows_again(void **state)
{
	tiers_fill(0, 0, 0);
	for (size_t i = 0; i < TIERS; i++)
		store.stats.tiers[i].max_bytes = MAX_BYTES;
	store.sums[0].level = 2;
	store.stats.tiers[0].bytes = MAX_BYTES / 3 - 1;
	store.sums[1].level = 2;
	store.stats.tiers[1].bytes = MAX_BYTES / 3;
	store_tiers_relax(&store);
	assert_int_equal(store.sums[0].level, 1);
	assert_int_equal(store.sums[1].level, 2);
	assert_int_equal(store.sums[2].level, 0);
	store_tiers_relax(&store);
	store_tiers_relax(&store);
	assert_int_equal(store.sums[0].level, 0);
	assert_int_equal(store.sums[1].level, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_furthest_above_its_share),
		cmocka_unit_test(test_a_tier_without_windows),
		cmocka_unit_test(test_a_tier_without_a_share),
		cmocka_unit_test(test_rows_of_windows_count),
		cmocka_unit_test(test_a_tier_without_a_weight),
		cmocka_unit_test(test_more_rows_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
