/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rule by which short waits are recorded: the estimates are right on average, and their spread
 * is what the rule promises. The seeds are fixed, so that each run is the same.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bpf/sample.h"

enum { US = 1000, RUNS = 400, WAITS = 2000, BELOW = 100 * US };

/* Sums of one run: of all waits, and of those that were recorded, with their weights. */
struct sums {
	double exact, variance, estimate, count;
};

static struct sums run(uint64_t seed, const uint64_t *lengths, size_t n)
{
	struct sums sums = {};
	__u64 coin = seed;
	size_t i;

	for (i = 0; i < WAITS; i++) {
		uint64_t ns = lengths[i % n];

		sums.exact += (double)ns;
		sums.variance += (double)ns * (double)(BELOW - ns);
		if (!sample_has(sample_random(&coin), ns, BELOW))
			continue;
		sums.estimate += (double)sample_part(ns, ns, BELOW);
		sums.count += (double)sample_weight(sample_random(&coin), ns, BELOW);
	}
	return sums;
}

/* Mean and spread of many runs: the mean of n values spreads by 1 / sqrt(n) of one's spread. */
static void check_runs(const uint64_t *lengths, size_t n)
{
	double off = 0, square = 0, count = 0, z;
	uint64_t seed;

	for (seed = 1; seed <= RUNS; seed++) {
		/* The daemon has one state for each CPU; neighbouring seeds must do. */
		struct sums sums = run(seed, lengths, n);

		z = (sums.estimate - sums.exact) / sqrt(sums.variance);
		assert_true(fabs(z) < 5);
		/* The promise: the spread is at most sqrt(below * sum). */
		assert_true(sums.variance <= BELOW * sums.exact);
		off += z / RUNS;
		square += z * z / RUNS;
		count += sums.count / RUNS;
	}
	assert_true(fabs(off) < 4 / sqrt(RUNS));
	assert_true(fabs(square - 1) < 4 * sqrt(2.0 / RUNS));
	assert_true(fabs(count / WAITS - 1) < 0.02);
}

static void test_equal_waits(void **state)
{
	const uint64_t lengths[] = { 50 * US };

	check_runs(lengths, 1);
}

/* Waits of two lengths take turns; a rule that depends on the order would take one of them only. */
static void test_waits_that_take_turns(void **state)
{
	const uint64_t lengths[] = { 30 * US, 70 * US }, mixture[] = { 5 * US, 99 * US, 20 * US };

	check_runs(lengths, 2);
	check_runs(mixture, 3);
}

static void test_a_recorded_wait_counts_as_the_limit(void **state)
{
	uint64_t ns;

	for (ns = 1; ns < BELOW; ns = ns * 3 + 1) {
		assert_int_equal(sample_part(ns, ns, BELOW), BELOW);
		assert_in_range(sample_weight(0, ns, BELOW), BELOW / ns, BELOW / ns + 1);
		assert_int_equal(sample_weight(UINT32_MAX, ns, BELOW), BELOW / ns);
	}
}

static void test_bounds(void **state)
{
	const uint64_t most = SAMPLE_BELOW_MAX;

	assert_false(sample_has(0, 0, BELOW));
	assert_true(sample_has(0, 1, most));
	assert_false(sample_has(UINT32_MAX, 1, most));
	assert_true(sample_has(UINT32_MAX, most, most));
	assert_true(sample_has(1U << 31, most / 2 + 1, most));
	assert_false(sample_has(1U << 31, most / 2, most));
	assert_int_equal(sample_part(most - 1, most - 1, most), most);
	assert_int_equal(sample_weight(UINT32_MAX, 1, most), most);
}

/* Sums of one run in which the average of the last waits decides, not the length of each. */
static struct sums run_foreseen(uint64_t seed, const uint64_t *lengths, size_t n, uint64_t below)
{
	struct sums sums = {};
	__u32 average = 0, odds;
	__u64 coin = seed;
	size_t i;

