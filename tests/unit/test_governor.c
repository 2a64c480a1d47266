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
	WAIT_NS = 20000,   /* how long each wait is, if a test does not say otherwise */
	USER_NS = 5000000, /* each second, whatever the load is */
	FLOOR_NS = 100000,
	CPUS = 8,
};

struct host {
	struct governor governor;
	struct governor_reading reading;
	uint64_t below_ns; /* what the programs use now: a new value counts from the next tick on */
	uint64_t wait_ns;
	unsigned int noise_percent;
	uint64_t random;
};

static void host_init(struct host *host, uint64_t budget_ppm)
{
	*host = (struct host){
		.reading = { .at_ns = 1000 * NS_PER_S, .cpus = CPUS },
		.below_ns = FLOOR_NS,
		.wait_ns = WAIT_NS,
	};
	governor_init(&host->governor, budget_ppm);
}

static double noise(struct host *host)
{
	double random;

	host->random = host->random * UINT64_C(6364136223846793005) + 1442695040888963407;
	random = (double)(int64_t)host->random / (double)INT64_MAX;
	return 1 + random * host->noise_percent / 100;
}

/* Lets a second pass. Returns what it cost, in millionths of one CPU. */
static uint64_t host_tick(struct host *host, double switches)
{
	const double p =
		host->below_ns > host->wait_ns ? (double)host->wait_ns / (double)host->below_ns : 1;
	const double walk = switches * p * WALK_NS * noise(host),
		     hook = switches * STAMP_NS * noise(host), user = USER_NS * noise(host);

	host->reading.at_ns += NS_PER_S;
	host->reading.walk_ns += (uint64_t)walk;
	host->reading.hook_ns += (uint64_t)hook;
	host->reading.user_ns += (uint64_t)user;
	host->reading.waits += (uint64_t)(switches * p);
	host->reading.sampled += p < 1 ? (uint64_t)(switches * p) : 0;
	host->below_ns = governor_sample_below(host->governor.level, FLOOR_NS);
	governor_update(&host->governor, &host->reading);
	return (uint64_t)(walk + hook + user) / 1000;
}

/* Lets seconds pass. Returns the average cost, in millionths of one CPU. */
static uint64_t host_run(struct host *host, double switches, unsigned int seconds)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < seconds; i++)
		sum += host_tick(host, switches);
	return sum / seconds;
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
	assert_true(level > 0 && level < GOVERNOR_LEVEL_MAX);
	assert_true(host_run(&host, 500000, 60) <= host.governor.limit_ppm);
	assert_int_equal(host.governor.level, level);
	assert_false(host.governor.is_beyond);
	host_run(&host, 1000, 60);
	assert_int_equal(host.governor.level, 0);
}

/*
 * Waits that are longer than the first levels' lengths: these levels save nothing, and the governor
 * must not take one after the other.
 */
static void test_long_waits(void **state)
{
	struct host host;

	host_init(&host, 20000);
	host.wait_ns = 3 * NS_PER_MS;
	host_run(&host, 1000, 10);
	host_run(&host, 200000, 7);
	assert_true(host_run(&host, 200000, 1) <= host.governor.limit_ppm * 12 / 10);
	assert_true(host.governor.level >= 6);
}

/* Even the highest level is left within a minute. */
static void test_return(void **state)
{
	struct host host;

	host_init(&host, 20000);
	host.wait_ns = 10 * NS_PER_S;
	host_run(&host, 1e7, 20);
	assert_int_equal(host.governor.level, GOVERNOR_LEVEL_MAX);
	host_run(&host, 1000, 60);
	assert_int_equal(host.governor.level, 0);
}

/*
 * With steady loads of any height, with and without noise, the level must not swing: in 30 minutes
 * it is hardly ever lowered, and the average is within the budget where the hooks leave a part.
 */
static void test_border(void **state)
{
	static const unsigned int noises[] = { 0, 5, 20, 40 }, most[] = { 0, 2, 14, 14 };
	unsigned int switches, lowered, last, i;
	uint64_t cost;
	struct host host;
	size_t n;

	for (n = 0; n < ARRAY_SIZE(noises); n++) {
		for (switches = 50000; switches < 1500000; switches += switches / 50) {
			host_init(&host, 20000);
			host.noise_percent = noises[n];
			host_run(&host, switches, 10);
			last = host.governor.level;
			for (i = 0, lowered = 0, cost = 0; i < 1800; i++) {
				cost += host_tick(&host, switches);
				lowered += host.governor.level < last;
				last = host.governor.level;
			}
			assert_true(lowered <= most[n]);
			assert_true(host.governor.level < GOVERNOR_LEVEL_MAX);
			if (switches < 700000)
				assert_true(cost / 1800 <= host.governor.limit_ppm);
		}
	}
}

/*
 * Hooks that take more than the budget: the governor says so once, and does not give up all walks
 * for what they cannot save.
 */
