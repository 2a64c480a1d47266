/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs the governor against made-up loads, with a made-up clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bpf/brake.h"
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
	/* for windows_tick(): what is shed now, a new step counts from the next tick on */
	enum governor_step step;
	unsigned int seconds;
	/* for host_run_measured(): the last measurement, and the time of the next one */
	struct governor_reading measured;
	int64_t measured_ns;
};

static void host_init(struct host *host, uint64_t budget_ppm)
{
	*host = (struct host){
		.reading = { .at_ns = 1000 * NS_PER_S, .cpus = CPUS },
		.below_ns = FLOOR_NS,
		.wait_ns = WAIT_NS,
		.measured_ns = 1000 * NS_PER_S + 1,
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

/* Lets a second pass, without a tick. Returns what it cost, in millionths of one CPU. */
static uint64_t host_work(struct host *host, double switches)
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
	return (uint64_t)(walk + hook + user) / 1000;
}

/* Lets a second pass. Returns what it cost, in millionths of one CPU. */
static uint64_t host_tick(struct host *host, double switches)
{
	const uint64_t cost = host_work(host, switches);

	governor_update(&host->governor, &host->reading);
	return cost;
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

static uint64_t part_of(uint64_t from, uint64_t to, double part)
{
	return from + (uint64_t)((double)(to - from) * part);
}

/*
 * Lets seconds pass in which the programs' cost is measured every pace_ns, whenever the ticks are,
 * and at the tick the last measurement is known. Returns the greatest cost of a second.
 */
static uint64_t host_run_measured(struct host *host, double switches, int64_t pace_ns,
				  unsigned int seconds)
{
	struct governor_reading seen, last;
	uint64_t most = 0, cost;

	for (; seconds; seconds--) {
		last = host->reading;
		cost = host_work(host, switches);
		most = cost > most ? cost : most;
		for (; host->measured_ns <= host->reading.at_ns; host->measured_ns += pace_ns) {
			const double part =
				(double)(host->measured_ns - last.at_ns) / (double)NS_PER_S;

			host->measured = (struct governor_reading){
				.walk_ns = part_of(last.walk_ns, host->reading.walk_ns, part),
				.hook_ns = part_of(last.hook_ns, host->reading.hook_ns, part),
				.waits = part_of(last.waits, host->reading.waits, part),
				.sampled = part_of(last.sampled, host->reading.sampled, part),
				.walks_at_ns = host->measured_ns,
			};
		}
		seen = host->measured;
		seen.at_ns = host->reading.at_ns;
		seen.user_ns = host->reading.user_ns;
		seen.cpus = host->reading.cpus;
		governor_update(&host->governor, &seen);
	}
	return most;
}

/* From 1,000 to 500,000 switches a second and back. */
static void test_storm(void **state)
{
	struct host host;
	unsigned int level, i;

	host_init(&host, 20000);
	host_run(&host, 1000, 30);
	assert_int_equal(host.governor.level, 0);
	assert_int_equal(host.governor.limit_ppm, CPUS * 20000);
	host_run(&host, 500000, 2);
	for (i = 0; i < 10; i++)
		assert_true(host_tick(&host, 500000) <= host.governor.limit_ppm * 12 / 10);
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
	host_run(&host, 500000, 135);
	assert_int_equal(host.governor.step, GOVERNOR_STEPS - 1);
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
	host_run(&host, 1000, 20);
	assert_true(host.governor.is_beyond);
	host_run(&host, 1000, 50);
	assert_false(host.governor.is_beyond);
	assert_int_equal(host.governor.level, 0);
}

/* Lets seconds pass in which all costs a percentage of the budget of 160 ms a second. */
static void percent_run(struct host *host, unsigned int percent, unsigned int seconds)
{
	for (; seconds; seconds--) {
		host->reading.hook_ns += percent * UINT64_C(1600000) - 5750000;
		host_tick(host, 1000);
	}
}

/* Only whole minutes after the start are compared with the budget, and less than a tenth is noise.
 */
static void test_minute(void **state)
{
	struct host host;
	unsigned int i;

	host_init(&host, 20000);
	percent_run(&host, 900, 60);
	for (i = 0; i < 60; i++) {
		assert_false(host.governor.has_minute);
		percent_run(&host, 50, 1);
	}
	percent_run(&host, 50, 1);
	assert_true(host.governor.has_minute);
	assert_in_range(governor_cost_sum(&host.governor.minute), 79000, 81000);
	assert_int_equal(host.governor.burst_ppm, 0);
	percent_run(&host, 108, 90);
	assert_false(host.governor.is_beyond);
	percent_run(&host, 113, 90);
	assert_true(host.governor.is_beyond);
	percent_run(&host, 107, 90);
	assert_true(host.governor.is_beyond);
	percent_run(&host, 103, 90);
	assert_false(host.governor.is_beyond);
	/* A burst is within the average, unless more of them come in the same minute. */
	percent_run(&host, 30, 60);
	percent_run(&host, 600, 6);
	for (i = 0; i < 60; i++) {
		percent_run(&host, 30, 1);
		assert_false(host.governor.is_beyond);
	}
	for (i = 0; i < 9; i++)
		percent_run(&host, i % 3 ? 30 : 600, 6);
	assert_true(host.governor.is_beyond);
	/* A gap has its part of the average; totals that go back begin another minute. */
	percent_run(&host, 30, 90);
	host.reading.at_ns += 20 * NS_PER_S;
	percent_run(&host, 30, 10);
	assert_true(host.governor.has_minute && !host.governor.is_beyond);
	assert_in_range(governor_cost_sum(&host.governor.minute), 30000, 40000);
	host.reading.user_ns -= NS_PER_S;
	percent_run(&host, 200, 60);
	assert_false(host.governor.has_minute || host.governor.is_beyond);
	percent_run(&host, 200, 3);
	assert_true(host.governor.has_minute && host.governor.is_beyond);
	/* What was spent under one limit says nothing about another one. */
	host.governor.budget_ppm += host.governor.budget_ppm / 10;
	percent_run(&host, 200, 30);
	assert_false(host.governor.has_minute || host.governor.is_beyond);
}

/* Lets a host with bursts save for them: what they may spend is 45 times the budget of a second. */
static void burst_init(struct host *host)
{
	host_init(host, 20000);
	host->governor.burst = 10;
	host->wait_ns = NS_PER_MS;
	percent_run(host, 60, 180);
	assert_in_range(host->governor.saved, 7199999, 7200000);
	assert_true(host->governor.allowed_ppm > 9 * host->governor.limit_ppm);
}

/* A burst keeps its stacks, and breaks no minute. */
static void test_burst(void **state)
{
	struct host host;
	unsigned int i, n;

	burst_init(&host);
	for (n = 0; n < 2; n++) {
		for (i = 0; i < 5; i++) {
			host_tick(&host, 450000); /* 1.42 s of CPU time, nine times the budget */
			assert_int_equal(host.governor.level + host.governor.step, 0);
		}
		for (i = 0; i < 180; i++) {
			percent_run(&host, 60, 1);
			assert_int_equal(host.governor.level + host.governor.step, 0);
			assert_false(host.governor.is_beyond);
			if (i == 20)
				assert_in_range(host.governor.burst_ppm, 35000, 60000);
		}
	}
	/* One that is higher than ten times the budget is a storm at once, and so is one without
	 * savings. */
	host_run(&host, 700000, 3);
	assert_true(host.governor.level > 0 && host.governor.saved > 0);
	assert_true(host.governor.allowed_ppm < host.governor.limit_ppm);
	burst_init(&host);
	host.governor.saved = 0;
	host_run(&host, 450000, 2);
	assert_true(host.governor.level > 0);
}

/* A storm has what was saved and then the budget, however long it is; the threads' cost is shed. */
static void test_storm_after_burst(void **state)
{
	struct host host;
	unsigned int level, i;

	burst_init(&host);
	host_run(&host, 300000, 16);
	level = host.governor.level;
	assert_true(level > 0 && host.governor.saved == 0);
	assert_true(host.governor.allowed_ppm <= host.governor.limit_ppm);
	for (i = 0; i < 600; i++) {
		host_tick(&host, 300000);
		assert_true(host.governor.level >= level && host.governor.saved == 0);
	}
	assert_false(host.governor.is_beyond);
	burst_init(&host);
	percent_run(&host, 400, 12);
	assert_int_equal(host.governor.step, GOVERNOR_ALL);
	percent_run(&host, 400, 12);
	assert_int_equal(host.governor.step, GOVERNOR_STEPS - 1);
}

/* Hooks and threads leave less than the quarter that walks always have: a fifth too much is said.
 */
static void test_quarter_too_much(void **state)
{
	struct host host;
	unsigned int i;

	host_init(&host, 20000);
	for (i = 0; i < 600; i++) {
		host.reading.hook_ns += 76000000;
		host_tick(&host, 500000);
	}
	assert_true(host.governor.cost.hook_ppm + host.governor.cost.user_ppm <
		    host.governor.limit_ppm);
	assert_true(host.governor.minute.walk_ppm > 0);
	assert_true(host.governor.is_beyond);
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

/* Lets seconds pass in which hooks and threads cost more, less what each step saves. */
static void steps_run(struct host *host, uint64_t extra_ns, uint64_t saved_ns, unsigned int seconds)
{
	uint64_t saved;

	for (; seconds; seconds--) {
		saved = host->governor.step * saved_ns;
		host->reading.hook_ns += extra_ns > saved ? extra_ns - saved : 0;
		host_tick(host, 1000);
	}
}

/* Too much at other places: the steps are taken in their order, and taken back in reverse. */
static void test_steps(void **state)
{
	enum governor_step last = GOVERNOR_ALL;
	unsigned int i, every = 1;
	struct host host;

	host_init(&host, 20000); /* 160 ms of CPU time a second */
	host_run(&host, 1000, 20);
	for (i = 0; i < 60; i++) {
		steps_run(&host, 300000000, 1000000, 1);
		assert_true(host.governor.step >= last);
		last = host.governor.step;
		assert_true(governor_sample_every(last) >= every);
		every = governor_sample_every(last);
		assert_true(i < 10 || last == GOVERNOR_STEPS - 1);
	}
	assert_int_equal(every, 8);
	for (i = 0; i < 60 && last; i++) {
		steps_run(&host, 0, 0, 1);
		assert_true(host.governor.step == last || host.governor.step + 1 == last);
		last = host.governor.step;
	}
	assert_int_equal(last, GOVERNOR_ALL);
	/* Back soon, but one after the other. */
	assert_true(i > 15);
}

/* A tenth too much: one step is taken, then 2, then 4, each when the last ones did not suffice. */
static void test_more_and_more_steps(void **state)
{
	unsigned int i, taken[4] = {}, n = 0;
	enum governor_step last;
	struct host host;

	host_init(&host, 20000);
	host_run(&host, 1000, 20);
	for (i = 0; i < 150; i++) {
		last = host.governor.step;
		steps_run(&host, 171000000, 0, 1);
		if (host.governor.step != last)
			taken[n++ & 3] = host.governor.step - last;
	}
	assert_int_equal(n, 3);
	assert_int_equal(taken[0], 1);
	assert_int_equal(taken[1], 2);
	assert_int_equal(taken[2], 3); /* there are no more */
}

/*
 * A step in the middle suffices: once those behind it have been taken back, and it was found that
 * it is needed, no others are taken again.
 */
static void test_middle_step(void **state)
{
	unsigned int i, needed = 0;
	struct host host;

	host_init(&host, 20000);
	host_run(&host, 1000, 20);
	for (i = 0; i < 600; i++) {
		steps_run(&host, host.governor.step < GOVERNOR_NO_CALLS ? 220000000 : 30000000, 0,
			  1);
		needed += host.governor.step < GOVERNOR_NO_CALLS;
		assert_true(i < 40 || host.governor.step <= GOVERNOR_NO_CALLS);
	}
	assert_true(needed < 40);
}

/* Lets seconds pass in a storm of processes with new files. Returns the average cost. */
static uint64_t brief_run(struct host *host, uint64_t storm_ns, unsigned int seconds)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < seconds; i++) {
		host->reading.user_ns +=
			host->governor.step < GOVERNOR_NO_BRIEF ? storm_ns : storm_ns / 4;
		sum += host_tick(host, 1000);
	}
	return sum / seconds;
}

/* Only the last step helps: it is taken, all keeps within the budget, and it is taken back. */
static void test_brief(void **state)
{
	const uint64_t storm_ns = 300000000; /* the budget is 160 ms a second */
	enum governor_step last;
	struct host host;
	unsigned int i, changes;

	host_init(&host, 20000);
	host_run(&host, 1000, 20);
	brief_run(&host, storm_ns, 45);
	assert_int_equal(host.governor.step, GOVERNOR_NO_BRIEF);
	assert_true(governor_sample_every(host.governor.step) == 8);
	last = host.governor.step;
	for (i = 0, changes = 0; i < 1800; i++) {
		brief_run(&host, storm_ns, 1);
		changes += host.governor.step != last;
		last = host.governor.step;
		assert_true(last >= GOVERNOR_FEW_FRAMES);
		assert_false(host.governor.is_beyond);
	}
	/* Each time that it is taken back, which is twice as long after the last, it is needed. */
	assert_true(changes > 2 && changes <= 16);
	host_run(&host, 1000, 20 * 60);
	assert_int_equal(host.governor.step, GOVERNOR_ALL);
}

/*
 * Lets a second pass. Threads take window_ns in each fifth second, when a window ends, and storm_ns
 * in each second for processes with new files, most of which the last step saves. Returns what all
 * cost, in millionths of one CPU.
 */
static uint64_t windows_tick(struct host *host, double storm_ns, double window_ns)
{
	static const double kept[] = { 1, 0.99, 0.98, 0.97, 0.92, 0.85, 0.25 };
	double user = storm_ns * kept[host->step] * noise(host);

	if (host->seconds++ % 5 == 0)
		user += window_ns * noise(host);
	host->step = host->governor.step;
	host->reading.user_ns += (uint64_t)user;
	return (uint64_t)user / 1000 + host_tick(host, 1000);
}

/* Makes a host that has been calm for `seconds`, with other numbers for each seed. */
static void windows_init(struct host *host, unsigned int noise_percent, unsigned int seed,
			 unsigned int seconds)
{
	host_init(host, 20000);
	host->noise_percent = noise_percent;
	host->random = seed;
	for (; seconds; seconds--)
		windows_tick(host, 0, 160000000);
	assert_int_equal(host->governor.step, GOVERNOR_ALL);
}

/* Returns what `governor` says that all costs, as a part of the budget. */
static double said(const struct governor *governor)
{
	const struct governor_cost *cost = &governor->cost;

	return (double)(cost->walk_ppm + cost->hook_ppm + cost->user_ppm) /
	       (double)governor->limit_ppm;
}

/*
 * A storm of processes begins, of which only the last step saves much. All steps are taken soon
 * after it has cost, above the budget, what the budget allows in 3 s. After that, the budget is
 * kept but for a few seconds in which the last step is taken back, as the storm might be over.
 */
static void test_storm_of_processes(void **state)
{
	static const double times[] = { 1.2, 1.5, 2, 2.5, 3 };
	static const unsigned int most_s[] = { 16, 8, 4, 3, 3 };
	unsigned int seed, i, over;
	enum governor_step last;
	struct host host;
	size_t n;

	for (n = 0; n < ARRAY_SIZE(times); n++) {
		for (seed = 1; seed <= 20; seed++) {
			windows_init(&host, 20, seed, 31);
			for (i = 0; i < most_s[n]; i++) {
				last = host.governor.step;
				windows_tick(&host, times[n] * 160000000, 80000000);
				/* The log says then what all costs. */
				assert_true(host.governor.step == last || said(&host.governor) > 1);
			}
			assert_int_equal(host.governor.step, GOVERNOR_NO_BRIEF);
			windows_tick(&host, times[n] * 160000000, 80000000);
			for (i = 0, over = 0; i < 30; i++) {
				windows_tick(&host, times[n] * 160000000, 0);
				over += said(&host.governor) > 1.2;
			}
			assert_true(over <= 5);
			for (i = 0; i < 75; i++)
				windows_tick(&host, 0, 160000000);
			assert_int_equal(host.governor.step, GOVERNOR_ALL);
		}
	}
}

/* What is over in a second cannot be saved. After two seconds of a storm, all is back soon. */
static void test_spikes(void **state)
{
	struct host host;
	unsigned int seed, i;

	for (seed = 1; seed <= 20; seed++) {
		windows_init(&host, 0, seed, 33);
		windows_tick(&host, 8 * 160000000.0, 0);
		for (i = 0; i < 8; i++) {
			windows_tick(&host, 1.05 * 155000000.0, 0);
			assert_int_equal(host.governor.step, GOVERNOR_ALL);
		}
		windows_init(&host, 20, seed, 33);
		windows_tick(&host, 8 * 160000000.0, 0);
		for (i = 0; i < 60; i++) {
			windows_tick(&host, 0, 80000000);
			assert_int_equal(host.governor.step, GOVERNOR_ALL);
		}
		for (i = 0; i < 2; i++)
			windows_tick(&host, 3 * 160000000.0, 0);
		for (i = 0; i < 40; i++)
			windows_tick(&host, 0, 80000000);
		assert_int_equal(host.governor.step, GOVERNOR_ALL);
	}
}

/* Threads that keep within the budget over a window may be far over it when the window ends. */
static void test_ends_of_windows(void **state)
{
	struct host host;
	unsigned int seed, i;

	for (seed = 1; seed <= 10; seed++) {
		windows_init(&host, 10, seed, 31);
		for (i = 0; i < 1800; i++) {
			windows_tick(&host, 0.4 * 160000000, 2.4 * 160000000);
			assert_int_equal(host.governor.step, GOVERNOR_ALL);
		}
	}
}

/* Storms of any size, 30 minutes long: what is shed hardly changes, and the budget is kept. */
static void test_storms_at_the_border(void **state)
{
	unsigned int seed, i, changes, percent, noise_percent;
	enum governor_step last;
	struct host host;
	uint64_t cost;

	for (percent = 2; percent < 300; percent += 2 + percent / 50) {
		for (seed = 1; seed <= 4; seed++) {
			noise_percent = seed % 2 ? 10 : 30;
			windows_init(&host, noise_percent, seed, 31);
			for (i = 0, changes = 0, cost = 0; i < 1800; i++) {
				last = host.governor.step;
				cost += windows_tick(&host, percent * 1600000.0, 160000000);
				changes += host.governor.step != last;
			}
			assert_true(changes <= 24);
			assert_true(cost / 1800 <= host.governor.limit_ppm * 12 / 10);
		}
	}
}

/* One step is enough, or some: no more are taken, and they do not come and go. */
static void test_steps_at_the_border(void **state)
{
	const unsigned int noises[] = { 0, 10, 30 };
	unsigned int changes, i, extra_ms;
	enum governor_step last;
	struct host host;
	size_t n;

	for (n = 0; n < ARRAY_SIZE(noises); n++) {
		for (extra_ms = 100; extra_ms < 250; extra_ms += 3) {
			host_init(&host, 20000);
			host.noise_percent = noises[n];
			host_run(&host, 1000, 20);
			steps_run(&host, extra_ms * 1000000, 30000000, 60);
			last = host.governor.step;
			for (i = 0, changes = 0; i < 1800; i++) {
				steps_run(&host, extra_ms * 1000000, 30000000, 1);
				changes += host.governor.step != last;
				last = host.governor.step;
			}
			assert_true(changes <= 12);
			assert_true(extra_ms > 140 || last == GOVERNOR_ALL);
		}
	}
}

/* Where the level alone suffices, nothing else is shed; it is not while measuring has stopped. */
static void test_no_steps(void **state)
{
	struct host host;
	unsigned int i;

	host_init(&host, 20000);
	for (i = 0; i < 120; i++) {
		host_run(&host, i % 20 < 10 ? 500000 : 1000, 1);
		assert_int_equal(host.governor.step, GOVERNOR_ALL);
	}
	/* Walks cost five times the budget, and reading their stacks twice, until the level has
	 * risen. */
	host.wait_ns = 90000;
	for (i = 0; i < 20; i++) {
		const uint64_t walk_ns = host.reading.walk_ns;

		host_work(&host, 300000);
		host.reading.user_ns += (host.reading.walk_ns - walk_ns) * 2 / 5;
		governor_update(&host.governor, &host.reading);
		assert_int_equal(host.governor.step, GOVERNOR_ALL);
	}
	host_run(&host, 1000, 10);
	steps_run(&host, 300000000, 0, 12);
	assert_true(host.governor.step > 0);
	i = host.governor.step;
	host.reading.at_ns += 100 * NS_PER_S; /* a gap, also after a step of the clock */
	host_run(&host, 1000, 1);
	assert_int_equal(host.governor.step, i);
	host.reading.at_ns -= 50 * NS_PER_S;
	host_run(&host, 1000, 1);
	assert_int_equal(host.governor.step, i);
}

/* The thread that measures walks hangs: nothing is recorded more or less because of that. */
static void test_measuring_stops(void **state)
{
	struct governor_reading *reading;
	unsigned int level, i;
	struct host host;

	host_init(&host, 20000);
	reading = &host.reading;
	for (i = 0; i < 20; i++) {
		reading->walks_at_ns = reading->at_ns;
		host_run(&host, 500000, 1);
	}
	level = host.governor.level;
	assert_true(level > 0);
	for (i = 0; i < 300; i++) {
		const uint64_t walk_ns = reading->walk_ns, hook_ns = reading->hook_ns;

		host_run(&host, 500000, 1);
		reading->walk_ns = walk_ns;
		reading->hook_ns = hook_ns;
	}
	assert_int_equal(host.governor.level, level);
	for (i = 0; i < 60; i++) {
		reading->walks_at_ns = reading->at_ns;
		host_run(&host, 1000, 1);
	}
	assert_int_equal(host.governor.level, 0);
}

/*
 * The threads that measure have a pace of their own. Two measurements between two ticks, or none,
 * must not be taken for twice the cost, or for nothing.
 */
static void test_pace_of_measuring(void **state)
{
	static const int64_t paces[] = { 450, 900, 930, 970, 1030, 1400, 1900, 3000, 4500 };
	unsigned int level, changes, i;
	struct host host;
	size_t n;

	for (n = 0; n < ARRAY_SIZE(paces); n++) {
		const int64_t pace_ns = paces[n] * NS_PER_MS;

		/* Walks cost 96 ms of the 160 ms that are the budget: nothing is to be saved. */
		host_init(&host, 20000);
		host.wait_ns = FLOOR_NS;
		for (i = 0; i < 600; i++) {
			host_run_measured(&host, 32000, pace_ns, 1);
			assert_int_equal(host.governor.level, 0);
		}
		assert_in_range(host.governor.cost.walk_ppm, 90000, 102000);
		host_run_measured(&host, 500000, pace_ns, 60);
		level = host.governor.level;
		assert_true(level > 0 && level < GOVERNOR_LEVEL_MAX);
		for (i = 0, changes = 0; i < 1800; i++) {
			assert_true(host_run_measured(&host, 500000, pace_ns, 1) <=
				    host.governor.limit_ppm);
			changes += host.governor.level != level;
			level = host.governor.level;
		}
		assert_int_equal(changes, 0);
		host_run_measured(&host, 1000, pace_ns, 60);
		assert_int_equal(host.governor.level, 0);
	}
}

/* After a gap, the first measurement contains all walks of the gap: it is no storm. */
static void test_measuring_comes_back(void **state)
{
	unsigned int level, i;
	struct host host;

	host_init(&host, 20000);
	host_run_measured(&host, 500000, NS_PER_S, 60);
	level = host.governor.level;
	assert_true(level > 0);
	for (i = 0; i < 600; i++) {
		if (i % 100 == 0)
			host.measured_ns += 60 * NS_PER_S;
		host_run_measured(&host, 500000, NS_PER_S, 1);
		assert_int_equal(host.governor.level, level);
		assert_int_equal(host.governor.step, GOVERNOR_ALL);
		assert_true(host.governor.cost.walk_ppm <= host.governor.allowed_ppm);
	}
}

/* CPUs come and go while the load is steady: the level follows, and stays within what it needs. */
static void test_cpus_come_and_go(void **state)
{
	static const unsigned int cpus[] = { 8, 1, 4, 2, 64, 3 };
	struct host host;
	unsigned int i, over = 0;

	host_init(&host, 20000);
	for (i = 0; i < 1800; i++) {
		host.reading.cpus = cpus[i / 10 % ARRAY_SIZE(cpus)];
		over += host_tick(&host, 120000) > host.governor.limit_ppm * 12 / 10 && i % 10 > 2;
		assert_true(host.governor.level <= 6);
		assert_int_equal(host.governor.limit_ppm, governor_limit(20000, host.reading.cpus));
	}
	assert_int_equal(over, 0);
	host.reading.cpus = UINT32_MAX;
	host_run(&host, 120000, 120);
	assert_int_equal(host.governor.level, 0);
	assert_int_equal(host.governor.step, GOVERNOR_ALL);
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
	const struct governor_reading reading = {
		.at_ns = at_ns,
		.walk_ns = (uint64_t)walk_ns,
		.cpus = 1,
	};

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

/* Twice a CPU's part of the budget, at least 4 % of a CPU, and never more than all. */
static void test_brake_share(void **state)
{
	const uint64_t one = BRAKE_SHARE_ALL;

	assert_int_equal(governor_brake_share(0, 8), 0);
	assert_int_equal(governor_brake_share(40000, 1), one * 4 / 100);
	assert_int_equal(governor_brake_share(40000, 2), one * 4 / 100);
	assert_int_equal(governor_brake_share(40000, 4096), one * 4 / 100);
	assert_int_equal(governor_brake_share(640000, 16), one * 8 / 100);
	assert_int_equal(governor_brake_share(10000000, 4), one); /* 1,000 % */
	assert_int_equal(governor_brake_share(40000, 0), one * 4 / 100);
}

static void test_lengths(void **state)
{
	assert_int_equal(governor_sample_below(1, 100000), 200000);
	assert_int_equal(governor_sample_below(GOVERNOR_LEVEL_MAX, 100000), 819200000);
	assert_int_equal(governor_sample_below(1, 0), 20000);
	assert_int_equal(governor_sample_below(10, 3600 * NS_PER_S), 3600 * NS_PER_S << 10);
	/* Slow operations: what is slow is longer than most waits, and is sampled last. */
	assert_int_equal(governor_sample_slow(6400000, 10000000, 0), 0);
	assert_int_equal(governor_sample_slow(10000000, 10000000, 0), 0);
	assert_int_equal(governor_sample_slow(12800000, 10000000, 0), 12800000);
	assert_int_equal(governor_sample_slow(12800000, 10000000, 50000000), 50000000);
	assert_int_equal(governor_sample_slow(51200000, 10000000, 50000000), 51200000);
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
		cmocka_unit_test(test_minute),
		cmocka_unit_test(test_burst),
		cmocka_unit_test(test_storm_after_burst),
		cmocka_unit_test(test_quarter_too_much),
		cmocka_unit_test(test_bursts_of_threads),
		cmocka_unit_test(test_bursts),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_more_and_more_steps),
		cmocka_unit_test(test_middle_step),
		cmocka_unit_test(test_brief),
		cmocka_unit_test(test_storm_of_processes),
		cmocka_unit_test(test_spikes),
		cmocka_unit_test(test_ends_of_windows),
		cmocka_unit_test(test_storms_at_the_border),
		cmocka_unit_test(test_steps_at_the_border),
		cmocka_unit_test(test_no_steps),
		cmocka_unit_test(test_measuring_stops),
		cmocka_unit_test(test_pace_of_measuring),
		cmocka_unit_test(test_measuring_comes_back),
		cmocka_unit_test(test_cpus_come_and_go),
		cmocka_unit_test(test_budgets),
		cmocka_unit_test(test_cpus),
		cmocka_unit_test(test_readings),
		cmocka_unit_test(test_brake_share),
		cmocka_unit_test(test_lengths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
