/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shows that what is summed up by a key has the same sums wherever that is done: of made-up threads
 * whose waits are known, six windows are aggregated as they are, folded, merged into one, folded
 * and then merged, merged and then folded. By the thread's name, all agree with the waits to the
 * ns.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/query/aggregate.h"
#include "daemon/store/downsample.h"
#include "daemon/window/fold.h"
#include "daemon/window/row_sums.h"

enum {
	NO_PID = 0x3f000000, /* above any pid_max */
	WINDOWS = 6,
	THREADS = 90,
	COMMS = 7,
	STACKS = 5,
	SEEDS = 40,
};

#define LENGTH_NS (5 * NS_PER_S)
#define BEGIN_NS  (1000 * NS_PER_S)
#define END_NS	  (BEGIN_NS + WINDOWS * LENGTH_NS)

static struct process_table *processes;
static struct stack stacks[STACKS], unread;
static uint64_t seed;

enum { COUNT, BLOCKED, RUNNABLE, THROTTLED, SAMPLES, ON_CPU, BUCKETS, SUMS };

/* The sums of all threads with the same name. */
struct by_comm {
	uint64_t v[COMMS][SUMS];
};

/* The high bits of two steps, as n may be several seconds in ns. */
static uint64_t random_below(uint64_t n)
{
	uint64_t high;

	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	high = seed >> 33;
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (high << 31 | seed >> 33) % n;
}

static int set_up(void **state)
{
	size_t i;

	for (i = 0; i < STACKS; i++)
		stacks[i] = (struct stack){ .raw_id = i + 1,
					    .id = i + 1,
					    .place_id = i + 1,
					    .functions_id = 1 + i / 2,
					    .refs = 1 };
	unread = (struct stack){ .raw_id = 99, .id = 99, .place_id = 99, .refs = 1 };
	return process_table_new(1 << 20, &processes);
}

static int tear_down(void **state)
{
	process_table_free(processes);
	return 0;
}

static void images_make(struct window *window)
{
	struct process_info info = {};
	struct window_image *image;
	uint32_t i;

	for (i = 0; i < THREADS; i++) {
		image = window_add_image(window);
		snprintf(image->comm, sizeof(image->comm), "comm%u", i % COMMS);
		memcpy(info.comm, image->comm, sizeof(info.comm));
		info.id = (struct process_id){ .pid = NO_PID + (int32_t)i, .start_boot_ns = 1 + i };
		info.cgroup = i % 3 ? "/a" : "/b";
		image->process = process_table_add_stored(processes, &info);
		image->uid = image->start_boot_ns = 1 + i;
		image->tid = info.id.pid;
	}
}

/* A wait of a thread: it is blocked until wake_ns, and runnable until end_ns. */
struct wait {
	uint32_t thread;
	uint32_t state;
	struct stack *stack;
	int64_t start_ns, wake_ns, end_ns;
	uint64_t throttled_ns;
};

/* Returns the part of a wait that lies in [from_ns, until_ns); not by the code that is tested. */
static struct window_row part_of(const struct wait *wait, int64_t from_ns, int64_t until_ns)
{
	const int64_t throttled_until = wait->wake_ns + (int64_t)wait->throttled_ns;

	return (struct window_row){
		.blocked_ns = window_overlap_ns(wait->start_ns, wait->wake_ns, from_ns, until_ns),
		.runnable_ns = window_overlap_ns(wait->wake_ns, wait->end_ns, from_ns, until_ns),
		.throttled_ns =
			window_overlap_ns(wait->wake_ns, throttled_until, from_ns, until_ns),
	};
}

/* Adds a wait that lies in the window to the row with its key, as a builder does. */
static void wait_put(struct row_sums *sums, const struct wait *wait)
{
	struct window_row row = part_of(wait, wait->start_ns, wait->end_ns);
	struct row_sum *sum;

	row.image = wait->thread;
	row.state = wait->state;
	row.user = wait->stack;
	row.count = 1;
	row.max_ns = (uint64_t)(wait->end_ns - wait->start_ns);
	row.max_end_ns = wait->end_ns;
	sum = row_sums_get(sums, &row, NULL);
	assert_non_null(sum);
	window_row_add(&sum->row, &row);
	sum->buckets[wait_bucket(row.max_ns)]++;
}

