/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bpf/layout.h"
#include "common/base.h"
#include "daemon/session/filter.h"
#include "daemon/window/task_state.h"

static struct wire_filter wire_none(void)
{
	return (struct wire_filter){
		.user_threads = WIRE_BOOL_ABSENT,
		.kernel_threads = WIRE_BOOL_ABSENT,
		.user_stacks = WIRE_BOOL_ABSENT,
		.kernel_stacks = WIRE_BOOL_ABSENT,
		.min_block_ns = WIRE_ABSENT,
		.max_block_ns = WIRE_ABSENT,
	};
}

static struct filter filter_of(const struct wire_filter *wire)
{
	struct wire_error error;
	struct filter filter;

	assert_int_equal(filter_init(&filter, wire, &error), 0);
	return filter;
}

static bool has_state(const char *name, uint32_t state)
{
	struct wire_filter wire = wire_none();
	struct filter filter;

	wire.states = (struct wire_strs){ .v = &name, .n = 1 };
	filter = filter_of(&wire);
	return filter_has_state(&filter, state);
}

static void test_states(void **state)
{
	assert_true(has_state("D", 0x2));
	assert_true(has_state("uninterruptible", 0x102));
	assert_false(has_state("D", 0x402));
	assert_true(has_state("I", 0x402));
	assert_false(has_state("I", 0x2));
	assert_true(has_state("S", 0x1 | STATE_SEEDED));
	assert_false(has_state("S", STATE_PREEMPTED));
	assert_true(has_state("R", STATE_PREEMPTED | STATE_SEEDED));
	assert_true(has_state("0", STATE_NEW));
	/* A number is bits, as bcc takes it. */
	assert_true(has_state("2", 0x402));
	assert_string_equal(task_state_letter(0x402), "I");
	assert_string_equal(task_state_letter(0x102), "D");
	assert_string_equal(task_state_letter(STATE_NEW), "R");
	assert_string_equal(task_states_letter(0x102), "D");
	assert_string_equal(task_states_letter(0x402), "I");
	assert_string_equal(task_states_letter(STATE_NEW | STATE_PREEMPTED), "R");
	assert_string_equal(task_states_letter(STATE_PREEMPTED | 1), "mixed");
	assert_string_equal(task_states_letter(0x402 | 1), "mixed");
}

static void assert_refused(const struct wire_filter *wire, const char *what)
{
	struct wire_error error = {};
	struct filter filter;

	assert_int_equal(filter_init(&filter, wire, &error), -EINVAL);
	assert_int_equal(error.code, ERROR_INVALID_FILTER);
	assert_string_equal(error.what, what);
	free((char *)error.what);
	free((char *)error.message);
}

static void test_bad_filters_are_refused(void **state)
{
	static const char *const bad[] = { "Q", "", "0x10000", "-1", "1x" };
	struct wire_filter wire = wire_none();
	int64_t zero = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		wire.states = (struct wire_strs){ .v = &bad[i], .n = 1 };
		assert_refused(&wire, "states");
	}
	wire = wire_none();
	wire.pids = (struct int_list){ .v = &zero, .n = 1 };
	assert_refused(&wire, "pids");
	wire = wire_none();
	wire.min_block_ns = 2;
	wire.max_block_ns = 1;
	assert_refused(&wire, "max_block_ns");
	wire = wire_none();
	wire.user_stacks = wire.kernel_stacks = 1;
	assert_refused(&wire, "kernel_stacks");
}

static bool has_image(const struct wire_filter *wire)
{
	struct process_info info = {
		.id.pid = 42,
		.comm = "server",
		.cgroup = "/system.slice/some.service/sub",
	};
	struct window_image image = { .tid = 43, .comm = "worker" };
	struct filter filter = filter_of(wire);

	return filter_has_image(&filter, &image, &info);
}

static void test_images(void **state)
{
	struct wire_filter wire = wire_none();
	int64_t ids[] = { 41, 42 }, other = 44;

	assert_true(has_image(&wire));
	wire.pids = (struct int_list){ .v = ids, .n = 2 };
	assert_true(has_image(&wire));
	wire.tids = (struct int_list){ .v = &other, .n = 1 };
	assert_false(has_image(&wire));
	wire = wire_none();
	wire.kernel_threads = 1;
	assert_false(has_image(&wire));
	wire = wire_none();
	wire.comm = "work*";
	assert_true(has_image(&wire));
	wire.comm = "ser?er";
	assert_true(has_image(&wire));
	wire.comm = "work";
	assert_false(has_image(&wire));
}

static void test_cgroups(void **state)
{
	struct wire_filter wire = wire_none();

	wire.cgroup = "/system.slice/";
	assert_true(has_image(&wire));
	wire.cgroup = "/system.slice/some";
	assert_false(has_image(&wire));
	wire = wire_none();
	wire.unit = "some";
	assert_true(has_image(&wire));
	wire.unit = "some.service";
	assert_true(has_image(&wire));
	wire.unit = "ome.service";
	assert_false(has_image(&wire));
	wire.unit = "system.slice";
	assert_true(has_image(&wire));
}

