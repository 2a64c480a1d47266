/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs the brake of one CPU against made-up loads, with a made-up clock. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bpf/brake.h"

enum { US = 1000, WALK_NS = 3 * US, BELOW = 100 * US, SHARE = BRAKE_SHARE_ALL / 25 };

#define MS UINT64_C(1000000)

/* A CPU on which waits end. */
struct load {
	struct brake brake;
	__u64 random;
	uint64_t now, walked_ns, below_max_ns;
	uint64_t waits, estimate_ns, exact_ns;
	double variance;
};

/* Lets a wait of ns end. The same steps as those of wait_end() and pending_record(). */
static void wait_end(struct load *load, uint64_t ns)
{
	uint64_t below = BELOW;

	if (load->brake.steps) {
		brake_update(&load->brake, load->now, 0, SHARE);
		if (load->brake.steps)
			below = brake_below(load->brake.steps, 0, BELOW);
	}
	if (below > load->below_max_ns)
		load->below_max_ns = below;
	load->waits++;
	load->exact_ns += ns;
	if (ns < below)
		load->variance += (double)ns * (double)(below - ns);
	if (ns < below && !sample_has(sample_random(&load->random), ns, below))
		return;
	load->estimate_ns += ns < below ? below : ns;
	load->now += WALK_NS;
	load->walked_ns += WALK_NS;
	brake_update(&load->brake, load->now, WALK_NS, SHARE);
}

/* Lets waits of ns end, one each every_ns, for some time. */
static void run(struct load *load, uint64_t ns, uint64_t every_ns, uint64_t length_ns)
{
	const uint64_t end = load->now + length_ns;
	uint64_t next = load->now;

	while (load->now < end) {
		wait_end(load, ns);
		next += every_ns;
		if (next > load->now)
			load->now = next;
		else
			next = load->now;
	}
}

/* Walks that take less than their share never set the brake, also when some come at once. */
static void test_off(void **state)
{
	struct load load = { .random = 1 };
	unsigned int i;

	run(&load, 200 * US, 100 * US, 10000 * MS); /* 10,000 a second: 3 % */
	assert_int_equal(load.below_max_ns, BELOW);
	assert_int_equal(load.estimate_ns, load.exact_ns);
	for (i = 0; i < 20; i++) {
		load.now += 100 * MS;
		run(&load, 200 * US, 0, 2 * MS);
	}
	assert_int_equal(load.below_max_ns, BELOW);
}

/* A storm is bounded within milliseconds, and its end frees the brake as fast. */
static void test_storm(void **state)
{
	const uint64_t lengths[] = { 30 * US, 150 * US, 1 * MS, 5 * MS };
	size_t i;

	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct load load = { .random = i + 1 };
		uint64_t walked, end;

		run(&load, lengths[i], 2 * US, 20 * MS);
		assert_true(load.walked_ns <= 20 * MS);
		run(&load, lengths[i], 2 * US, 20 * MS);
		walked = load.walked_ns;
		assert_true(load.brake.steps > 0);
		run(&load, lengths[i], 2 * US, 960 * MS);
		/* The first second: the share of it, what a burst may take, and the steps. */
		assert_true(load.walked_ns <= 40 * MS + 2 * MS + BRAKE_STEPS * 200 * US + WALK_NS);
		assert_true(load.walked_ns - walked <= 960 * MS / 25 + BRAKE_STEPS * 200 * US);
		/* It does not shed more than it has to. */
		assert_true(load.walked_ns >= 30 * MS);
		end = load.now;
		run(&load, 50 * US, 1000 * US, 150 * MS);
		assert_int_equal(load.brake.steps, 0);
		assert_true(load.now - end < 151 * MS);
	}
}

/* Waits of all lengths, while the length below which they are sampled goes up and down: no bias. */
static void test_exact(void **state)
{
	enum { RUNS = 100 };
	double off = 0, z, square = 0;
	unsigned int i, n;

	for (i = 0; i < RUNS; i++) {
		struct load load = { .random = 7 * i + 1 };

		for (n = 0; n < 20; n++) {
			run(&load, 20 * US, 2 * US, 30 * MS);
			run(&load, (n % 5 + 1) * 150 * US, 2 * US, 20 * MS);
			run(&load, 70 * US, 100 * US, 30 * MS);
		}
		assert_true(load.below_max_ns > BELOW);
		z = ((double)load.estimate_ns - (double)load.exact_ns) / sqrt(load.variance);
		assert_true(fabs(z) < 5);
		off += z / RUNS;
		square += z * z / RUNS;
	}
	assert_true(fabs(off) < 4 / sqrt(RUNS));
	assert_true(square > 0.5 && square < 1.8);
}

/* Adds walks until the brake is on as far as it goes. */
static void fill(struct brake *brake, uint64_t now, uint32_t share)
{
	unsigned int i;

	for (i = 0; i < 10000 && brake->steps < BRAKE_STEPS; i++)
		brake_update(brake, now, BRAKE_WALK_NS, share);
	assert_int_equal(brake->steps, BRAKE_STEPS);
}

/* A walk in which the CPU was taken away does not set the brake. */
static void test_stolen_time(void **state)
{
	struct brake brake = {};
	unsigned int i;

	for (i = 1; i < 1000; i++) {
		brake_update(&brake, i * 20 * MS, 19 * MS, SHARE);
		assert_int_equal(brake.steps, 0);
	}
}

