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
	/* A thread that a cgroup of version 1 has frozen is uninterruptible, as in ps. */
	assert_true(has_state("D", STATE_FROZEN));
	assert_false(has_state("S", STATE_FROZEN));
	assert_string_equal(task_state_letter(STATE_FROZEN), "D");
	assert_string_equal(task_states_letter(STATE_FROZEN | 0x2), "D");
	assert_string_equal(task_states_letter(STATE_FROZEN | 0x1), "mixed");
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

static bool has_reason(const char *glob, enum wait_reason reason)
{
	struct wire_filter wire = wire_none();
	struct filter filter;

	wire.reasons = (struct wire_strs){ .v = &glob, .n = 1 };
	filter = filter_of(&wire);
	assert_true(filter_selects_reasons(&filter));
	assert_false(filter_has_shorts(&filter));
	return filter_has_reason(&filter, reason);
}

static void test_reasons(void **state)
{
	const struct wire_filter none = wire_none();
	struct filter empty = filter_of(&none);
	struct wire_filter wire = wire_none();
	struct wire_error error = {};
	const char *name = "flok", *many[33];
	struct filter filter;

	assert_false(filter_selects_reasons(&empty));
	assert_true(filter_has_reason(&empty, REASON_UNKNOWN));
	assert_true(has_reason("flock", REASON_FLOCK));
	assert_false(has_reason("flock", REASON_FCNTL));
	assert_true(has_reason("unknown", REASON_UNKNOWN));
	assert_true(has_reason("kernel-*", REASON_KERNEL_PERCPU_RWSEM));
	assert_false(has_reason("kernel-*", REASON_MUTEX));
	wire.reasons = (struct wire_strs){ .v = &name, .n = 1 };
	assert_int_equal(filter_init(&filter, &wire, &error), -EINVAL);
	assert_string_equal(error.what, "reasons");
	assert_non_null(strstr(error.message, "did you mean flock?"));
	wire_error_clear(&error);
	/* A word of an earlier version is not taken, but known. */
	name = "disk-read";
	assert_int_equal(filter_init(&filter, &wire, &error), -EINVAL);
	assert_string_equal(error.message, "disk-read is called file-read now");
	wire_error_clear(&error);
	/* Most words are nothing like a reason. */
	name = "xyzzy";
	assert_int_equal(filter_init(&filter, &wire, &error), -EINVAL);
	assert_null(strstr(error.message, "did you mean"));
	wire_error_clear(&error);
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = "flock";
	wire.reasons = (struct wire_strs){ .v = many, .n = 32 };
	assert_int_equal(filter_init(&filter, &wire, &error), 0);
	wire.reasons.n = 33;
	assert_int_equal(filter_init(&filter, &wire, &error), -EINVAL);
	assert_string_equal(error.message, "33 reasons are too many: at most 32");
	wire_error_clear(&error);
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

/*
 * A text that no name can match is not compared with the threads of all windows: one of 100,000
 * bytes took a CPU for a minute.
 */
static void test_long_texts_are_refused(void **state)
{
	static char text[4098];
	const char *const list = text;
	struct wire_filter wire;
	const struct {
		const char *what;
		const char **member;
		struct wire_strs *list;
		size_t max;
	} members[] = {
		{ "comm", &wire.comm, NULL, 256 },
		{ "unit", &wire.unit, NULL, 256 },
		{ "cgroup", &wire.cgroup, NULL, 4096 },
		{ "comms", NULL, &wire.comms, 256 },
		{ "not_comms", NULL, &wire.not_comms, 256 },
		{ "units", NULL, &wire.units, 256 },
		{ "not_units", NULL, &wire.not_units, 256 },
		{ "cgroups", NULL, &wire.cgroups, 4096 },
		{ "not_cgroups", NULL, &wire.not_cgroups, 4096 },
		{ "functions", NULL, &wire.functions, 256 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		wire = wire_none();
		if (members[i].member)
			*members[i].member = text;
		else
			*members[i].list = (struct wire_strs){ .v = &list, .n = 1 };
		memset(text, 'a', members[i].max + 1);
		text[members[i].max + 1] = '\0';
		assert_refused(&wire, members[i].what);
		text[members[i].max] = '\0';
		filter_of(&wire);
	}
}

static const struct process_info server = {
	.id.pid = 42,
	.comm = "server",
	.cgroup = "/system.slice/some.service/sub",
};
static const struct window_image worker = { .tid = 43, .comm = "worker" };

static bool has_image(const struct wire_filter *wire)
{
	struct filter filter = filter_of(wire);

	return filter_has_image(&filter, &worker, &server);
}

static bool is_excluded(const struct wire_filter *wire)
{
	struct filter filter = filter_of(wire);

	return filter_excludes_image(&filter, &worker, &server);
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

/* The thread of has_image() is a worker of the process server in some.service. */
static void test_lists_of_names(void **state)
{
	const char *names[] = { "nobody", "work*" }, *units[] = { "other", "some" };
	const char *cgroups[] = { "/user.slice", "/system.slice" };
	struct wire_filter wire = wire_none();
	struct filter filter;

	wire.comms = (struct wire_strs){ .v = names, .n = 1 };
	assert_false(has_image(&wire));
	wire.comms.n = 2;
	assert_true(has_image(&wire));
	wire.units = (struct wire_strs){ .v = units, .n = 2 };
	wire.cgroups = (struct wire_strs){ .v = cgroups, .n = 2 };
	assert_true(has_image(&wire));
	wire.cgroups.n = 1;
	assert_false(has_image(&wire));
	filter = filter_of(&wire);
	assert_true(filter_selects_threads(&filter));
	assert_false(filter_is_empty(&filter));
}

static void test_exceptions(void **state)
{
	const char *names[] = { "nobody", "work*" }, *unit = "some", *cgroup = "/system.slice";
	struct wire_filter wire = wire_none();
	struct filter filter;

	wire.not_comms = (struct wire_strs){ .v = names, .n = 1 };
	assert_true(has_image(&wire));
	assert_false(is_excluded(&wire));
	wire.not_comms.n = 2;
	assert_false(has_image(&wire));
	assert_true(is_excluded(&wire));
	/* A thread that the filter does not select is not an exception. */
	wire.comm = "nobody";
	assert_false(is_excluded(&wire));
	filter = filter_of(&wire);
	assert_true(filter_selects_threads(&filter));
	wire = wire_none();
	wire.not_units = (struct wire_strs){ .v = &unit, .n = 1 };
	assert_false(has_image(&wire));
	filter = filter_of(&wire);
	assert_false(filter_selects_threads(&filter));
	wire = wire_none();
	wire.not_cgroups = (struct wire_strs){ .v = &cgroup, .n = 1 };
	assert_false(has_image(&wire));
	wire = wire_none();
	wire.not_pids = (struct int_list){ .v = (const int64_t[]){ 1, 2 }, .n = 2 };
	assert_true(has_image(&wire));
}

static void test_exceptions_of_waits(void **state)
{
	const char *state_name = "D", *reason = "kernel-*", *function = "f";
	struct wire_filter wire = wire_none();
	struct filter filter;

	wire.not_states = (struct wire_strs){ .v = &state_name, .n = 1 };
	filter = filter_of(&wire);
	assert_false(filter_has_state(&filter, 0x2));
	assert_true(filter_has_state(&filter, 0x1));
	assert_true(filter_has_shorts(&filter));
	assert_false(filter_has_all_shorts(&filter));
	wire = wire_none();
	wire.not_reasons = (struct wire_strs){ .v = &reason, .n = 1 };
	filter = filter_of(&wire);
	assert_true(filter_selects_reasons(&filter));
	assert_false(filter_has_reason(&filter, REASON_KERNEL_PERCPU_RWSEM));
	assert_true(filter_has_reason(&filter, REASON_MUTEX));
	assert_true(filter_has_shorts(&filter));
	wire = wire_none();
	wire.functions = (struct wire_strs){ .v = &function, .n = 1 };
	filter = filter_of(&wire);
	assert_true(filter_selects_functions(&filter));
	assert_false(filter_has_shorts(&filter));
	wire = wire_none();
	wire.not_functions = (struct wire_strs){ .v = &function, .n = 1 };
	filter = filter_of(&wire);
	assert_true(filter_selects_functions(&filter));
	assert_true(filter_has_shorts(&filter));
	assert_false(filter_has_all_shorts(&filter));
}

static void test_bad_lists_are_refused(void **state)
{
	struct wire_filter wire = wire_none();
	const char *many[33], *empty = "", *state_name = "Q", *reason = "flok";
	char longest[258] = "";
	const char *name = longest;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = "a";
	wire.not_comms = (struct wire_strs){ .v = many, .n = 33 };
	assert_refused(&wire, "not_comms");
	wire = wire_none();
	wire.functions = (struct wire_strs){ .v = &empty, .n = 1 };
	assert_refused(&wire, "functions");
	memset(longest, 'f', 257);
	wire = wire_none();
	wire.callers = (struct wire_strs){ .v = &name, .n = 1 };
	assert_refused(&wire, "callers");
	longest[256] = '\0';
	filter_of(&wire);
	wire = wire_none();
	wire.not_states = (struct wire_strs){ .v = &state_name, .n = 1 };
	assert_refused(&wire, "not_states");
	wire = wire_none();
	wire.not_reasons = (struct wire_strs){ .v = &reason, .n = 1 };
	assert_refused(&wire, "not_reasons");
	wire = wire_none();
	wire.not_pids = (struct int_list){ .v = (const int64_t[]){ 0 }, .n = 1 };
	assert_refused(&wire, "not_pids");
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
static struct filter_sums sums_of_three(void)
{
	return (struct filter_sums){
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
	struct filter_sums sums = sums_of_three(), before = sums;
	struct filter filter = times(0, INT64_MAX);

	assert_true(filter_row(&filter, &sums));
	assert_memory_equal(&sums, &before, sizeof(sums));
}

static void test_longest_is_exact(void **state)
{
	struct filter_sums sums = sums_of_three();
	struct filter filter = times(40001, INT64_MAX);

	/* The bucket of 40 us reaches to 65 us: these waits are shorter, too. */
	assert_false(filter_row(&filter, &sums));
	sums = sums_of_three();
	sums.buckets[1] = 0;
	sums.buckets[6] = 3;
	assert_false(filter_row(&filter, &sums));
	sums = sums_of_three();
	filter = times(40000, INT64_MAX);
	assert_true(filter_row(&filter, &sums));
	assert_int_equal(sums.count, 1);
	assert_int_equal(sums.max_ns, 40000);
	assert_true(sums.has_max);
	assert_false(sums.is_estimate);
	assert_in_range(sums.blocked_ns + sums.runnable_ns, 39998, 40000);
	assert_int_equal(sums.buckets[1], 0);
	assert_int_equal(sums.buckets[6], 1);
}

static void test_longest_is_left_out(void **state)
{
	struct filter_sums sums = sums_of_three();
	struct filter filter = times(0, 39999);

	assert_true(filter_row(&filter, &sums));
	assert_int_equal(sums.count, 2);
	assert_in_range(sums.blocked_ns + sums.runnable_ns, 3998, 4000);
	assert_false(sums.has_max);
	assert_int_equal(sums.max_ns, 1024);
	assert_int_equal(sums.buckets[6], 0);
}

static void test_one_wait_is_exact(void **state)
{
	struct filter_sums sums = { .count = 1,
				    .blocked_ns = 5,
				    .runnable_ns = 1995,
				    .max_ns = 2000,
				    .has_max = true,
				    .buckets = { [1] = 1 } };
	struct filter_sums before = sums;
	struct filter filter = times(1999, 2000);

	assert_true(filter_row(&filter, &sums));
	assert_memory_equal(&sums, &before, sizeof(sums));
	filter = times(1025, 1999);
	assert_false(filter_row(&filter, &sums));
}

/* Whatever is cut out: parts never exceed the whole, and two halves are not more than it. */
static void test_sums_never_grow(void **state)
{
	unsigned int seed = 1, n, i;

	for (n = 0; n < 20000; n++) {
		struct filter_sums whole = { .has_max = true }, low, high;
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

/* A row of waits that were picked at random below a limit, and what those below `at` stand for. */
static struct filter_sums sampled_part(unsigned int *seed, uint64_t below, uint64_t at,
				       uint64_t *low_ns)
{
	struct filter_sums sums = { .has_max = true, .stands_ns = below };
	unsigned int i;

	*low_ns = 0;
	for (i = (unsigned int)rand_r(seed) % 20 + 1; i > 0; i--) {
		uint64_t ns = 1000 + (uint64_t)rand_r(seed) % (below - 1000);
		uint64_t weight = (below + ns / 2) / ns;

		sums.count += weight;
		sums.buckets[wait_bucket(ns)] += weight;
		sums.blocked_ns += below / 3;
		sums.runnable_ns += below - below / 3;
		sums.max_ns = ns > sums.max_ns ? ns : sums.max_ns;
		*low_ns += ns < at ? below : 0;
	}
	return sums;
}

static uint64_t part_ns(bool has, const struct filter_sums *sums)
{
	return has ? sums->blocked_ns + sums->runnable_ns : 0;
}

/*
 * Each wait that was picked at random stands for a time longer than its own. Cutting such rows at
 * an edge of a bucket leaves each side what its waits stand for, as well as buckets can tell; a
 * filter that lets all of them pass takes nothing away.
 */
static void test_sampled_rows_are_cut(void **state)
{
	unsigned int seed = 7, n;

	for (n = 0; n < 20000; n++) {
		uint64_t below = UINT64_C(16384) << (rand_r(&seed) % 16), low_ns;
		uint64_t at = UINT64_C(1024) << (rand_r(&seed) % 16);
		struct filter_sums whole = sampled_part(&seed, below, at, &low_ns), low, high, all;
		struct filter under = times(0, (int64_t)at - 1),
			      over = times((int64_t)at, INT64_MAX), every = times(512, INT64_MAX);
		uint64_t sum = part_ns(true, &whole), low_got, high_got;
		bool has_low, has_high;

		low = high = all = whole;
		has_low = filter_row(&under, &low);
		has_high = filter_row(&over, &high);
		low_got = part_ns(has_low, &low);
		high_got = part_ns(has_high, &high);
		assert_int_equal((has_low ? low.count : 0) + (has_high ? high.count : 0),
				 whole.count);
		assert_in_range(low_got + high_got, sum - 4, sum + 4);
		assert_true(low_got * 3 + 4 >= low_ns && low_got <= low_ns * 3 + 4);
		assert_true(filter_row(&every, &all));
		assert_in_range(part_ns(true, &all), sum - 2, sum);
		assert_int_equal(all.count, whole.count);
	}
}

/* The longest wait is known exactly. Where it is left out, so is all that it stands for. */
static void test_one_sampled_wait(void **state)
{
	const struct filter_sums sums = {
		.count = 5,
		.blocked_ns = 100000,
		.max_ns = 20000,
		.has_max = true,
		.stands_ns = 100000,
		.buckets = { [5] = 5 },
	};
	struct filter_sums cut = sums;
	struct filter filter = times(20000, INT64_MAX);

	assert_true(filter_row(&filter, &cut));
	assert_int_equal(cut.count, 5);
	assert_int_equal(cut.blocked_ns, 100000);
	cut = sums;
	filter = times(0, 19999);
	assert_false(filter_row(&filter, &cut));
	cut = sums;
	filter = times(20001, INT64_MAX);
	assert_false(filter_row(&filter, &cut));
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
	const char *states[] = { "D", "preempted", "0x4" };
	int64_t pids[] = { 1 };
	struct wire_filter wire = {
		.pids = { pids, 1 },
		.unit = "a.service",
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
	filter_to_programs(&filter, &programs);
	assert_true(programs.has_pids && !programs.has_tids && programs.kernel_threads);
	assert_true(!programs.user_threads && programs.has_states && programs.has_preempted);
	assert_true(programs.drops_user && !programs.drops_kernel);
	assert_int_equal(programs.state_bits, 4 | STATE_FROZEN);
	assert_int_equal(programs.max_wait_ns, 5000);
	assert_int_equal(programs.cgroups, 1 << 1);
	assert_int_equal(programs.comm_len, 0);
	for (size_t i = 0; i < FILTER_STATES; i++)
		if (programs.states & 1U << i)
			assert_int_equal(programs.state_order[i], 0x2);
	for (size_t i = 0; i < ARRAY_SIZE(globs); i++) {
		wire.comm = globs[i].glob;
		filter_to_programs(&filter, &programs);
		assert_int_equal(programs.comm_len, globs[i].len);
		assert_memory_equal(programs.comm, globs[i].glob,
				    globs[i].len < 16 ? globs[i].len : 15);
	}
	filter.wire = NULL;
	filter_to_programs(&filter, &programs);
	assert_int_equal(programs.cgroups, 0);
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

static void test_empty(void **state)
{
	struct wire_filter wire = wire_none();
	struct filter base, filter;

	filter = filter_of(NULL);
	assert_true(filter_is_empty(&filter));
	filter = filter_of(&wire);
	assert_true(filter_is_empty(&filter));
	wire.comm = "a";
	base = filter_of(&wire);
	assert_false(filter_is_empty(&base));
	filter.base = &base;
	assert_false(filter_is_empty(&filter));
	wire = wire_none();
	wire.max_block_ns = 0;
	filter = filter_of(&wire);
	assert_false(filter_is_empty(&filter));
	wire = wire_none();
	wire.user_stacks = 1;
	filter = filter_of(&wire);
	assert_false(filter_is_empty(&filter));
	wire.user_stacks = WIRE_BOOL_ABSENT;
	wire.states.n = 1;
	wire.states.v = (const char *[]){ "D" };
	filter = filter_of(&wire);
	assert_false(filter_is_empty(&filter));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_bad_filters_are_refused),
		cmocka_unit_test(test_images),
		cmocka_unit_test(test_cgroups),
		cmocka_unit_test(test_lists_of_names),
		cmocka_unit_test(test_exceptions),
		cmocka_unit_test(test_exceptions_of_waits),
		cmocka_unit_test(test_bad_lists_are_refused),
		cmocka_unit_test(test_buckets),
		cmocka_unit_test(test_no_times_change_nothing),
		cmocka_unit_test(test_longest_is_exact),
		cmocka_unit_test(test_longest_is_left_out),
		cmocka_unit_test(test_one_wait_is_exact),
		cmocka_unit_test(test_sums_never_grow),
		cmocka_unit_test(test_sampled_rows_are_cut),
		cmocka_unit_test(test_one_sampled_wait),
		cmocka_unit_test(test_long_texts_are_refused),
		cmocka_unit_test(test_programs_have_the_filter),
		cmocka_unit_test(test_known_threads),
		cmocka_unit_test(test_base),
		cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