/* Adds a wait to all windows that have a part of it. */
static void wait_add(struct window **windows, struct row_sums *sums, const struct wait *wait)
{
	struct window_span *span;
	struct window_open *open;
	size_t i;

	for (i = 0; i < WINDOWS; i++) {
		struct window *window = windows[i];

		if (wait->start_ns >= window->end_ns || wait->end_ns <= window->start_ns)
			continue;
		if (wait->end_ns > window->end_ns) {
			open = window_add_open(window);
			*open = (struct window_open){
				.image = wait->thread,
				.state = wait->state,
				.user = stack_ref(wait->stack),
				.start_ns = wait->start_ns,
				.wake_ns =
					wait->wake_ns < window->end_ns ? wait->wake_ns : INT64_MAX,
			};
			if (open->wake_ns != INT64_MAX)
				open->throttled_ns = window_overlap_ns(
					wait->wake_ns, wait->wake_ns + (int64_t)wait->throttled_ns,
					INT64_MIN, window->end_ns);
			continue;
		}
		if (wait->start_ns >= window->start_ns) {
			wait_put(&sums[i], wait);
			continue;
		}
		span = window_add_span(window);
		*span = (struct window_span){
			.image = wait->thread,
			.state = wait->state,
			.user = stack_ref(wait->stack),
			.start_ns = wait->start_ns,
			.wake_ns = wait->wake_ns,
			.end_ns = wait->end_ns,
			.throttled_ns = wait->throttled_ns,
		};
	}
}

/* What is within the range; a wait counts when it ends. */
static void wait_note(const struct wait *wait, struct by_comm *truth)
{
	const struct window_row row = part_of(wait, BEGIN_NS, END_NS);
	uint64_t *v = truth->v[wait->thread % COMMS];

	v[BLOCKED] += row.blocked_ns;
	v[RUNNABLE] += row.runnable_ns;
	v[THROTTLED] += row.throttled_ns;
	if (wait->end_ns <= END_NS && wait->end_ns > BEGIN_NS) {
		v[COUNT]++;
		v[BUCKETS] += 1 + wait_bucket((uint64_t)(wait->end_ns - wait->start_ns));
	}
}

/* The waits of one thread, which are a second long on average; some take several windows. */
static void thread_live(struct window **windows, struct row_sums *sums, uint32_t thread,
			struct by_comm *truth)
{
	int64_t now = BEGIN_NS - (int64_t)random_below(20 * NS_PER_S);

	while (now < END_NS) {
		const int64_t most = random_below(9) ? NS_PER_S : 20 * NS_PER_S;
		struct wait wait = {
			.thread = thread,
			.state = 1 + (uint32_t)random_below(2),
			.stack = &stacks[random_below(STACKS)],
			.start_ns = now,
			.wake_ns = now + 1 + (int64_t)random_below((uint64_t)most),
		};

		wait.end_ns = wait.wake_ns + 1 + (int64_t)random_below((uint64_t)most / 4);
		wait.throttled_ns =
			random_below(3) ? 0 : random_below((uint64_t)(wait.end_ns - wait.wake_ns));
		if (wait.end_ns > BEGIN_NS) {
			wait_add(windows, sums, &wait);
			wait_note(&wait, truth);
		}
		now = wait.end_ns + (int64_t)random_below(NS_PER_S);
	}
}

static void samples_make(struct window *window, struct row_sums *sums, struct by_comm *truth)
{
	uint64_t i;

	for (i = 0; i < 200; i++) {
		struct window_sample sample = {
			.image = (uint32_t)random_below(THREADS),
			.user = &stacks[random_below(STACKS)],
			.count = 1 + random_below(3),
			.on_ns = random_below(NS_PER_MS),
		};

		assert_int_equal(row_sums_add_sample(sums, &sample), 0);
		truth->v[sample.image % COMMS][SAMPLES] += sample.count;
		truth->v[sample.image % COMMS][ON_CPU] += sample.on_ns;
	}
	window->sampled = i;
}

