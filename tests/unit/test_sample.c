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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal_waits),
		cmocka_unit_test(test_waits_that_take_turns),
		cmocka_unit_test(test_a_recorded_wait_counts_as_the_limit),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