/* Clocks that stand still or go back, no limit at all, a limit that goes away. */
static void test_odd(void **state)
{
	struct brake brake = {};

	brake_update(&brake, 1000 * MS, 900 * MS, 0);
	assert_int_equal(brake.steps, 0);
	fill(&brake, 2000 * MS, SHARE);
	brake_update(&brake, 1000 * MS, 0, SHARE); /* back */
	assert_int_equal(brake.steps, BRAKE_STEPS);
	brake_update(&brake, 1000 * MS, 0, SHARE); /* stands still */
	assert_int_equal(brake.steps, BRAKE_STEPS);
	brake_update(&brake, 1080 * MS, 0, SHARE);
	assert_int_equal(brake.steps, 0);
	fill(&brake, 1080 * MS, BRAKE_SHARE_ALL);
	brake_update(&brake, UINT64_MAX, 0, BRAKE_SHARE_ALL);
	assert_int_equal(brake.debt_ns, 0);
	fill(&brake, UINT64_MAX, SHARE);
	brake_update(&brake, UINT64_MAX, 0, 0);
	assert_int_equal(brake.debt_ns + brake.steps, 0);
	brake_update(&brake, 5, 100, 1); /* a share of nearly nothing */
	assert_true(brake.steps <= BRAKE_STEPS);
}

/* Returns the number of steps of a brake at load->now. */
static __u32 steps_now(const struct load *load, struct brake *brake)
{
	if (brake->steps)
		brake_update(brake, load->now, 0, SHARE / 2);
	return brake->steps;
}

static bool is_picked(__u32 random, uint64_t ns, uint64_t below)
{
	return ns >= below || sample_has(random, ns, below);
}

static void walk(struct load *load, struct brake *brake)
{
	load->now += WALK_NS;
	brake_update(brake, load->now, WALK_NS, SHARE / 2);
}

/*
 * Lets a thread that was blocked get the CPU of its waker after some delay. The same steps as those
 * of offwake's programs: one random number and two brakes, that of the waker first.
 */
static void wait_with_waker(struct load *load, struct brake *waker, uint64_t blocked_ns,
			    uint64_t delay_ns)
{
	const __u32 random = sample_random(&load->random);
	__u32 waker_steps = steps_now(load, waker), steps;
	uint64_t ns = blocked_ns + delay_ns, below;

	below = waker_steps ? brake_below(waker_steps, 0, BELOW) : BELOW;
	if (is_picked(random, blocked_ns, below))
		walk(load, waker);
	steps = steps_now(load, &load->brake);
	steps = steps > waker_steps ? steps : waker_steps;
	below = steps ? brake_below(steps, 0, BELOW) : BELOW;
	if (below > load->below_max_ns)
		load->below_max_ns = below;
	load->exact_ns += ns;
	if (ns < below)
		load->variance += (double)ns * (double)(below - ns);
	if (!is_picked(random, ns, below))
		return;
	load->estimate_ns += ns < below ? below : ns;
	walk(load, &load->brake);
}

/*
 * The walk of a waker's stacks says that the wait's random number is a small one. If it had an
 * influence on the limit that this number is compared with later, there would be a bias.
 */
static void test_wakers(void **state)
{
	enum { RUNS = 400 };
	double off = 0, z, square = 0;
	unsigned int i, n;

	for (i = 0; i < RUNS; i++) {
		struct load load = { .random = 7 * i + 1 };
		struct brake waker = {};

		for (n = 0; n < 20000; n++) {
			wait_with_waker(&load, &waker, 20 * US, n % 7 * 40 * US);
			load.now += n % 4000 < 3000 ? 5 * US : 50 * US;
		}
		assert_true(load.below_max_ns > BELOW);
		z = ((double)load.estimate_ns - (double)load.exact_ns) / sqrt(load.variance);
		off += z / RUNS;
		square += z * z / RUNS;
	}
	print_message("off by %.3f standard deviations, square %.3f\n", off, square);
	assert_true(fabs(off) < 4 / sqrt(RUNS));
	assert_true(square > 0.5 && square < 1.8);
}

static void test_lengths(void **state)
{
	assert_int_equal(brake_below(1, 0, 100 * US), 200 * US);
	assert_int_equal(brake_below(BRAKE_STEPS, 0, 100 * US), SAMPLE_BELOW_MAX);
	assert_int_equal(brake_below(99, 0, 10 * US), 655360 * US);
	assert_int_equal(brake_below(2, 3 * MS, 100 * US), 12 * MS);
	assert_int_equal(brake_below(1, 0, 0), 2 * BRAKE_LEAST_NS);
	assert_int_equal(brake_below(8, 100 * MS, 0), SAMPLE_BELOW_MAX);
	assert_int_equal(brake_below(1, UINT64_MAX, 0), SAMPLE_BELOW_MAX);
	assert_int_equal(brake_below(1, 0, 2 * SAMPLE_BELOW_MAX), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_off),	    cmocka_unit_test(test_storm),
		cmocka_unit_test(test_exact),	    cmocka_unit_test(test_odd),
		cmocka_unit_test(test_stolen_time), cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_wakers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
