/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Adds made-up windows to the totals and reads these now and then. What the counters of each unit
 * have grown by between two reads must be, to the nanosecond, what a query for the same windows
 * says: blocked, runnable and throttled time, and the blocked time of each class.
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
#include "daemon/session/totals.h"
#include "daemon/window/fold.h"

enum {
	PIDS_FIRST = 0x3f000000, /* above any pid_max */
	PIDS = 60,
	WINDOWS = 40,
	ROWS = 200,
	STACKS = 5,
	LENGTH_NS = 1000000,
	/* The process that is in one window of three, and whose control group is never known. */
	UNKNOWN = PIDS,
};

static const char *const units[] = {
	"/a",
	"/ab",
	"/system.slice/b.service",
	"/c.slice",
	"/a\"\\",
	"/user.slice/user-1.slice/session-1.scope",
	"/d.service",
	"/system.slice/b",
};
static const char *const functions[STACKS] = {
	"__do_sys_flock", "anon_pipe_read", "do_epoll_wait", "hrtimer_nanosleep", "nothing_known",
};
static const uint32_t states[] = { 1, 2, 0x102, STATE_PREEMPTED, 0x402, 1 | STATE_SEEDED };

/* What a thread waits for over several windows. */
struct long_wait {
	int64_t start_ns; /* 0: there is no such wait */
	struct stack *kernel;
};

static struct process_table *processes;
static struct process *process[PIDS + 1 + WINDOWS];
static struct stack stacks[STACKS], unread;
static struct frame frames[STACKS], *frame_of[STACKS];
static struct long_wait long_waits[PIDS];
static struct totals *totals;
static struct window *windows[WINDOWS];
static uint64_t seed;

/* Returns a number below n; the numbers are the same in each run of the test. */
static uint64_t random_below(uint64_t n)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (seed >> 33) % n;
}

/* Sets the facts about process `i`; makes it where it is not known. */
static struct process *process_make(uint32_t i, bool is_known, bool is_new)
{
	char cgroup[128];
	struct process_info info = {
		.id = { .pid = PIDS_FIRST + (int32_t)i, .start_boot_ns = 1 + i },
		.comm = "comm",
		.exe = "/bin/exe",
		.is_kernel = i % 10 == 9,
		.cgroup = is_known ? cgroup : NULL,
	};

	snprintf(cgroup, sizeof(cgroup), "%s%s", units[i % ARRAY_SIZE(units)], i % 2 ? "" : "/x");
	return is_new ? process_table_add_stored(processes, &info)
		      : process_unref(process_table_see_as(processes, &info));
}

static int set_up(void **state)
{
	seed = 1;
	if (process_table_new_stored(&processes) || totals_new(&totals))
		return -1;
	for (uint32_t i = 0; i < ARRAY_SIZE(process); i++)
		process[i] = process_make(i, i < PIDS, true);
	for (uint32_t i = 0; i < STACKS; i++) {
		frames[i] = (struct frame){ .kind = FRAME_KERNEL, .name = (char *)functions[i] };
		frame_of[i] = &frames[i];
		stacks[i] = (struct stack){
			.id = 100 + i,
			.place_id = 100 + i,
			.raw_id = 1000 + i,
			.refs = 1,
			.frames = &frame_of[i],
			.n_frames = 1,
			.is_resolved = true,
		};
	}
	unread = (struct stack){ .id = 1, .refs = 1 };
	return 0;
}

static int tear_down(void **state)
{
	totals = totals_free(totals);
	for (size_t i = 0; i < WINDOWS; i++)
		windows[i] = window_unref(windows[i]);
	for (size_t i = 0; i < ARRAY_SIZE(process); i++)
		process_unref(process[i]);
	processes = process_table_free(processes);
	return 0;
}

static uint32_t image_add(struct window *window, uint32_t i)
{
	struct window_image *image = window_add_image(window);

	assert_non_null(image);
	image->process = process_ref(process[i]);
	image->uid = 1 + i;
	image->tid = PIDS_FIRST + (int32_t)i;
	image->start_boot_ns = 1 + i;
	memcpy(image->comm, "comm", 5);
	return (uint32_t)window->n_images - 1;
}

/*
 * Adds a row of random waits. One in eight stands for short waits, which are also in the exact sums
 * of the thread, with more time than in the row.
 */