	for (i = 0; i < WAITS; i++) {
		/* The order is random, but the same in each run. */
		uint64_t ns = lengths[(i * 7919 + i / 3) % n];

		odds = sample_odds(average, below);
		average = sample_average(average, ns);
		sums.exact += (double)ns;
		if (odds)
			sums.variance += (double)ns * (double)ns * (0x1p32 / odds - 1);
		if (!sample_has_luck(sample_random(&coin), odds))
			continue;
		sums.estimate += (double)sample_odds_part(ns, odds);
		sums.count += (double)sample_odds_weight(sample_random(&coin), odds);
	}
	return sums;
}

static void check_foreseen(const uint64_t *lengths, size_t n, uint64_t below)
{
	double off = 0, square = 0, count = 0, z;
	uint64_t seed;

	for (seed = 1; seed <= RUNS; seed++) {
		struct sums sums = run_foreseen(seed, lengths, n, below);

		z = (sums.estimate - sums.exact) / sqrt(sums.variance);
		off += z / RUNS;
		square += z * z / RUNS;
		count += sums.count / RUNS;
	}
	assert_true(fabs(off) < 4 / sqrt(RUNS));
	assert_true(fabs(square - 1) < 4 * sqrt(2.0 / RUNS));
	assert_true(fabs(count / WAITS - 1) < 0.02);
}

/* Also waits that are far longer than the last ones let expect do not change what is expected. */
static void test_waits_that_are_foreseen(void **state)
{
	const uint64_t equal[] = { 20 * US };
	const uint64_t turns[] = { 5 * US, 99 * US, 20 * US };
	const uint64_t rare[] = { 5 * US, 6 * US, 7 * US, 5 * US, 8 * US, 5 * US, 9 * US,
				  5 * US, 6 * US, 5 * US, 8 * US, 7 * US, 90 * US };

	check_foreseen(equal, 1, BELOW);
	check_foreseen(turns, 3, BELOW);
	check_foreseen(rare, 13, BELOW);
	check_foreseen(rare, 13, 10 * BELOW);
}

static void test_bounds_of_foreseen_waits(void **state)
{
	const uint64_t most = SAMPLE_BELOW_MAX;
	__u32 average = 0, odds, i;

	assert_int_equal(sample_odds(0, BELOW), 0);
	assert_int_equal(sample_odds(BELOW, BELOW), 0);
	assert_int_equal(sample_odds(5, 0), 0);
	assert_int_equal(sample_odds(1, 1), 0);
	for (i = 0; i < 100; i++)
		average = sample_average(average, UINT64_MAX);
	assert_in_range(average, most - 16, most + 16);
	assert_int_equal(sample_odds(average, most - 100), 0);
	for (i = 0; i < 1000; i++)
		average = sample_average(average, 0);
	assert_in_range(average, 1, 16);
	/* One wait stands for SAMPLE_RAREST at most, whatever was expected of it. */
	odds = sample_odds(average, most);
	assert_in_range(odds, UINT32_MAX / SAMPLE_RAREST, UINT32_MAX / SAMPLE_RAREST + 32);
	assert_in_range(sample_odds_part(most - 1, odds), 255 * most, 256 * most);
	assert_in_range(sample_odds_weight(0, odds), SAMPLE_RAREST - 1, SAMPLE_RAREST);
	assert_int_equal(sample_odds_part(most, 0), most);
	assert_int_equal(sample_odds_weight(5, 0), 1);
	assert_true(sample_has_luck(UINT32_MAX, 0));
	assert_false(sample_has_luck(odds, odds));
	assert_true(sample_has_luck(odds - 1, odds));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal_waits),
		cmocka_unit_test(test_waits_that_take_turns),
		cmocka_unit_test(test_a_recorded_wait_counts_as_the_limit),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_waits_that_are_foreseen),
		cmocka_unit_test(test_bounds_of_foreseen_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