static void windows_make(struct window **windows, struct by_comm *truth)
{
	struct row_sums sums[WINDOWS];
	uint32_t i;

	*truth = (struct by_comm){};
	for (i = 0; i < WINDOWS; i++) {
		windows[i] = window_new();
		windows[i]->kind = PROBE_OFFCPU;
		windows[i]->merged_from = 1;
		windows[i]->seq = 1 + i;
		windows[i]->start_ns = BEGIN_NS + (int64_t)i * LENGTH_NS;
		windows[i]->end_ns = windows[i]->start_ns + LENGTH_NS;
		images_make(windows[i]);
		sums[i] = (struct row_sums)ROW_SUMS;
	}
	for (i = 0; i < THREADS; i++)
		thread_live(windows, sums, i, truth);
	for (i = 0; i < WINDOWS; i++) {
		samples_make(windows[i], &sums[i], truth);
		assert_int_equal(row_sums_finish(&sums[i], windows[i]), 0);
		row_sums_fini(&sums[i]);
		window_seal(windows[i]);
	}
}

static void group_add(const struct aggregate_group *group, struct by_comm *sums)
{
	uint64_t *v = sums->v[group->key.comm[4] - '0'];
	size_t i;

	assert_memory_equal(group->key.comm, "comm", 4);
	v[group->is_sample ? SAMPLES : COUNT] += group->count;
	v[ON_CPU] += group->on_ns;
	v[BLOCKED] += group->blocked_ns;
	v[RUNNABLE] += group->runnable_ns;
	v[THROTTLED] += group->throttled_ns;
	for (i = 0; i < WAIT_BUCKETS; i++)
		v[BUCKETS] += group->buckets[i] * (1 + i);
}

/* Asks for the windows by the threads' names. */
static void assert_sums(struct window **windows, size_t n, const struct by_comm *truth)
{
	const struct timeline_list list = { .windows = windows, .n = n }, later = {};
	const struct aggregate_options options = { .group = GROUP_BY_COMM };
	const struct filter filter = { .max_ns = INT64_MAX };
	struct aggregate_group **groups;
	struct aggregate *aggregate;
	struct by_comm sums = {};
	size_t n_groups, i;

	assert_int_equal(aggregate_new(&list, &later, &filter, &options, &unread, &aggregate), 0);
	groups = aggregate_groups(aggregate, &n_groups);
	for (i = 0; i < n_groups; i++)
		group_add(groups[i], &sums);
	assert_memory_equal(&sums, truth, sizeof(sums));
	aggregate_free(aggregate);
}

/* Folds so much that most rows stand for several processes, which have the same name. */
static struct window *folded(struct window *window)
{
	const struct window_fold_limits limits = {
		.max_rows = 1 + random_below(random_below(2) ? 3 : 60),
		.max_folded = 1000,
		.max_images = random_below(2) * 20,
		.max_sums = random_below(2) * 20,
		.preempted_percent = 3,
	};
	struct window *out;

	assert_int_equal(window_fold(window, &limits, &out), 0);
	assert_true(out->folded.rows > 0);
	return out;
}

static void windows_free(struct window **windows)
{
	size_t i;

	for (i = 0; i < WINDOWS; i++)
		window_unref(windows[i]);
}

static void test_all_sums_agree(void **state)
{
	struct window *windows[WINDOWS], *some[WINDOWS], *merged, *out, *again;
	struct by_comm truth;
	size_t i;

	for (seed = 1; seed <= SEEDS; seed++) {
		const uint64_t own = seed;

		windows_make(windows, &truth);
		assert_sums(windows, WINDOWS, &truth);
		for (i = 0; i < WINDOWS; i++)
			some[i] = random_below(2) ? folded(windows[i]) : window_ref(windows[i]);
		assert_sums(some, WINDOWS, &truth);
		assert_int_equal(store_downsample(windows, WINDOWS, &merged), 0);
		assert_sums(&merged, 1, &truth);
		out = folded(merged);
		assert_sums(&out, 1, &truth);
		again = folded(out);
		assert_sums(&again, 1, &truth);
		window_unref(again);
		window_unref(out);
		window_unref(merged);
		assert_int_equal(store_downsample(some, WINDOWS, &merged), 0);
		assert_sums(&merged, 1, &truth);
		window_unref(merged);
		windows_free(some);
		windows_free(windows);
		seed = own;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all_sums_agree, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