static void row_add(struct window *window, uint32_t image)
{
	struct window_row *row = window_add_row(window);
	struct window_image *of = &window->images[image];
	uint32_t buckets[WAIT_BUCKETS] = {}, more = (uint32_t)random_below(50);

	assert_non_null(row);
	row->image = image;
	row->state = states[random_below(ARRAY_SIZE(states))];
	row->count = 1 + random_below(3);
	row->runnable_ns = random_below(500);
	row->throttled_ns = row->state == 0x402 ? random_below(1 + row->runnable_ns) : 0;
	if (!(row->state & STATE_PREEMPTED))
		row->blocked_ns = random_below(2000);
	row->max_ns = row->blocked_ns + row->runnable_ns;
	row->max_end_ns = window->end_ns - 1;
	row->kernel = stack_ref(&stacks[random_below(STACKS)]);
	buckets[wait_bucket(row->max_ns)] = (uint32_t)row->count;
	assert_int_equal(window_row_set_buckets(window, row, buckets), 0);
	of->sums.blocked_ns += row->blocked_ns;
	of->sums.runnable_ns += row->runnable_ns;
	of->sums.throttled_ns += row->throttled_ns;
	/* The exact sums of throttled time leave short waits out. */
	if (random_below(8) || row->state & STATE_PREEMPTED || row->throttled_ns)
		return;
	row->state |= STATE_SAMPLED;
	of->estimate.count += row->count;
	of->estimate.blocked_ns += row->blocked_ns;
	of->estimate.runnable_ns += row->runnable_ns;
	of->sums.blocked_ns += more;
	of->sums.short_count += row->count;
	of->sums.short_blocked_ns += row->blocked_ns + more;
	of->sums.short_runnable_ns += row->runnable_ns;
}

static void open_add(struct window *window, uint32_t image, const struct long_wait *wait)
{
	struct window_open *open = window_add_open(window);

	assert_non_null(open);
	open->image = image;
	open->state = 1;
	open->start_ns = wait->start_ns;
	open->wake_ns = INT64_MAX;
	open->kernel = stack_ref(wait->kernel);
	window->images[image].sums.blocked_ns +=
		window_overlap_ns(wait->start_ns, window->end_ns, window->start_ns, window->end_ns);
}

static void span_add(struct window *window, uint32_t image, const struct long_wait *wait)
{
	struct window_span *span = window_add_span(window);
	struct thread_sums *sums = &window->images[image].sums;

	assert_non_null(span);
	span->image = image;
	span->state = 1;
	span->start_ns = wait->start_ns;
	span->wake_ns = window->start_ns + (int64_t)random_below(LENGTH_NS / 2);
	span->end_ns = span->wake_ns + (int64_t)random_below(LENGTH_NS / 4);
	span->kernel = stack_ref(wait->kernel);
	sums->blocked_ns += (uint64_t)(span->wake_ns - window->start_ns);
	sums->runnable_ns += (uint64_t)(span->end_ns - span->wake_ns);
}

/* Begins, goes on with or ends the long wait of process i. */
static void long_wait_add(struct window *window, uint32_t image, uint32_t i)
{
	struct long_wait *wait = &long_waits[i];

	if (!wait->start_ns && !random_below(6))
		*wait = (struct long_wait){
			.start_ns = window->end_ns - 1 - (int64_t)random_below(LENGTH_NS / 8),
			.kernel = &stacks[random_below(STACKS)],
		};
	else if (wait->start_ns && !random_below(3)) {
		span_add(window, image, wait);
		*wait = (struct long_wait){};
	}
	if (wait->start_ns)
		open_add(window, image, wait);
}

/* Makes a window; in every second one, rows are folded. */
static struct window *window_make(uint32_t n)
{
	const struct window_fold_limits limits = {
		.max_rows = 40,
		.max_folded = 10,
		.max_sums = 10 / WINDOW_SUMS_SHARE,
		.preempted_percent = 5,
	};
	struct window *window = window_new(), *folded;

	assert_non_null(window);
	window->kind = PROBE_OFFCPU;
	window->seq = n + 1;
	window->sample_below_ns = 3000;
	window->start_ns = (1 + (int64_t)n) * LENGTH_NS;
	window->end_ns = window->start_ns + LENGTH_NS;
	for (uint32_t i = 0; i < PIDS; i++)
		long_wait_add(window, image_add(window, i), i);
	if (n % 2)
		image_add(window, PIDS + 1 + n);
	if (n % 3 == 0)
		image_add(window, UNKNOWN);
	for (uint32_t i = 0; i < ROWS; i++)
		row_add(window,
			i < window->n_images ? i : (uint32_t)random_below(window->n_images));
	window_seal(window);
	if (n % 2)
		return window;
	assert_int_equal(window_fold(window, &limits, &folded), 0);
	assert_ptr_not_equal(folded, window);
	window_unref(window);
	return folded;
}

static struct aggregate *query(uint64_t after, uint64_t until, enum group_by group,
			       struct wire_filter *wire)
{
	const struct timeline_list list = { .windows = windows + after, .n = until - after };
	const struct timeline_list later = { .windows = windows + until, .n = WINDOWS - until };
	const struct filter filter = { .max_ns = INT64_MAX, .wire = wire };
	const struct aggregate_options options = { .group = group };
	struct aggregate *aggregate;

	assert_int_equal(aggregate_new(&list, &later, &filter, &options, &unread, &aggregate), 0);
	return aggregate;
}

static const struct totals_unit *unit_find(const struct totals_data *data, const char *path)
{
	static const struct totals_unit none;

	for (size_t i = 0; i < data->n_units; i++)
		if (!strcmp(data->units[i].path, path))
			return &data->units[i];
	return path[0] ? &none : &data->others;
}