static void test_hooks_alone(void **state)
{
	struct host host;
	unsigned int level, changes = 0, i;

	host_init(&host, 100);
	host_run(&host, 500000, 15);
	assert_true(host.governor.is_beyond);
	assert_true(host.governor.cost.walk_ppm <= host.governor.limit_ppm / 4);
	assert_true(host.governor.cost.walk_ppm >= host.governor.limit_ppm / 16);
	level = host.governor.level;
	for (i = 0; i < 1800; i++) {
		host_tick(&host, 500000);
		changes += host.governor.level != level || !host.governor.is_beyond;
		level = host.governor.level;
	}
	assert_int_equal(changes, 0);
	host_run(&host, 1000, 50);
	assert_true(host.governor.is_beyond);
	host_run(&host, 1000, 20);
	assert_false(host.governor.is_beyond);
	assert_int_equal(host.governor.level, 0);
}

/*
 * Walks of waits that are longer than any level's length stay, whatever the level is. They must not
 * keep the level high.
 */
static void test_rest_of_long_waits(void **state)
{
	struct host host;
	unsigned int i;

	host_init(&host, 20000);
	host_run(&host, 500000, 20);
	assert_true(host.governor.level > 0);
	for (i = 0; i < 60; i++) {
		host.reading.walk_ns += 100000000;
		host.reading.waits += 30000;
		host_tick(&host, 1000);
	}
	assert_true(host.governor.cost.walk_ppm * 100 > host.governor.allowed_ppm * 60);
	assert_int_equal(host.governor.level, 0);
}

/* Threads work in bursts, such as at the end of a window: that must not swing the level. */
static void test_bursts_of_threads(void **state)
{
	unsigned int i, changes = 0, level;
	struct host host;

	host_init(&host, 20000);
	host_run(&host, 100000, 20);
	level = host.governor.level;
	for (i = 0; i < 600; i++) {
		if (i % 5 == 0)
			host.reading.user_ns += 300000000;
		host_tick(&host, 100000);
		changes += host.governor.level != level;
		level = host.governor.level;
	}
	assert_true(changes <= 2);
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
	host.reading.cpus = 1;
	host_run(&host, 120000, 5);
	assert_int_equal(host.governor.limit_ppm, 40000);
	assert_true(host.governor.level > 0);
	host.reading.cpus = 64;
	host_run(&host, 120000, 60);
	assert_int_equal(host.governor.level, 0);
	host.reading.cpus = 0;
	host_run(&host, 1000, 1);
	assert_int_equal(host.governor.limit_ppm, 40000);
}

static bool update(struct governor *governor, int64_t at_ns, int64_t walk_ns)
{
	const struct governor_reading reading = { at_ns, (uint64_t)walk_ns, 0, 0, 0, 0, 1 };

	return governor_update(governor, &reading);
}

/* What cannot be a measurement is none: the level stays as it is. */
static void test_readings(void **state)
{
	const int64_t s = NS_PER_S;
	struct governor governor;

	governor_init(&governor, 10000);
	assert_false(update(&governor, 100 * s, 100 * s));
	assert_false(update(&governor, 100 * s + 1, 200 * s)); /* too early */
	assert_false(update(&governor, 50 * s, 200 * s));      /* time went back */
	assert_false(update(&governor, 51 * s, 98 * s));       /* totals went back */
	assert_false(update(&governor, 500 * s, 400 * s));     /* after a gap */
	assert_false(update(&governor, 501 * s, 400 * s));     /* nothing was used */
	assert_int_equal(governor.level, 0);
	assert_true(update(&governor, 502 * s, 401 * s));
	assert_true(governor.level > 0 && governor.level <= 6);
	assert_int_equal(governor.cost.walk_ppm, 1000000);
	/* Measuring stops: the level is kept, and is not lowered for lack of a measurement. */
	assert_false(update(&governor, 602 * s, 401 * s));
	assert_false(update(&governor, 702 * s, 401 * s));
	assert_false(update(&governor, 703 * s, 401 * s));
	assert_true(governor.level > 0);
	assert_false(update(&governor, INT64_MAX, INT64_MAX));
	assert_false(update(&governor, INT64_MAX, INT64_MAX));
}

static void test_lengths(void **state)
{
	assert_int_equal(governor_sample_below(1, 100000), 200000);
	assert_int_equal(governor_sample_below(GOVERNOR_LEVEL_MAX, 100000), 102400000);
	assert_int_equal(governor_sample_below(1, 0), 20000);
	assert_int_equal(governor_sample_below(10, 3600 * NS_PER_S), 3600 * NS_PER_S << 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_storm),
		cmocka_unit_test(test_long_waits),
		cmocka_unit_test(test_return),
		cmocka_unit_test(test_border),
		cmocka_unit_test(test_hooks_alone),
		cmocka_unit_test(test_rest_of_long_waits),
		cmocka_unit_test(test_bursts_of_threads),
		cmocka_unit_test(test_bursts),
		cmocka_unit_test(test_budgets),
		cmocka_unit_test(test_cpus),
		cmocka_unit_test(test_readings),
		cmocka_unit_test(test_lengths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
