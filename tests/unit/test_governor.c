/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs the governor against made-up loads, with a made-up clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/session/governor.h"

/* What stackd costs in the simulation, in ns of CPU time. */
enum {
	STAMP_NS = 150,	   /* each switch, always */
	WALK_NS = 3000,	   /* each wait that is recorded with its stacks */
	WAIT_NS = 20000,   /* how long each wait is */
	IDLE_NS = 5000000, /* each second, whatever the load is */
	FLOOR_NS = 100000,
	CPUS = 8,
	TICKS_A_SECOND = 4,
};

struct host {
	struct governor governor;
	int64_t now_ns;
	uint64_t cpu_ns;
	uint64_t below_ns; /* what the programs use now: a new value counts from the next tick on */
	unsigned int cpus;
	unsigned int noise_percent;
	uint64_t random;
};

static void host_init(struct host *host, uint64_t budget_ppm)
{
	const struct governor_options options = { .budget_ppm = budget_ppm, .floor_ns = FLOOR_NS };

	*host = (struct host){ .now_ns = 1000 * NS_PER_S, .cpus = CPUS, .below_ns = FLOOR_NS };
	governor_init(&host->governor, &options);
}

/* Returns what a second with this many switches costs. */
static double cost_of(const struct host *host, double switches)
{
	double p = host->below_ns > WAIT_NS ? (double)WAIT_NS / (double)host->below_ns : 1;

	return IDLE_NS + switches * (STAMP_NS + p * WALK_NS);
}

/* Lets a tick pass. Returns what it cost, in parts per million of one CPU. */
static uint64_t host_tick(struct host *host, double switches)
{
	struct governor_reading reading;
	double ns = cost_of(host, switches) / TICKS_A_SECOND, noise;

	host->random = host->random * UINT64_C(6364136223846793005) + 1442695040888963407;
	noise = (double)(int64_t)host->random / (double)INT64_MAX;
	ns *= 1 + noise * host->noise_percent / 100;
	host->cpu_ns += (uint64_t)ns;
	host->now_ns += NS_PER_S / TICKS_A_SECOND;
	reading = (struct governor_reading){ host->now_ns, host->cpu_ns, host->cpus };
	host->below_ns = governor_sample_below(&host->governor);
	governor_update(&host->governor, &reading);
	return (uint64_t)(ns * TICKS_A_SECOND / 1000);
}

/* Lets seconds pass. Returns the average cost, in parts per million of one CPU. */
static uint64_t host_run(struct host *host, double switches, unsigned int seconds)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < seconds * TICKS_A_SECOND; i++)
		sum += host_tick(host, switches);
	return sum / (seconds * TICKS_A_SECOND);
}

/* From 1,000 to 500,000 switches a second and back. */
static void test_storm(void **state)
{
	struct host host;
	unsigned int level;

	host_init(&host, 20000);
	host_run(&host, 1000, 30);
	assert_int_equal(host.governor.level, 0);
	assert_int_equal(host.governor.limit_ppm, CPUS * 20000);
	host_run(&host, 500000, 2);
	assert_true(host_run(&host, 500000, 1) <= host.governor.limit_ppm * 12 / 10);
	level = host.governor.level;
	assert_true(level > 0 && level < GOVERNOR_DOUBLINGS);
	assert_true(host_run(&host, 500000, 60) <= host.governor.limit_ppm);
	assert_int_equal(host.governor.level, level);
	host_run(&host, 1000, 60);
	assert_int_equal(host.governor.level, 0);
	assert_int_equal(governor_sample_below(&host.governor), FLOOR_NS);
}

/* Even the highest level is left within a minute. */
static void test_return(void **state)
{
	struct host host;

	host_init(&host, 20000);
	host_run(&host, 1e7, 10);
	assert_int_equal(host.governor.level, GOVERNOR_LEVEL_MAX);
	assert_true(governor_sheds(&host.governor, GOVERNOR_NAMES));
	assert_int_equal(governor_hz_divisor(&host.governor), 8);
	host_run(&host, 1000, 60);
	assert_int_equal(host.governor.level, 0);
	assert_false(governor_sheds(&host.governor, GOVERNOR_HZ_HALF));
	assert_int_equal(governor_hz_divisor(&host.governor), 1);
}

/*
 * With steady loads of any height, with and without noise, the level must not swing: in 30 minutes
 * it is hardly ever lowered, and the average is within the budget unless sampling is not enough.
 */