static void test_buckets(void **state)
{
	unsigned int i;

	assert_int_equal(wait_bucket(0), 0);
	assert_int_equal(wait_bucket(1023), 0);
	assert_int_equal(wait_bucket(UINT64_MAX), WAIT_BUCKETS - 1);
	for (i = 1; i < WAIT_BUCKETS; i++) {
		assert_int_equal(wait_bucket(wait_bucket_least_ns(i)), i);
		assert_int_equal(wait_bucket(wait_bucket_least_ns(i) - 1), i - 1);
	}
}

static struct filter times(int64_t min_ns, int64_t max_ns)
{
	return (struct filter){ .min_ns = min_ns, .max_ns = max_ns };
}

/* Waits of 2, 2 and 40 us. */
static struct filter_part part_of_three(void)
{
	return (struct filter_part){
		.count = 3,
		.blocked_ns = 30000,
		.runnable_ns = 14000,
		.max_ns = 40000,
		.has_max = true,
		.buckets = { [1] = 2, [6] = 1 },
	};
}

static void test_no_times_change_nothing(void **state)
{
	struct filter_part part = part_of_three(), before = part;
	struct filter filter = times(0, INT64_MAX);

	assert_true(filter_row(&filter, &part));
	assert_memory_equal(&part, &before, sizeof(part));
}

static void test_longest_is_exact(void **state)
{
	struct filter_part part = part_of_three();
	struct filter filter = times(40001, INT64_MAX);

	/* The bucket of 40 us reaches to 65 us: these waits are shorter, too. */
	assert_false(filter_row(&filter, &part));
	part = part_of_three();
	part.buckets[1] = 0;
	part.buckets[6] = 3;
	assert_false(filter_row(&filter, &part));
	part = part_of_three();
	filter = times(40000, INT64_MAX);
	assert_true(filter_row(&filter, &part));
	assert_int_equal(part.count, 1);
	assert_int_equal(part.max_ns, 40000);
	assert_true(part.has_max);
	assert_false(part.is_estimate);
	assert_in_range(part.blocked_ns + part.runnable_ns, 39998, 40000);
	assert_int_equal(part.buckets[1], 0);
	assert_int_equal(part.buckets[6], 1);
}

static void test_longest_is_left_out(void **state)
{
	struct filter_part part = part_of_three();
	struct filter filter = times(0, 39999);

	assert_true(filter_row(&filter, &part));
	assert_int_equal(part.count, 2);
	assert_in_range(part.blocked_ns + part.runnable_ns, 3998, 4000);
	assert_false(part.has_max);
	assert_int_equal(part.max_ns, 1024);
	assert_int_equal(part.buckets[6], 0);
}

static void test_one_wait_is_exact(void **state)
{
	struct filter_part part = { .count = 1,
				    .blocked_ns = 5,
				    .runnable_ns = 1995,
				    .max_ns = 2000,
				    .has_max = true,
				    .buckets = { [1] = 1 } };
	struct filter_part before = part;
	struct filter filter = times(1999, 2000);

	assert_true(filter_row(&filter, &part));
	assert_memory_equal(&part, &before, sizeof(part));
	filter = times(1025, 1999);
	assert_false(filter_row(&filter, &part));
}

/* Whatever is cut out: parts never exceed the whole, and two halves are not more than it. */
static void test_sums_never_grow(void **state)
{
	unsigned int seed = 1, n, i;

	for (n = 0; n < 20000; n++) {
		struct filter_part whole = { .has_max = true }, low, high;
		int64_t at = (int64_t)1 << (rand_r(&seed) % 36);
		struct filter below = times(0, at - 1), above = times(at, INT64_MAX);
		bool has_low, has_high;

		for (i = (unsigned int)rand_r(&seed) % 20 + 1; i > 0; i--) {
			uint64_t ns = (uint64_t)rand_r(&seed) >> (rand_r(&seed) % 31);

			whole.count++;
			whole.buckets[wait_bucket(ns)]++;
			whole.blocked_ns += ns / 3;
			whole.runnable_ns += ns - ns / 3;
			whole.max_ns = ns > whole.max_ns ? ns : whole.max_ns;
		}
		low = high = whole;
		has_low = filter_row(&below, &low);
		has_high = filter_row(&above, &high);
		assert_true(has_low || has_high);
		assert_true(!has_low || (low.blocked_ns <= whole.blocked_ns &&
					 low.runnable_ns <= whole.runnable_ns));
		assert_true(!has_high || (high.blocked_ns <= whole.blocked_ns &&
					  high.runnable_ns <= whole.runnable_ns));
		/* The edge is one of a bucket: each wait is on one side only. */
		if (at >= 1024 && at <= (int64_t)wait_bucket_least_ns(WAIT_BUCKETS - 1)) {
			assert_int_equal((has_low ? low.count : 0) + (has_high ? high.count : 0),
					 whole.count);
			assert_true((has_low ? low.blocked_ns : 0) +
					    (has_high ? high.blocked_ns : 0) <=
				    whole.blocked_ns);
		}
	}
}