static uint64_t blocked_of(const struct totals_unit *unit)
{
	uint64_t ns = 0;

	for (unsigned int i = 0; i < WAIT_CLASS_N; i++)
		ns += unit->blocked_ns[i];
	return ns;
}

/* Compares the times of a unit, by the rows for control groups in an answer. */
static void compare_times(const struct totals_data *before, const struct totals_data *now,
			  struct aggregate *answer, const char *path)
{
	const struct totals_unit *a = unit_find(before, path), *b = unit_find(now, path);
	uint64_t blocked_ns = 0, runnable_ns = 0, throttled_ns = 0;
	struct aggregate_group **groups;
	size_t n;

	groups = aggregate_groups(answer, &n);
	for (size_t i = 0; i < n; i++) {
		size_t length = totals_unit_length(groups[i]->name);

		if (length != strlen(path) || memcmp(groups[i]->name, path, length) != 0)
			continue;
		blocked_ns += groups[i]->blocked_ns;
		runnable_ns += groups[i]->runnable_ns;
		throttled_ns += groups[i]->throttled_ns;
	}
	assert_int_equal(blocked_of(b) - blocked_of(a), blocked_ns);
	assert_int_equal(b->runnable_ns - a->runnable_ns, runnable_ns);
	assert_int_equal(b->throttled_ns - a->throttled_ns, throttled_ns);
}

/* Compares the classes of a unit, by the rows for reasons in an answer about the unit. */
static void compare_classes(const struct totals_data *before, const struct totals_data *now,
			    uint64_t after, uint64_t until, const char *path)
{
	const struct totals_unit *a = unit_find(before, path), *b = unit_find(now, path);
	struct wire_filter wire = {
		.cgroup = path,
		.user_threads = WIRE_BOOL_ABSENT,
		.kernel_threads = WIRE_BOOL_ABSENT,
		.user_stacks = WIRE_BOOL_ABSENT,
		.kernel_stacks = WIRE_BOOL_ABSENT,
		.min_block_ns = WIRE_ABSENT,
		.max_block_ns = WIRE_ABSENT,
	};
	struct aggregate *answer = query(after, until, GROUP_BY_REASON, &wire);
	uint64_t ns[WAIT_CLASS_N] = {};
	struct aggregate_group **groups;
	size_t n;

	groups = aggregate_groups(answer, &n);
	for (size_t i = 0; i < n; i++)
		ns[groups[i]->is_short	? WAIT_CLASS_SHORT
		   : groups[i]->is_idle ? WAIT_CLASS_IDLE
					: wait_class_of(groups[i]->reason)] +=
			groups[i]->blocked_ns;
	for (unsigned int i = 0; i < WAIT_CLASS_N; i++)
		assert_int_equal(b->blocked_ns[i] - a->blocked_ns[i], ns[i]);
	aggregate_free(answer);
}

static void compare(const struct totals_data *before, const struct totals_data *now)
{
	uint64_t after = before->probes[PROBE_OFFCPU].last_seq;
	uint64_t until = now->probes[PROBE_OFFCPU].last_seq;
	struct aggregate *answer;

	assert_true(until >= after);
	assert_int_equal(now->probes[PROBE_OFFCPU].windows, until);
	assert_int_equal(now->probes[PROBE_OFFCPU].covered_ns, until * LENGTH_NS);
	if (after == until) {
		assert_memory_equal(before, now, sizeof(*now));
		return;
	}
	answer = query(after, until, GROUP_BY_CGROUP, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		compare_times(before, now, answer, units[i]);
		compare_classes(before, now, after, until, units[i]);
	}
	compare_times(before, now, answer, "");
	aggregate_free(answer);
}

/*
 * In every second window, there is a process whose control group is read only after the window has
 * ended; in every third one, one whose control group is never known.
 */
static void test_counters_grow_by_what_queries_say(void **state)
{
	static struct totals_data scrapes[2 * WINDOWS + 1];
	size_t n = 1, held = 0;

	for (uint32_t i = 0; i < WINDOWS; i++) {
		windows[i] = window_make(i);
		totals_add(totals, windows[i]);
		if (random_below(2)) {
			totals_read(totals, &scrapes[n]);
			held += scrapes[n++].probes[PROBE_OFFCPU].last_seq == i;
		}
		process_make(PIDS + 1 + i, true, false);
		if (random_below(2))
			totals_read(totals, &scrapes[n++]);
	}
	assert_true(held > 0);
	assert_true(scrapes[n - 1].probes[PROBE_OFFCPU].last_seq >= WINDOWS - 1);
	assert_int_equal(scrapes[n - 1].n_units, ARRAY_SIZE(units));
	assert_true(blocked_of(&scrapes[n - 1].others) > 0);
	for (size_t i = 1; i < n; i++)
		compare(&scrapes[i - 1], &scrapes[i]);
	compare(&scrapes[0], &scrapes[n - 1]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_counters_grow_by_what_queries_say, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