static void test_border(void **state)
{
	static const unsigned int noises[] = { 0, 5, 20, 40 };
	unsigned int switches, lowered, last, i;
	uint64_t cost;
	struct host host;
	size_t n;

	for (n = 0; n < ARRAY_SIZE(noises); n++) {
		for (switches = 50000; switches < 1000000; switches += switches / 50) {
			host_init(&host, 20000);
			host.noise_percent = noises[n];
			host_run(&host, switches, 10);
			last = host.governor.level;
			for (i = 0, lowered = 0, cost = 0; i < 1800 * TICKS_A_SECOND; i++) {
				cost += host_tick(&host, switches);
				lowered += host.governor.level < last;
				last = host.governor.level;
			}
			assert_true(lowered <= (noises[n] < 20 ? 0 : 12));
			if (last < GOVERNOR_DOUBLINGS)
				assert_true(cost / (1800 * TICKS_A_SECOND) <=
					    host.governor.limit_ppm);
		}
	}
}

/* A load that jumps up and down must not bring the level to swing as fast as the load. */
static void test_bursts(void **state)
{
	struct host host;
	unsigned int i;
	uint64_t cost = 0;

	host_init(&host, 20000);
	for (i = 0; i < 300; i++) {
		cost += host_run(&host, 500000, 2);
		cost += host_run(&host, 100000, 4);
	}
	assert_true(host.governor.raised < 60);
	assert_true(cost / 600 <= host.governor.limit_ppm);
}

static void test_budgets(void **state)
{
	struct host host;

	host_init(&host, 100); /* 0.01 %: 4 % of one CPU are the least */
	host_run(&host, 1000, 30);
	assert_int_equal(host.governor.limit_ppm, 40000);
	assert_int_equal(host.governor.level, 0);
	host_run(&host, 150000, 10);
	assert_true(host_run(&host, 150000, 30) <= 40000);
	host_init(&host, 10000000); /* 1,000 % */
	host_run(&host, 1e7, 30);
	assert_int_equal(host.governor.level, 0);
}

/* The budget is a share of the CPUs that are online now. */
static void test_cpus(void **state)
{
	struct host host;

	host_init(&host, 20000);
	host_run(&host, 120000, 20);
	assert_int_equal(host.governor.level, 0);
	host.cpus = 1;
	host_run(&host, 120000, 5);
	assert_int_equal(host.governor.limit_ppm, 40000);
	assert_true(host.governor.level > 0);
	host.cpus = 64;
	host_run(&host, 120000, 60);
	assert_int_equal(host.governor.level, 0);
	host.cpus = 0;
	host_run(&host, 1000, 1);
	assert_int_equal(host.governor.limit_ppm, 40000);
}

static bool update(struct governor *governor, int64_t at_ns, int64_t cpu_ns)
{
	const struct governor_reading reading = { at_ns, (uint64_t)cpu_ns, 1 };

	return governor_update(governor, &reading);
}

/* What cannot be a measurement is none: the level stays as it is. */
static void test_readings(void **state)
{
	const struct governor_options options = { .budget_ppm = 1, .floor_ns = 1 };
	struct governor governor;
	int64_t s = NS_PER_S;

	governor_init(&governor, &options);
	assert_false(update(&governor, 100 * s, 90 * s));
	assert_false(update(&governor, 100 * s + 1, 99 * s)); /* too early: it is ignored */
	assert_false(update(&governor, 50 * s, 99 * s));      /* time went back */
	assert_false(update(&governor, 51 * s, 98 * s));      /* totals went back */
	assert_false(update(&governor, 500 * s, 400 * s));    /* after a gap */
	assert_false(update(&governor, 501 * s, 400 * s));    /* nothing was used */
	assert_int_equal(governor.level, 0);
	assert_true(update(&governor, 502 * s, 401 * s));
	assert_true(governor.level > 0 && governor.level <= 4);
	assert_int_equal(governor.cost_ppm, 1000000);
	/* Measuring stops: the level is kept, and is not lowered for lack of a measurement. */
	assert_false(update(&governor, 602 * s, 401 * s));
	assert_false(update(&governor, 702 * s, 401 * s));
	assert_false(update(&governor, 703 * s, 401 * s));
	assert_true(governor.level > 0);
	assert_false(update(&governor, INT64_MAX, INT64_MAX));
	assert_false(update(&governor, INT64_MAX, INT64_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_storm),	 cmocka_unit_test(test_return),
		cmocka_unit_test(test_border),	 cmocka_unit_test(test_bursts),
		cmocka_unit_test(test_budgets),	 cmocka_unit_test(test_cpus),
		cmocka_unit_test(test_readings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