/* Checks that the filter of the BPF programs lets through all that the daemon's filter does. */
static void test_programs_have_the_filter(void **state)
{
	static const struct {
		const char *glob;
		uint32_t len;
	} globs[] = {
		{ "mysqld", 7 },
		{ "mysql*", 5 },
		{ "*d", 0 },
		{ "a?b", 1 },
		{ "a[bc]", 1 },
		{ "x\\*", 1 },
		{ "a-name-of-15-ch", 16 },
		{ "longer-than-any-name", 15 },
	};
	const struct filter_cgroup cgroups[FILTER_CGROUPS] = { { .id = 7, .level = 2 } };
	const char *states[] = { "D", "preempted", "0x4" };
	int64_t pids[] = { 1 };
	struct wire_filter wire = {
		.pids = { pids, 1 },
		.kernel_threads = 1,
		.kernel_stacks = 1,
		.min_block_ns = WIRE_ABSENT,
		.max_block_ns = 5000,
		.states = { states, ARRAY_SIZE(states) },
	};
	struct session_filter programs;
	struct wire_error error;
	struct filter filter;

	assert_int_equal(filter_init(&filter, &wire, &error), 0);
	filter_to_programs(&filter, cgroups, &programs);
	assert_true(programs.has_pids && !programs.has_tids && programs.kernel_threads);
	assert_true(!programs.user_threads && programs.has_states && programs.has_preempted);
	assert_true(programs.drops_user && !programs.drops_kernel);
	assert_int_equal(programs.state_bits, 4);
	assert_int_equal(programs.max_wait_ns, 5000);
	assert_int_equal(programs.cgroups[0].id, 7);
	assert_int_equal(programs.comm_len, 0);
	for (size_t i = 0; i < FILTER_STATES; i++)
		if (programs.states & 1U << i)
			assert_int_equal(programs.state_order[i], 0x2);
	for (size_t i = 0; i < ARRAY_SIZE(globs); i++) {
		wire.comm = globs[i].glob;
		filter_to_programs(&filter, cgroups, &programs);
		assert_int_equal(programs.comm_len, globs[i].len);
		assert_memory_equal(programs.comm, globs[i].glob,
				    globs[i].len < 16 ? globs[i].len : 15);
	}
	filter.wire = NULL;
	filter_to_programs(&filter, cgroups, &programs);
	assert_int_equal(programs.cgroups[0].id, 0);
}

/* Rows of processes, of which the programs recorded the threads that were asked for. */
static void test_known_threads(void **state)
{
	const struct process_info info = { .id.pid = 42, .comm = "server" };
	const struct window_image image = { .tid = 42, .comm = "server" };
	int64_t other = 43;
	struct wire_filter wire = wire_none();
	struct filter filter;

	wire.tids = (struct int_list){ .v = &other, .n = 1 };
	filter = filter_of(&wire);
	assert_false(filter_has_image(&filter, &image, &info));
	filter.knows_threads = true;
	assert_true(filter_has_image(&filter, &image, &info));
	wire = wire_none();
	wire.comm = "work*";
	assert_true(filter_has_image(&filter, &image, &info));
	wire.comm = "worker";
	assert_true(filter_has_image(&filter, &image, &info));
	/* The programs compare only the beginning of such a name. */
	wire.comm = "work*r";
	assert_false(filter_has_image(&filter, &image, &info));
	wire.comm = "s*r";
	assert_true(filter_has_image(&filter, &image, &info));
}

/* A session's filter holds besides the question's. */
static void test_base(void **state)
{
	const struct wire_filter wire = {
		.min_block_ns = 100,
		.max_block_ns = 1000,
	};
	struct filter base, filter;
	struct wire_error error;

	assert_int_equal(filter_init(&base, &wire, &error), 0);
	assert_int_equal(filter_init(&filter, NULL, &error), 0);
	assert_true(filter_has_duration(&filter, 50) && filter_has_shorts(&filter));
	filter.base = &base;
	assert_false(filter_has_duration(&filter, 50));
	assert_false(filter_has_duration(&filter, 1001));
	assert_true(filter_has_duration(&filter, 100));
	assert_false(filter_has_shorts(&filter));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_bad_filters_are_refused),
		cmocka_unit_test(test_images),
		cmocka_unit_test(test_cgroups),
		cmocka_unit_test(test_buckets),
		cmocka_unit_test(test_no_times_change_nothing),
		cmocka_unit_test(test_longest_is_exact),
		cmocka_unit_test(test_longest_is_left_out),
		cmocka_unit_test(test_one_wait_is_exact),
		cmocka_unit_test(test_sums_never_grow),
		cmocka_unit_test(test_programs_have_the_filter),
		cmocka_unit_test(test_known_threads),
		cmocka_unit_test(test_base),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
