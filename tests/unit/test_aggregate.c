/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Aggregates made-up windows of 1000 us each; CLOCK_REALTIME is 1 s ahead of their clock. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/query/aggregate.h"
#include "daemon/query/answer.h"
#include "daemon/query/own_process.h"
#include "daemon/query/snapshot_internal.h"
#include "daemon/window/task_state.h"

#define US	  NS_PER_US
#define LENGTH_NS (1000 * US)

enum { NO_PID = 0x3f000000 /* above any pid_max */, MANY = 300 };

static struct process_table *processes;
static struct window *windows[3];
static struct timeline_list list, later;
static struct filter filter;
static struct aggregate_options options;
static struct stack kernel, other, user, unread;
static struct aggregate *aggregate;

/* The number of allocations that still succeed; negative: all do. */
static long allocations = -1;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

/* The number of windows that were read, and the read during which the client hangs up; 0: none. */
static size_t reads, gone_at;
static atomic_bool is_gone;

struct window *__real_timeline_window(const struct timeline_list *from, size_t i);
struct window *__wrap_timeline_window(const struct timeline_list *from, size_t i);

struct window *__wrap_timeline_window(const struct timeline_list *from, size_t i)
{
	if (++reads == gone_at)
		is_gone = true;
	return __real_timeline_window(from, i);
}

static bool allocation_fails(void)
{
	return allocations >= 0 && allocations-- == 0;
}

void *__wrap_calloc(size_t n, size_t size)
{
	return allocation_fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_malloc(size_t size)
{
	return allocation_fails() ? NULL : __real_malloc(size);
}

static void stack_init(struct stack *stack, uint64_t id)
{
	*stack = (struct stack){ .raw_id = id + 1000, .id = id, .place_id = id, .refs = 1 };
}

static int set_up(void **state)
{
	size_t i;

	stack_init(&kernel, 100);
	stack_init(&other, 101);
	stack_init(&user, 102);
	stack_init(&unread, 103);
	filter = (struct filter){ .max_ns = INT64_MAX };
	options = (struct aggregate_options){ .by = AGGREGATE_BY_STACK };
	for (i = 0; i < ARRAY_SIZE(windows); i++) {
		windows[i] = window_new();
		windows[i]->start_ns = (int64_t)i * LENGTH_NS;
		windows[i]->end_ns = (int64_t)(i + 1) * LENGTH_NS;
		windows[i]->real_offset_ns = NS_PER_S;
	}
	list = (struct timeline_list){ .windows = windows, .n = ARRAY_SIZE(windows) };
	later = (struct timeline_list){};
	allocations = -1;
	reads = gone_at = 0;
	is_gone = false;
	return process_table_new(1 << 20, &processes);
}

static int tear_down(void **state)
{
	size_t i;

	aggregate = aggregate_free(aggregate);
	for (i = 0; i < ARRAY_SIZE(windows); i++)
		window_unref(windows[i]);
	process_table_free(processes);
	return 0;
}

static struct window_image *add_image(size_t n, uint64_t uid, bool is_kernel)
{
	struct window_image *image = window_add_image(windows[n]);
	struct process_id id = { .pid = NO_PID + (int32_t)uid, .start_boot_ns = uid };

	image->uid = uid;
	image->tid = NO_PID + (int32_t)uid;
	image->process = process_table_see(processes, &id, is_kernel, "program");
	memcpy(image->comm, "thread", 7);
	return image;
}

static void add_row(size_t n, uint32_t image, uint64_t count, uint64_t ns, struct stack *k)
{
	struct window_row *row = window_add_row(windows[n]);
	uint32_t buckets[WAIT_BUCKETS] = {};

	buckets[wait_bucket(ns)] = (uint32_t)count;
	assert_int_equal(window_row_set_buckets(windows[n], row, buckets), 0);
	row->image = image;
	row->count = count;
	row->blocked_ns = count * ns;
	row->max_ns = ns;
	row->max_end_ns = windows[n]->end_ns - 1;
	row->state = 1;
	row->kernel = stack_ref(k);
	row->user = stack_ref(&user);
}

static void add_open(size_t n, uint32_t image, int64_t start_ns, int64_t wake_ns)
{
	struct window_open *open = window_add_open(windows[n]);

	open->image = image;
	open->start_ns = start_ns;
	open->wake_ns = wake_ns;
	open->state = 1;
	open->kernel = stack_ref(&other);
}

static void add_span(size_t n, uint32_t image, int64_t start_ns, int64_t wake_ns, int64_t end_ns)
{
	struct window_span *span = window_add_span(windows[n]);

	span->image = image;
	span->start_ns = start_ns;
	span->wake_ns = wake_ns;
	span->end_ns = end_ns;
	span->state = 1;
	span->kernel = stack_ref(&kernel);
	span->user = stack_ref(&user);
}

static struct aggregate_group **run(size_t n_wanted)
{
	struct aggregate_group **groups;
	size_t n;

	aggregate = aggregate_free(aggregate);
	assert_int_equal(aggregate_new(&list, &later, &filter, &options, &unread, &aggregate), 0);
	groups = aggregate_groups(aggregate, &n);
	assert_int_equal(n, n_wanted);
	return groups;
}

static uint64_t sum_of(struct aggregate_group *const *groups, size_t n)
{
	uint64_t ns = 0;

	while (n--)
		ns += groups[n]->blocked_ns + groups[n]->runnable_ns;
	return ns;
}

static void test_rows_of_windows_add_up(void **state)
{
	struct aggregate_group **groups;
	size_t i;

	for (i = 0; i < 3; i++) {
		struct window_image *image = add_image(i, 1, false);

		image->sums = (struct thread_sums){ .on_ns = 10, .blocked_ns = 900, .switches = 3 };
		add_row(i, 0, 2, (i + 1) * 100 * US, &kernel);
	}
	groups = run(1);
	assert_int_equal(groups[0]->count, 6);
	assert_int_equal(groups[0]->blocked_ns, 1200 * US);
	assert_int_equal(groups[0]->max_ns, 300 * US);
	assert_int_equal(groups[0]->max_end_real_ns, 3 * LENGTH_NS - 1 + NS_PER_S);
	assert_ptr_equal(groups[0]->kernel, &kernel);
	assert_int_equal(aggregate_totals(aggregate)->threads, 1);
	assert_int_equal(aggregate_totals(aggregate)->processes, 1);
	assert_int_equal(aggregate_totals(aggregate)->on_cpu_ns, 30);
	assert_int_equal(aggregate_totals(aggregate)->waits, 9);
}

/* A wait from 500 us to 2700 us, woken at 1900: each window adds a part, the wait counts once. */
static void test_a_wait_over_windows(void **state)
{
	struct aggregate_group **groups;
	size_t i;

	for (i = 0; i < 3; i++)
		add_image(i, 1, false);
	add_open(0, 0, 500 * US, INT64_MAX);
	add_open(1, 0, 500 * US, INT64_MAX);
	add_span(2, 0, 500 * US, 1900 * US, 2700 * US);
	groups = run(1);
	assert_int_equal(groups[0]->count, 1);
	assert_int_equal(groups[0]->blocked_ns, 1400 * US);
	assert_int_equal(groups[0]->runnable_ns, 800 * US);
	assert_int_equal(groups[0]->max_ns, 2200 * US);
	assert_int_equal(groups[0]->max_end_real_ns, 2700 * US + NS_PER_S);
	assert_int_equal(groups[0]->open, 0);
	assert_ptr_equal(groups[0]->kernel, &kernel);

	/* In a range of the first two it is open, with the stacks that it has when it ends later.
	 */
	later = (struct timeline_list){ .windows = windows + 2, .n = 1 };
	list.n = 2;
	groups = run(1);
	assert_int_equal(groups[0]->count, 0);
	assert_int_equal(groups[0]->blocked_ns, 1400 * US);
	assert_int_equal(groups[0]->runnable_ns, 100 * US);
	assert_int_equal(groups[0]->open, 1);
	assert_int_equal(groups[0]->open_ns, 1500 * US);
	assert_int_equal(groups[0]->max_ns, 1500 * US);
	assert_ptr_equal(groups[0]->kernel, &kernel);
	assert_int_equal(aggregate_totals(aggregate)->open_waits, 1);

	/* Without the window it ends in, its stacks are those taken while it was open. */
	later.n = 0;
	groups = run(1);
	assert_ptr_equal(groups[0]->kernel, &other);
	assert_ptr_equal(groups[0]->user, &unread);

	/* The last window has the user stack, read while the wait was open: it holds for all parts.
	 */
	windows[1]->opens[0].user = stack_ref(&kernel);
	groups = run(1);
	assert_ptr_equal(groups[0]->user, &kernel);
	assert_int_equal(groups[0]->blocked_ns, 1500 * US);
}

/* Throttled from 1900 us to 2300 us; then an open wait, throttled for its first 300 us. */
static void test_throttled(void **state)
{
	struct aggregate_group **groups;
	size_t i;

	for (i = 0; i < 3; i++)
		add_image(i, 1, false)->sums.throttled_ns = 7;
	add_open(0, 0, 500 * US, INT64_MAX);
	add_open(1, 0, 500 * US, INT64_MAX);
	add_span(2, 0, 500 * US, 1900 * US, 2700 * US);
	windows[2]->spans[0].throttled_ns = 400 * US;
	groups = run(1);
	assert_int_equal(groups[0]->runnable_ns, 800 * US);
	assert_int_equal(groups[0]->throttled_ns, 400 * US);
	assert_int_equal(aggregate_totals(aggregate)->throttled_ns, 21);

	list.n = 1;
	windows[0]->opens[0].wake_ns = 500 * US;
	windows[0]->opens[0].throttled_ns = 300 * US;
	groups = run(1);
	assert_int_equal(groups[0]->runnable_ns, 500 * US);
	assert_int_equal(groups[0]->throttled_ns, 300 * US);
}

/* Waits for CPU quota have a row of their own. */
static void test_throttled_rows(void **state)
{
	struct aggregate_group **groups;

	add_image(0, 1, false);
	add_row(0, 0, 1, 100 * US, &kernel);
	add_row(0, 0, 1, 100 * US, &kernel);
	windows[0]->rows[0].state = STATE_PREEMPTED;
	windows[0]->rows[1].state = STATE_PREEMPTED | STATE_THROTTLED;
	list.n = 1;
	groups = run(2);
	assert_int_equal(groups[0]->state ^ groups[1]->state, STATE_THROTTLED);
}

static void test_open_only(void **state)
{
	struct aggregate_group **groups;
	size_t i;

	options.open_only = true;
	for (i = 0; i < 3; i++) {
		add_image(i, 1, false);
		add_row(i, 0, 2, 100 * US, &kernel);
		add_open(i, 0, -5000 * US, i == 2 ? 2900 * US : INT64_MAX);
	}
	add_open(0, 0, 10 * US, INT64_MAX);
	groups = run(1);
	assert_int_equal(groups[0]->open, 1);
	assert_int_equal(groups[0]->blocked_ns, 7900 * US);
	assert_int_equal(groups[0]->runnable_ns, 100 * US);
	assert_int_equal(groups[0]->open_ns, 8000 * US);
}

/* A wait that is the later step of a wait for a program's lock counts from the first step on. */
static void test_step(void **state)
{
	struct held_wait wait = {
		.tid = NO_PID + 1,
		.since_ns = NS_PER_S - 50000 * US,
		.last_ns = NS_PER_S + 3 * LENGTH_NS,
		.reason = REASON_PROGRAM_LOCK,
	};
	struct aggregate_group **groups;

	add_image(2, 1, false);
	add_image(2, 2, false);
	add_open(2, 0, 2900 * US, INT64_MAX);
	add_open(2, 1, 2900 * US, INT64_MAX);
	assert_int_equal(window_held_put(&windows[2]->held, &wait), 0);
	options.open_only = true;
	filter.min_ns = 200 * US;
	groups = run(1);
	assert_int_equal(groups[0]->max_ns, 50000 * US + 3 * LENGTH_NS);
	assert_int_equal(groups[0]->blocked_ns, groups[0]->max_ns);
	assert_int_equal(groups[0]->reason, REASON_PROGRAM_LOCK);
	assert_int_equal(aggregate_totals(aggregate)->step_waits, 1);
	options.open_only = false;
	filter.min_ns = 0;
	groups = run(2);
	assert_int_equal(groups[0]->blocked_ns + groups[1]->blocked_ns,
			 2 * (3 * LENGTH_NS - 2900 * US));
}

/*
 * Open waits that may be over are counted, and so is their part of the runnable time, which no row
 * has: the thread may have run since its wakeup.
 */
static void test_unseen(void **state)
{
	struct aggregate_group **groups;
	size_t i;

	for (i = 0; i < 3; i++) {
		add_image(i, 1, false);
		add_open(i, 0, -5000 * US, -5000 * US);
		windows[i]->opens[0].state = STATE_PREEMPTED | (i == 1 ? STATE_UNSEEN : 0);
	}
	groups = run(1);
	assert_int_equal(groups[0]->unseen, 0);
	assert_int_equal(groups[0]->runnable_ns, 3000 * US);
	assert_int_equal(aggregate_totals(aggregate)->unseen_ns, 0);
	windows[2]->opens[0].state |= STATE_UNSEEN;
	groups = run(1);
	assert_int_equal(groups[0]->unseen, 1);
	assert_int_equal(groups[0]->open, 1);
	assert_int_equal(groups[0]->runnable_ns, 1000 * US);
	assert_int_equal(aggregate_totals(aggregate)->unseen, 1);
	assert_int_equal(aggregate_totals(aggregate)->unseen_ns, 2000 * US);
	/* Like runnable_ns, unseen_ns is a sum over all waits, whatever states are asked for. */
	filter.wanted.has_states = true;
	groups = run(0);
	assert_int_equal(aggregate_totals(aggregate)->unseen, 0);
	assert_int_equal(aggregate_totals(aggregate)->unseen_ns, 2000 * US);
	/* The programs missed its end. */
	filter.wanted.has_states = false;
	list.n = 3;
	windows[2]->n_opens = 0;
	groups = run(1);
	assert_int_equal(groups[0]->runnable_ns, 1000 * US);
	assert_int_equal(aggregate_totals(aggregate)->unseen_ns, 1000 * US);
}

/* A row of waits that have not ended, which stands for those of several processes. */
static void test_folded_open_waits(void **state)
{
	struct aggregate_group **groups;
	struct window_open *open;

	options.open_only = true;
	add_image(2, 1, false)->folded = 4;
	add_open(2, 0, -5000 * US, 1000 * US);
	open = &windows[2]->opens[0];
	open->state |= STATE_UNSEEN;
	open->count = 3;
	open->processes = 3;
	open->whole_ns = 12000 * US;
	open->whole_runnable_ns = 2000 * US;
	groups = run(1);
	assert_int_equal(groups[0]->open, 3);
	assert_int_equal(groups[0]->unseen, 3);
	assert_int_equal(groups[0]->open_ns, 10000 * US);
	assert_int_equal(groups[0]->runnable_ns, 0);
	assert_int_equal(groups[0]->max_ns, 8000 * US);
	assert_int_equal(aggregate_totals(aggregate)->open_waits, 3);
	assert_int_equal(aggregate_totals(aggregate)->unseen, 3);
	assert_int_equal(aggregate_totals(aggregate)->unseen_ns, 2000 * US);
	/* Its entry stands for four processes. */
	assert_int_equal(aggregate_totals(aggregate)->processes, 4);
	assert_int_equal(aggregate_totals(aggregate)->threads, 4);
}

/* A wait that did not end in its run of stackd lasts to the end of that run. */
static void test_runs_of_stackd(void **state)
{
	add_image(0, 1, false);
	add_open(0, 0, 500 * US, INT64_MAX);
	windows[0]->run = 1;
	windows[1]->run = windows[2]->run = 2;
	filter.max_ns = 600 * US;
	assert_int_equal(run(1)[0]->blocked_ns, 500 * US);
	windows[0]->run = 2;
	run(0);
}

/* Only programs have user stacks that were not read. */
static void test_unread_stacks(void **state)
{
	list.n = 1;
	add_image(0, 1, false);
	add_open(0, 0, 500 * US, INT64_MAX);
	assert_ptr_equal(run(1)[0]->user, &unread);
	add_image(0, 2, true);
	windows[0]->opens[0].image = 1;
	assert_null(run(1)[0]->user);
}

/* The answer says the largest length below which waits were sampled in any window. */
static void test_sampled_lengths(void **state)
{
	static const int64_t below[] = { 200, 500, 300 };

	for (size_t i = 0; i < ARRAY_SIZE(windows); i++)
		windows[i]->sample_below_ns = below[i];
	run(0);
	assert_int_equal(aggregate_sample_below(aggregate), 500);
}

/* Waits that kill -9 ends and waits that nothing ends have rows of their own. */
static void test_states_apart(void **state)
{
	add_image(0, 1, false);
	add_row(0, 0, 1, 100 * US, &kernel);
	add_row(0, 0, 1, 100 * US, &kernel);
	windows[0]->rows[0].state = 0x2;
	windows[0]->rows[1].state = 0x102;
	run(2);
	options.by = AGGREGATE_BY_PROCESS;
	run(1);
}

static void test_times(void **state)
{
	struct aggregate_group **groups;

	add_image(0, 1, false)->sums.short_count = 7;
	add_image(1, 1, false);
	add_row(0, 0, 3, 200 * US, &kernel);
	add_row(0, 0, 1, 50 * US, &other);
	add_open(0, 0, 900 * US, INT64_MAX);
	add_span(1, 0, 900 * US, 1200 * US, 1201 * US);
	filter.min_ns = 200 * US;
	filter.max_ns = 300 * US;
	groups = run(1);
	assert_int_equal(groups[0]->count, 3);
	assert_int_equal(aggregate_estimated(aggregate), 0);
	/* The length of a wait over two windows is exact: with 301 us, both of its parts count. */
	filter.max_ns = 301 * US;
	groups = run(1);
	assert_int_equal(groups[0]->count, 4);
	assert_int_equal(groups[0]->blocked_ns, 900 * US);
	filter.min_ns = 301 * US;
	groups = run(1);
	assert_int_equal(groups[0]->count, 1);
	assert_int_equal(sum_of(groups, 1), 301 * US);
}

static void test_part_of_a_row_is_an_estimate(void **state)
{
	struct window_row *row;
	uint32_t buckets[WAIT_BUCKETS] = {};
	struct aggregate_group **groups;

	add_image(0, 1, false);
	row = window_add_row(windows[0]);
	buckets[wait_bucket(10 * US)] = 4;
	buckets[wait_bucket(200 * US)] = 2;
	assert_int_equal(window_row_set_buckets(windows[0], row, buckets), 0);
	row->count = 6;
	row->blocked_ns = 440 * US;
	row->max_ns = 200 * US;
	row->state = 1;
	filter.max_ns = 100 * US;
	groups = run(1);
	assert_int_equal(groups[0]->count, 4);
	assert_int_equal(aggregate_estimated(aggregate), 1);
	assert_true(groups[0]->blocked_ns > 20 * US && groups[0]->blocked_ns < 80 * US);
	/* The longest wait is left out: the length and end of the longest of the others are
	 * unknown. */
	assert_int_equal(groups[0]->max_ns, wait_bucket_least_ns(wait_bucket(10 * US)));
	assert_true(groups[0]->max_end_real_ns == INT64_MAX);
}

static void test_idle_does_not_depend_on_what_is_shown(void **state)
{
	struct aggregate_group **groups;

	user.is_idle = true;
	add_image(0, 1, false);
	add_row(0, 0, 1, 100 * US, &kernel);
	filter.drops_user = true;
	groups = run(1);
	assert_true(groups[0]->is_idle);
	assert_null(groups[0]->user);
	assert_int_equal(aggregate_totals(aggregate)->idle_threads, 1);
	/* A thread that is frozen while it waits for work cannot do any. */
	kernel.flags = STACK_IS_FROZEN;
	assert_false(run(1)[0]->is_idle);
	kernel.flags = 0;
	windows[0]->rows[0].state = STATE_FROZEN;
	assert_false(run(1)[0]->is_idle);
	windows[0]->rows[0].state = 2;
	assert_false(run(1)[0]->is_idle);
	windows[0]->rows[0].state = STATE_PREEMPTED;
	assert_false(run(1)[0]->is_idle);
}

/* Gives a kernel stack one function, which shows a reason. */
static void stack_set_function(struct stack *stack, struct frame *frame, struct frame **frames,
			       const char *name)
{
	*frame = (struct frame){ .kind = FRAME_KERNEL, .name = (char *)name };
	*frames = frame;
	stack->frames = frames;
	stack->n_frames = 1;
	stack->is_resolved = true;
}

/* The reason of a wait stays, and can be asked for, where its kernel stack is left out. */
static void test_reasons(void **state)
{
	struct frame frames[2], *of_kernel, *of_other;
	struct aggregate_group **groups;
	size_t i, flocks = 0;

	stack_set_function(&kernel, &frames[0], &of_kernel, "__do_sys_flock");
	stack_set_function(&other, &frames[1], &of_other, "anon_pipe_read");
	add_image(0, 1, false)->sums =
		(struct thread_sums){ .short_count = 4, .short_blocked_ns = 9 };
	add_row(0, 0, 1, 100 * US, &kernel);
	add_row(0, 0, 1, 300 * US, &other);
	add_open(0, 0, 500 * US, INT64_MAX);
	list.n = 1;

	filter.drops_kernel = true;
	groups = run(4);
	for (i = 0; i < 4; i++) {
		assert_null(groups[i]->kernel);
		assert_true(groups[i]->has_reason || groups[i]->is_short);
		flocks += groups[i]->has_reason && groups[i]->reason == REASON_FLOCK;
	}
	assert_int_equal(flocks, 1);
	filter.drops_kernel = false;

	/* The wait that has not ended is in the same group as the other wait for a pipe. */
	options.group = GROUP_BY_REASON;
	groups = run(3);
	assert_int_equal(sum_of(groups, 3), 900 * US + 9);
	options.group = GROUP_BY_NONE;

	filter.wanted.has_reasons = true;
	filter.wanted.reasons[REASON_PIPE_READ / 64] = UINT64_C(1) << REASON_PIPE_READ % 64;
	options.by = AGGREGATE_BY_PROCESS;
	groups = run(1);
	assert_int_equal(groups[0]->blocked_ns, 800 * US);
	assert_int_equal(groups[0]->open, 1);
	assert_true(groups[0]->has_reason && groups[0]->reason == REASON_PIPE_READ);
	options.open_only = true;
	groups = run(1);
	assert_int_equal(groups[0]->blocked_ns, 500 * US);
	filter.wanted.reasons[REASON_FLOCK / 64] = UINT64_C(1) << REASON_FLOCK % 64;
	filter.wanted.reasons[REASON_PIPE_READ / 64] |= UINT64_C(1) << REASON_PIPE_READ % 64;
	options.open_only = false;
	groups = run(1);
	assert_int_equal(groups[0]->blocked_ns, 900 * US);
	assert_false(groups[0]->has_reason);
}

static uint64_t time_for(const struct aggregate_group *group, enum wait_reason reason)
{
	const struct reason_time *sum;

	for (sum = group->reasons; sum; sum = sum->next)
		if (sum->reason == reason)
			return sum->ns;
	return 0;
}

/*
 * Where a row has waits for several reasons, their times are known, also of rows that are merged as
 * there is no memory for them. So are the times by function, and who ran before the longest wait
 * for a CPU.
 */
static void test_times_by_reason(void **state)
{
	struct frame frames[2], *of_kernel, *of_other;
	uint64_t flock = 0, pipe = 0, functions = 0;
	bool has_wait[MANY + 1] = {};
	struct aggregate_group **groups;
	size_t i, k, n, merged = 0;

	stack_set_function(&kernel, &frames[0], &of_kernel, "__do_sys_flock");
	stack_set_function(&other, &frames[1], &of_other, "anon_pipe_read");
	for (i = 0; i < MANY; i++) {
		add_image(0, i + 1, false)->sums =
			(struct thread_sums){ .short_count = 1, .short_blocked_ns = US };
		add_row(0, (uint32_t)i, 1, 100 * US, &kernel);
		windows[0]->rows[windows[0]->n_rows - 1].culprits.ran_before.ns = MANY - i;
		add_row(0, (uint32_t)i, 2, 150 * US, &other);
		add_row(0, (uint32_t)i, 1, 50 * US, &kernel);
	}
	list.n = 1;
	options.by = AGGREGATE_BY_PROCESS;
	options.by_reasons = true;
	groups = run(2 * MANY);
	for (i = 0; i < 2 * MANY; i++) {
		assert_int_equal(time_for(groups[i], REASON_FLOCK),
				 groups[i]->is_short ? 0 : 150 * US);
		assert_int_equal(time_for(groups[i], REASON_PIPE_READ),
				 groups[i]->is_short ? 0 : 300 * US);
		assert_false(groups[i]->has_reason && !groups[i]->is_short);
		if (groups[i]->is_short)
			assert_null(aggregate_function(aggregate, groups[i]));
		else
			assert_string_equal(aggregate_function(aggregate, groups[i]),
					    "anon_pipe_read");
	}
	options.max_memory = 1;
	aggregate = aggregate_free(aggregate);
	assert_int_equal(aggregate_new(&list, &later, &filter, &options, &unread, &aggregate), 0);
	groups = aggregate_groups(aggregate, &n);
	for (i = 0; i < n; i++) {
		flock += time_for(groups[i], REASON_FLOCK);
		pipe += time_for(groups[i], REASON_PIPE_READ);
		merged += groups[i]->is_others;
		has_wait[groups[i]->culprits.ran_before.ns] = true;
		for (k = 0; k < GROUP_FUNCTIONS; k++)
			functions += groups[i]->functions.ns[k];
	}
	/* There is room for both functions. */
	assert_int_equal(functions, MANY * 450 * US);
	assert_int_equal(flock, MANY * 150 * US);
	assert_int_equal(pipe, MANY * 300 * US);
	assert_true(n < MANY && merged > 0);
	/* The longest of those that were merged is that of their sum. */
	for (i = MANY; has_wait[i]; i--)
		;
	for (k = 0; k < n; k++)
		assert_true(!groups[k]->is_others || groups[k]->culprits.ran_before.ns > i);
}

/*
 * A group whose stacks are not all the same, or not in the answer, has the program's own function
 * if it has more than half of the time.
 */
static void test_function_of_most(void **state)
{
	struct frame frames[2], *of_user, *of_own;
	struct aggregate_group **groups;

	stack_set_function(&user, &frames[0], &of_user, "serve");
	stack_set_function(&unread, &frames[1], &of_own, "commit");
	frames[0].kind = frames[1].kind = FRAME_NATIVE;
	add_image(0, 1, false);
	add_row(0, 0, 1, 100 * US, &kernel);
	add_row(0, 0, 1, 101 * US, &kernel);
	stack_unref(windows[0]->rows[1].user);
	windows[0]->rows[1].user = stack_ref(&unread);
	list.n = 1;
	filter.drops_user = true;
	groups = run(1);
	assert_null(groups[0]->user);
	assert_string_equal(aggregate_function(aggregate, groups[0]), "commit");
	windows[0]->rows[1].blocked_ns = 100 * US;
	groups = run(1);
	assert_null(aggregate_function(aggregate, groups[0]));
	filter.drops_user = false;
	run(2);
}

/* Estimates may be more than the exact sum to which their row is brought: then each reason has
 * less. */
static void test_reasons_are_no_more_than_the_row(void **state)
{
	struct reason_time *times = NULL, *spare = NULL;
	struct arena *arena = arena_new();
	struct wire_reason_times wire;

	assert_int_equal(reason_times_add(&times, REASON_FLOCK, 300, &spare, arena), 0);
	assert_int_equal(reason_times_add(&times, REASON_PIPE_READ, 100, &spare, arena), 0);
	assert_int_equal(reason_times_add(&times, REASON_PIPE_READ, 500, &spare, arena), 0);
	assert_int_equal(reason_times_wire(times, 900, arena, &wire), 0);
	assert_int_equal(wire.n, 2);
	assert_string_equal(wire.v[0].reason, "pipe-read");
	assert_int_equal(wire.v[0].total_ns, 600);
	assert_int_equal(wire.v[1].total_ns, 300);
	assert_int_equal(reason_times_wire(times, 450, arena, &wire), 0);
	assert_int_equal(wire.v[0].total_ns, 300);
	assert_int_equal(wire.v[1].total_ns, 150);
	arena_free(arena);
}

/*
 * Waits are picked by a function in their stacks; rows of callers begin with it. What the filter
 * leaves out of the rows, or leaves out as threads, is counted in the totals.
 */
static void test_functions(void **state)
{
	struct frame frames[3], *of_kernel, *of_other, *of_user;
	const char *flock = "__do_sys_flock", *run_job = "run_job", *thread = "thread";
	struct wire_filter wire = {
		.user_threads = WIRE_BOOL_ABSENT,
		.kernel_threads = WIRE_BOOL_ABSENT,
		.functions = { &flock, 1 },
	};
	struct aggregate_group **groups;

	stack_set_function(&kernel, &frames[0], &of_kernel, flock);
	stack_set_function(&other, &frames[1], &of_other, "anon_pipe_read");
	stack_set_function(&user, &frames[2], &of_user, run_job);
	frames[2].kind = FRAME_NATIVE;
	frames[2].file_id = 5;
	add_image(0, 1, false)->sums =
		(struct thread_sums){ .short_count = 4, .short_blocked_ns = 9 };
	windows[0]->images[0].sums.blocked_ns = 400 * US + 9;
	add_row(0, 0, 1, 100 * US, &kernel);
	add_row(0, 0, 1, 300 * US, &other);
	list.n = 1;

	filter.wire = &wire;
	groups = run(1);
	assert_int_equal(groups[0]->blocked_ns, 100 * US);
	assert_ptr_equal(groups[0]->kernel, &kernel);
	assert_int_equal(aggregate_totals(aggregate)->blocked_ns, 400 * US + 9);
	wire.functions.v = &run_job;
	groups = run(2);
	assert_int_equal(sum_of(groups, 2), 400 * US);
	wire.functions.n = 0;

	wire.not_functions = (struct wire_strs){ &flock, 1 };
	groups = run(2);
	assert_int_equal(sum_of(groups, 2), 300 * US + 9);
	wire.not_functions.n = 0;

	/* Both waits are below the function of the program: their reasons differ, their rows too.
	 */
	wire.callers = (struct wire_strs){ &run_job, 1 };
	groups = run(2);
	assert_null(groups[0]->kernel);
	assert_null(groups[1]->kernel);
	assert_true(groups[0]->key.user == groups[1]->key.user && groups[0]->key.user);
	assert_int_equal(sum_of(groups, 2), 400 * US);
	wire.callers.v = &flock;
	groups = run(1);
	assert_ptr_equal(groups[0]->kernel, &kernel);
	assert_ptr_equal(groups[0]->user, &user);
	wire.callers.n = 0;

	wire.not_comms = (struct wire_strs){ &thread, 1 };
	run(0);
	assert_int_equal(aggregate_totals(aggregate)->threads, 0);
	assert_int_equal(aggregate_totals(aggregate)->blocked_ns, 0);
	assert_int_equal(aggregate_totals(aggregate)->excluded_ns, 400 * US + 9);
	wire.comm = "nobody";
	run(0);
	assert_int_equal(aggregate_totals(aggregate)->excluded_ns, 0);
}

static void test_kernel_threads_are_idle(void **state)
{
	add_image(0, 1, true);
	add_row(0, 0, 1, 100 * US, &kernel);
	windows[0]->rows[0].state = 0x402;
	assert_true(run(1)[0]->is_idle);
	windows[0]->rows[0].state = 0x2;
	assert_false(run(1)[0]->is_idle);
}

/* A stack whose id two stacks have is grouped with no other, and its waits are not idle. */
static void test_ambiguous_stacks_stand_alone(void **state)
{
	static struct stack same;
	struct aggregate_group **groups;

	stack_init(&same, 100);
	same.raw_id = 5000;
	add_image(0, 1, false);
	add_row(0, 0, 1, 100 * US, &kernel);
	add_row(0, 0, 1, 100 * US, &same);
	run(1);
	same.flags = STACK_IS_AMBIGUOUS;
	same.is_idle = true;
	groups = run(2);
	assert_false(groups[0]->is_idle || groups[1]->is_idle);
}

static void test_short_waits_have_a_group(void **state)
{
	struct aggregate_group **groups;

	add_image(0, 1, false)->sums = (struct thread_sums){
		.blocked_ns = 30, .short_count = 4, .short_blocked_ns = 20, .short_runnable_ns = 5
	};
	groups = run(1);
	assert_true(groups[0]->is_short);
	assert_int_equal(groups[0]->count, 4);
	assert_int_equal(sum_of(groups, 1), 25);
	filter.min_ns = 1;
	run(0);
}

/* Adds a row for short waits of which some were recorded, and its part of the thread's estimate. */
static void add_sampled(size_t n, uint32_t image, uint64_t count, uint64_t ns, struct stack *k)
{
	struct window_image *thread = &windows[n]->images[image];

	add_row(n, image, count, ns, k);
	windows[n]->rows[windows[n]->n_rows - 1].state |= STATE_SAMPLED;
	thread->estimate.count += count;
	thread->estimate.blocked_ns += count * ns;
	if (windows[n]->sample_below_ns < (int64_t)(100 * US))
		windows[n]->sample_below_ns = 100 * US;
}

static void add_shorts(size_t n, uint64_t uid, uint64_t count, uint64_t blocked_ns)
{
	add_image(n, uid, false)->sums = (struct thread_sums){
		.blocked_ns = blocked_ns,
		.short_count = count,
		.short_blocked_ns = blocked_ns,
	};
}

/* The group with this stack; the group of short waits if `k` is NULL. */
static struct aggregate_group *group_with(struct stack *k)
{
	struct aggregate_group **groups;
	size_t n, i;

	groups = aggregate_groups(aggregate, &n);
	for (i = 0; i < n; i++)
		if (groups[i]->kernel == k)
			return groups[i];
	fail();
	return NULL;
}

/* An estimate is shown as a part of its row, and the sum of all rows is the exact one. */
static void test_sampled_waits_are_not_counted_twice(void **state)
{
	struct aggregate_group **groups;

	add_shorts(0, 1, 10, 400 * US);
	add_row(0, 0, 1, 500 * US, &kernel);
	add_sampled(0, 0, 6, 50 * US, &kernel);
	add_sampled(0, 0, 1, 40 * US, &other);
	groups = run(3);
	assert_int_equal(sum_of(groups, 3), 900 * US);
	assert_int_equal(group_with(&kernel)->blocked_ns, 800 * US);
	assert_int_equal(group_with(&kernel)->count, 7);
	assert_int_equal(group_with(&kernel)->sampled.blocked_ns, 300 * US);
	assert_int_equal(group_with(&kernel)->sampled.count, 6);
	assert_int_equal(group_with(&kernel)->max_ns, 500 * US);
	assert_string_equal(task_state_letter(group_with(&kernel)->state), "S");
	assert_int_equal(group_with(&other)->sampled.blocked_ns, 40 * US);
	assert_true(group_with(NULL)->is_short);
	assert_int_equal(group_with(NULL)->blocked_ns, 60 * US);
	assert_int_equal(group_with(NULL)->count, 3);
	assert_int_equal(aggregate_totals(aggregate)->short_ns, 400 * US);
	assert_int_equal(aggregate_totals(aggregate)->sampled_ns, 340 * US);
	assert_int_equal(aggregate_sample_below(aggregate), 100 * US);
}

/* By chance an estimate is too high: no row has less than nothing, and the sum stays exact. */
static void test_estimates_above_the_sum(void **state)
{
	struct aggregate_group **groups;

	add_shorts(0, 1, 9, 400 * US);
	add_sampled(0, 0, 9, 50 * US, &kernel);
	/* Another thread's estimate is too low by more: it makes up for the first one. */
	add_shorts(1, 2, 20, 500 * US);
	add_sampled(1, 0, 4, 50 * US, &other);
	groups = run(3);
	assert_int_equal(group_with(&kernel)->blocked_ns, 450 * US);
	assert_int_equal(group_with(&other)->blocked_ns, 200 * US);
	assert_int_equal(group_with(NULL)->blocked_ns, 250 * US);
	assert_int_equal(sum_of(groups, 3), 900 * US);
	/* Nobody makes up for it: the estimates are reduced in proportion. */
	add_image(2, 3, false);
	add_sampled(2, 0, 20, 50 * US, &unread);
	groups = run(3);
	assert_int_equal(sum_of(groups, 3), 900 * US);
	/* 900 of 1650 */
	assert_in_range(group_with(&other)->blocked_ns, 109 * US, 110 * US);
	assert_in_range(group_with(&kernel)->blocked_ns, 245 * US, 246 * US);
	assert_int_equal(group_with(&kernel)->sampled.blocked_ns, group_with(&kernel)->blocked_ns);
}

/* What is left of short waits once their time is in other rows is no line, but a row by stack. */
static void test_lines_have_time(void **state)
{
	add_shorts(0, 1, 10, 400 * US);
	add_sampled(0, 0, 8, 50 * US, &kernel);
	run(2);
	assert_int_equal(group_with(NULL)->count, 2);
	assert_int_equal(group_with(NULL)->blocked_ns, 0);
	options.group = GROUP_BY_LINE;
	assert_int_equal(run(1)[0]->blocked_ns, 400 * US);
}

/* Rows without stacks need no estimates, unless the filter asks for what only those tell. */
static void test_threads_have_exact_sums(void **state)
{
	struct aggregate_group **groups;

	add_shorts(0, 1, 10, 400 * US);
	add_sampled(0, 0, 9, 50 * US, &kernel);
	options.by = AGGREGATE_BY_THREAD;
	groups = run(1);
	assert_int_equal(groups[0]->blocked_ns, 400 * US);
	assert_int_equal(groups[0]->count, 10);
	assert_int_equal(groups[0]->sampled.blocked_ns, 400 * US);
	filter.min_ns = 20 * US;
	groups = run(1);
	assert_int_equal(groups[0]->blocked_ns, 450 * US);
	assert_int_equal(groups[0]->sampled.blocked_ns, 450 * US);
	assert_int_equal(groups[0]->count, 9);
}

/* What sampled rows tell of a process is which part of its exact sum was idle. */
static void test_idle_parts_of_exact_sums(void **state)
{
	struct aggregate_group **groups;

	kernel.is_idle = true;
	add_shorts(0, 1, 10, 400 * US);
	add_sampled(0, 0, 3, 50 * US, &kernel);
	add_sampled(0, 0, 9, 50 * US, &other);
	windows[0]->rows[0].state |= 1;
	options.by = AGGREGATE_BY_PROCESS;
	groups = run(2);
	assert_int_equal(groups[0]->blocked_ns + groups[1]->blocked_ns, 400 * US);
	assert_int_equal(groups[groups[0]->is_idle ? 0 : 1]->blocked_ns, 100 * US);
	assert_int_not_equal(groups[0]->is_idle, groups[1]->is_idle);
	/* What no sampled row stands for is in a row of its own. */
	windows[0]->images[0].estimate.blocked_ns *= 2;
	groups = run(3);
	assert_int_equal(sum_of(groups, 3), 400 * US);
}

/* Groups that are merged for lack of memory keep what is to be taken from their sums. */
static void test_estimates_within_a_limit_of_memory(void **state)
{
	struct aggregate_group **groups;
	size_t i, n;

	for (i = 0; i < MANY; i++) {
		add_shorts(0, i + 1, 10, 400 * US);
		add_sampled(0, (uint32_t)i, 1 + i % 13, 50 * US, &kernel);
	}
	options.max_memory = 1;
	aggregate = aggregate_free(aggregate);
	assert_int_equal(aggregate_new(&list, &later, &filter, &options, &unread, &aggregate), 0);
	groups = aggregate_groups(aggregate, &n);
	assert_true(aggregate_others(aggregate).groups > 0);
	assert_int_equal(sum_of(groups, n), MANY * 400 * US);
}

static void test_a_filter_sees_each_name(void **state)
{
	struct wire_filter wire = {
		.comm = "new*",
		.user_threads = WIRE_BOOL_ABSENT,
		.kernel_threads = WIRE_BOOL_ABSENT,
	};

	filter.wire = &wire;
	add_image(0, 1, false);
	add_row(0, 0, 1, 100 * US, &kernel);
	memcpy(add_image(1, 1, false)->comm, "newname", 8);
	add_row(1, 0, 2, 100 * US, &kernel);
	add_image(2, 1, false);
	add_row(2, 0, 4, 100 * US, &kernel);
	assert_int_equal(run(1)[0]->count, 2);
}

static void add_io(size_t n, const struct window_io *io)
{
	struct window_io *row = window_add_io(windows[n]);

	assert_non_null(row);
	*row = *io;
}

/* Adds operations, some of them open: only those open in the last window count as open. */
static void add_ios(void)
{
	const struct window_io calls[] = {
		{ .op = 1, .call = 18, .dev = 7, .device = "vda", .count = 2, .total_ns = 20 },
		{ .op = 1, .call = 1, .count = 1, .total_ns = 5 },
		{ .op = 1, .call = 18, .open = 5, .oldest_ns = 50, .oldest_tid = 3 },
		{ .op = 1, .call = 18, .open = 2, .oldest_ns = 40, .oldest_tid = 4 },
	};

	add_image(0, 1, false);
	add_image(2, 1, false);
	add_io(0, &calls[0]);
	add_io(0, &calls[1]);
	add_io(0, &calls[2]);
	add_io(2, &calls[1]);
	add_io(2, &calls[3]);
}

static struct aggregate_io_group **run_ios(enum aggregate_by by, size_t n_wanted)
{
	struct aggregate_io_group **groups;
	size_t n;

	options.by = by;
	run(0);
	assert_int_equal(aggregate_io_groups(aggregate, &groups, &n), 0);
	assert_int_equal(n, n_wanted);
	return groups;
}

/* Rows by stack say what of them is an estimate; other rows do not count it again. */
static void test_sampled_operations(void **state)
{
	struct window_io io = { .layer = 1, .op = 1, .count = 9, .total_ns = 900, .max_ns = 200 };
	struct aggregate_io_group **groups;

	add_image(0, 1, false);
	add_io(0, &io);
	io.is_slow = WINDOW_IO_SLOW;
	io.count = 1;
	io.total_ns = 200;
	add_io(0, &io);
	io.is_slow = WINDOW_IO_SLOW | WINDOW_IO_SAMPLED;
	io.count = 7;
	io.total_ns = 650;
	add_io(0, &io);
	groups = run_ios(AGGREGATE_BY_STACK, 1);
	assert_int_equal(groups[0]->io.count, 8);
	assert_int_equal(groups[0]->io.total_ns, 850);
	assert_int_equal(groups[0]->sampled, 7);
	assert_int_equal(groups[0]->sampled_ns, 650);
	free(groups);
	groups = run_ios(AGGREGATE_BY_OPERATION, 1);
	assert_int_equal(groups[0]->io.total_ns, 900);
	assert_int_equal(groups[0]->sampled_ns, 0);
	free(groups);
}

static void test_operations(void **state)
{
	struct aggregate_io_group **groups;
	size_t i, vda = 0, open = 0;

	add_ios();
	groups = run_ios(AGGREGATE_BY_OPERATION, 3);
	for (i = 0; i < 3; i++) {
		vda = groups[i]->io.dev ? i : vda;
		open = groups[i]->io.open ? i : open;
	}
	assert_int_equal(groups[vda]->io.count, 2);
	assert_int_equal(groups[open]->io.open, 2);
	assert_int_equal(groups[open]->io.oldest_ns, 40);
	assert_int_equal(groups[open]->io.oldest_tid, 4);
	assert_int_equal(groups[3 - vda - open]->io.count, 2);
	assert_int_equal(aggregate_totals(aggregate)->operations, 4);
	free(groups);
}

/* Operations of one kind are one row, whatever their device; open ones count by window. */
static void test_operations_by_window(void **state)
{
	struct aggregate_io_group **groups;
	size_t first;

	add_ios();
	groups = run_ios(AGGREGATE_BY_WINDOW, 2);
	first = groups[1]->key.window < groups[0]->key.window;
	assert_int_equal(groups[first]->key.window, NS_PER_S);
	assert_int_equal(groups[first]->io.count, 3);
	assert_int_equal(groups[first]->io.open, 5);
	assert_int_equal(groups[first]->io.call, 0);
	assert_string_equal(groups[first]->io.device, "");
	assert_int_equal(groups[!first]->key.window, NS_PER_S + 2 * LENGTH_NS);
	assert_int_equal(groups[!first]->io.count, 1);
	assert_int_equal(groups[!first]->io.open, 2);
	free(groups);
}

/*
 * Each of 300 processes does I/O in two layers, 10 of them 1000 times as long. With room for 64
 * groups, the sums of each layer are exact, and the 10 lack no more than the bound says.
 */
static void test_a_limit_on_operations(void **state)
{
	struct window_io io = { .op = 1, .count = 2 };
	uint64_t sums[2] = {}, whole[2] = {}, others[2] = {}, found = 0;
	struct aggregate_io_group **groups;
	struct aggregate_others bound;
	uint32_t i;
	size_t n;

	for (i = 0; i < MANY; i++) {
		add_image(0, i + 1, false);
		for (io.layer = 2; io.layer < 4; io.layer++) {
			io.total_ns = (i + 1) * (i % 30 == 7 ? 1000 : 1) * US;
			io.max_ns = io.total_ns;
			io.image = i;
			whole[io.layer - 2] += io.total_ns;
			add_io(0, &io);
		}
	}
	options.by = AGGREGATE_BY_PROCESS;
	options.max_memory = 1;
	list.n = 1;
	assert_int_equal(aggregate_new(&list, &later, &filter, &options, &unread, &aggregate), 0);
	assert_int_equal(aggregate_io_groups(aggregate, &groups, &n), 0);
	bound = aggregate_others(aggregate);
	assert_in_range(n, 20, 64 + 2);
	for (i = 0; i < n; i++) {
		sums[groups[i]->io.layer - 2] += groups[i]->io.total_ns;
		others[groups[i]->io.layer - 2] += groups[i]->is_others;
		found += !groups[i]->is_others &&
			 groups[i]->io.total_ns + bound.bound_ns >= 8000 * US;
	}
	assert_memory_equal(sums, whole, sizeof(sums));
	assert_int_equal(others[0], 1);
	assert_int_equal(others[1], 1);
	assert_true(bound.groups > MANY && bound.bound_ns > 0 && bound.bound_ns < 8000 * US);
	assert_true(found >= 20);
	assert_int_equal(aggregate_totals(aggregate)->operations, 4 * MANY);
	free(groups);
}

/* Returns the sum of the groups of the thread `uid`; 0 if it has none. */
static uint64_t sum_of_thread(struct aggregate_group *const *groups, size_t n, uint64_t uid)
{
	uint64_t ns = 0;

	while (n--)
		if (!groups[n]->is_others && groups[n]->tid == NO_PID + (int32_t)uid)
			ns += groups[n]->blocked_ns;
	return ns;
}

/*
 * Each of the 300 threads waits i us in a window, 20 of them 1000 times as long. With room for 64
 * groups, the sums are exact, the 20 lack no more than what the bound says, and all are there.
 */
static void test_a_limit_on_groups(void **state)
{
	uint64_t whole, sums[MANY + 1], got, found = 0;
	struct aggregate_group **groups;
	struct aggregate_totals totals;
	struct aggregate_others others;
	size_t i, n;

	for (n = 0; n < 3; n++) {
		for (i = 0; i < MANY; i++) {
			add_image(n, i + 1, false)->sums.blocked_ns = 7;
			add_row(n, (uint32_t)i, 1, (i + 1) * (i % 15 ? 1 : 1000) * US, &kernel);
		}
	}
	groups = run(MANY);
	whole = sum_of(groups, MANY);
	for (i = 1; i <= MANY; i++)
		sums[i] = sum_of_thread(groups, MANY, i);
	totals = *aggregate_totals(aggregate);
	assert_int_equal(aggregate_others(aggregate).groups, 0);

	options.max_memory = 1;
	aggregate = aggregate_free(aggregate);
	assert_int_equal(aggregate_new(&list, &later, &filter, &options, &unread, &aggregate), 0);
	groups = aggregate_groups(aggregate, &n);
	others = aggregate_others(aggregate);
	assert_true(n <= 65 && others.groups > MANY - 64 && others.bound_ns > 0);
	assert_int_equal(sum_of(groups, n), whole);
	assert_memory_equal(aggregate_totals(aggregate), &totals, sizeof(totals));
	for (i = 1; i <= MANY; i++) {
		got = sum_of_thread(groups, n, i);
		assert_true(got <= sums[i] && sums[i] - got <= others.bound_ns);
		found += got && (i - 1) % 15 == 0;
	}
	assert_int_equal(found, MANY / 15);
}

/*
 * When memory is full, 500 rows of one thread come, each of which is less than what was given up
 * before. Their sum is more: the thread has a group, which lacks no more than the bound says. The
 * sums and the histograms of all groups are exact.
 */
static void test_a_limit_and_many_small_rows(void **state)
{
	enum { SMALL = 500 };
	uint64_t got, waits = 0, buckets = 0;
	struct aggregate_group **groups;
	struct aggregate_others others;
	size_t i, k, n;

	for (i = 0; i < MANY; i++) {
		add_image(0, i + 1, false);
		add_row(0, (uint32_t)i, 1, (100 + i % 3) * US, &kernel);
	}
	add_image(0, MANY + 1, false);
	for (i = 0; i < SMALL; i++)
		add_row(0, MANY, 1, US, &kernel);
	list.n = 1;
	options.max_memory = 1;
	assert_int_equal(aggregate_new(&list, &later, &filter, &options, &unread, &aggregate), 0);
	groups = aggregate_groups(aggregate, &n);
	others = aggregate_others(aggregate);
	got = sum_of_thread(groups, n, MANY + 1);
	assert_in_range(others.bound_ns, 100 * US, 350 * US);
	assert_in_range(got, SMALL * US - others.bound_ns, (SMALL - 100) * US);
	assert_int_equal(sum_of(groups, n), (MANY * 101 + SMALL) * US);
	for (i = 0; i < n; i++) {
		waits += groups[i]->count;
		for (k = 0; k < WAIT_BUCKETS; k++)
			buckets += groups[i]->buckets[k];
	}
	assert_int_equal(waits, MANY + SMALL);
	assert_int_equal(buckets, MANY + SMALL);
}

/* What is given up is what matters least for the order that is asked for. */
static void test_a_limit_keeps_the_longest(void **state)
{
	struct aggregate_group **groups;
	size_t i, n, longest = 0;

	for (i = 0; i < MANY; i++) {
		add_image(0, i + 1, false);
		add_row(0, (uint32_t)i, i == 10 ? 1 : 5, (i == 10 ? 300 : 100) * US, &kernel);
	}
	list.n = 1;
	options.max_memory = 1;
	options.rank = AGGREGATE_BY_MAX;
	assert_int_equal(aggregate_new(&list, &later, &filter, &options, &unread, &aggregate), 0);
	groups = aggregate_groups(aggregate, &n);
	for (i = 0; i < n; i++)
		longest += !groups[i]->is_others && groups[i]->max_ns == 300 * US;
	assert_int_equal(longest, 1);
	assert_int_equal(sum_of(groups, n), (MANY - 1) * 500 * US + 300 * US);
}

/* Rows by name are added up under that name, whatever their process and stacks are. */
static void test_groups_by_name(void **state)
{
	struct aggregate_group **groups;

	add_image(0, 1, false);
	memcpy(add_image(0, 2, false)->comm, "other", 6);
	add_image(1, 3, false)->sums.short_count = 2;
	add_row(0, 0, 1, 100 * US, &kernel);
	add_row(0, 1, 2, 100 * US, &other);
	add_row(1, 0, 4, 100 * US, &other);
	options.group = GROUP_BY_COMM;
	options.by = AGGREGATE_BY_THREAD;
	groups = run(3);
	assert_int_equal(sum_of(groups, 3), 700 * US);
	options.group = GROUP_BY_CGROUP;
	groups = run(2);
	assert_string_equal(groups[0]->name, "[unknown]");
	assert_int_equal(groups[0]->is_short ^ groups[1]->is_short, 1);
	options.group = GROUP_BY_FUNCTION;
	options.by = AGGREGATE_BY_STACK;
	groups = run(2);
	assert_string_equal(groups[groups[0]->is_short]->name, "[no stack]");
	assert_null(groups[0]->kernel);
}

/* Names take no more memory than the limit allows: the rows of the others are one row. */
static void test_names_within_a_limit_of_memory(void **state)
{
	static struct frame frames[MANY], *frame_of[MANY];
	static struct stack stacks[MANY];
	static char names[MANY][16];
	struct aggregate_group **groups;
	size_t i, n, others = 0;

	add_image(0, 1, false);
	for (i = 0; i < MANY; i++) {
		snprintf(names[i], sizeof(names[i]), "function_%zu", i);
		frames[i] = (struct frame){ .kind = FRAME_KERNEL, .name = names[i] };
		frame_of[i] = &frames[i];
		stack_init(&stacks[i], 1000 + i);
		stacks[i].frames = &frame_of[i];
		stacks[i].n_frames = 1;
		stacks[i].is_resolved = true;
		add_row(0, 0, 1, 100 * US, &stacks[i]);
	}
	list.n = 1;
	options.group = GROUP_BY_FUNCTION;
	options.max_memory = 1;
	assert_int_equal(aggregate_new(&list, &later, &filter, &options, &unread, &aggregate), 0);
	groups = aggregate_groups(aggregate, &n);
	assert_int_equal(sum_of(groups, n), MANY * 100 * US);
	for (i = 0; i < n; i++)
		if (groups[i]->name && !strcmp(groups[i]->name, "[other names]"))
			others = groups[i]->count;
	assert_in_range(others, MANY - 80, MANY - 60);
}

/* Adds an image of a process with this name and program. */
static struct window_image *add_program(size_t n, uint64_t uid, const char *comm, const char *exe)
{
	struct window_image *image = window_add_image(windows[n]);
	struct process_info info = {
		.id = { .pid = NO_PID + (int32_t)uid, .start_boot_ns = uid },
		.exe = exe,
	};

	snprintf(info.comm, sizeof(info.comm), "%s", comm);
	image->uid = uid;
	image->tid = NO_PID + (int32_t)uid;
	image->process = process_table_see_as(processes, &info);
	assert_non_null(image->process);
	snprintf(image->comm, sizeof(image->comm), "thread-%u", (unsigned int)uid);
	return image;
}

/*
 * All that the threads of stackd did is in one group, and what they did while idle in another one.
 * The sums stay what they are. A process that only has the name of stackd is left alone.
 */
static void test_own_threads_are_one_group(void **state)
{
	char exe[4096] = "";
	struct aggregate_group **groups;
	size_t i, n_own = 0;
	uint64_t all;

	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	user.is_idle = true;
	add_program(0, 1, "stackd", exe)->sums =
		(struct thread_sums){ .short_count = 4, .short_blocked_ns = 9 };
	add_program(0, 2, "stackd-broker", exe);
	add_program(0, 3, "stackd-x", "/tmp/stackd-x");
	add_program(0, 4, "other", exe);
	for (i = 0; i < 4; i++) {
		add_row(0, (uint32_t)i, 1, 100 * US, &kernel);
		add_row(0, (uint32_t)i, 2, 50 * US, &other);
		windows[0]->rows[2 * i + 1].state = 2;
	}
	list.n = 1;
	all = sum_of(run(9), 9);
	options.folds_own = true;
	groups = run(6);
	assert_int_equal(sum_of(groups, 6), all);
	for (i = 0; i < 6; i++) {
		if (!groups[i]->is_own)
			continue;
		n_own++;
		assert_false(groups[i]->is_short);
		assert_null(groups[i]->kernel);
		assert_int_equal(groups[i]->count, groups[i]->is_idle ? 2 : 8);
		assert_int_equal(groups[i]->blocked_ns, 200 * US + (groups[i]->is_idle ? 0 : 9));
	}
	assert_int_equal(n_own, 2);
	/* Waits that have not ended are in it, too; of several threads, none has its tid. */
	add_open(0, 0, 500 * US, INT64_MAX);
	add_open(0, 1, 300 * US, INT64_MAX);
	options.open_only = true;
	options.by = AGGREGATE_BY_THREAD;
	groups = run(1);
	assert_true(groups[0]->is_own);
	assert_int_equal(groups[0]->open, 2);
	assert_int_equal(groups[0]->max_ns, 700 * US);
}

/* Checks what an answer with at most `top` rows shows, where stackd has more time than anyone. */
static void check_shown(size_t top, size_t n_wanted, size_t own_at, uint64_t all)
{
	struct snapshot_question question = { .top = top };
	struct answer *answer = answer_new();
	const struct wire_snapshot_reply *reply = &answer->reply.snapshot;
	size_t i;

	assert_non_null(answer);
	answer->aggregate = aggregate;
	aggregate = NULL;
	assert_int_equal(snapshot_rows(answer, &question), 0);
	assert_int_equal(answer->source.n, n_wanted);
	for (i = 0; i < n_wanted; i++)
		assert_int_equal(answer->source.groups[i]->is_own, i == own_at);
	assert_int_equal(reply->shown.rows, n_wanted);
	assert_int_equal(reply->shown.total_ns + reply->rest.total_ns + reply->idle.total_ns, all);
	answer_free(answer);
}

/* stackd's own threads come after the rows that were asked for, and are in the sums. */
static void test_own_threads_come_last(void **state)
{
	char exe[4096] = "";
	uint32_t i;

	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	add_program(0, 1, "stackd", exe);
	add_row(0, 0, 1, 900 * US, &kernel);
	for (i = 1; i < 5; i++) {
		add_program(0, i + 1, "other", exe);
		add_row(0, i, 1, i * 100 * US, &kernel);
	}
	list.n = 1;
	options.folds_own = true;
	run(5);
	check_shown(1, 2, 1, 1900 * US);
	run(5);
	check_shown(4, 5, 4, 1900 * US);
	run(5);
	check_shown(9, 5, 4, 1900 * US);
	run(5);
	check_shown(SIZE_MAX, 5, 4, 1900 * US);
	options.folds_own = false;
	run(5);
	check_shown(1, 1, SIZE_MAX, 1900 * US);
}

/* Idle rows come after all others where the client has not asked for them. */
static void test_idle_rows_come_last(void **state)
{
	struct snapshot_question question = { .top = 2, .with_idle = true, .has_idle_last = true };
	bool is_last;

	kernel.is_idle = true;
	add_image(0, 1, false);
	add_image(0, 2, false);
	add_row(0, 0, 1, 900 * US, &kernel);
	add_row(0, 0, 1, 100 * US, &other);
	add_row(0, 1, 1, 300 * US, &other);
	windows[0]->rows[0].state = 1;
	list.n = 1;
	for (is_last = true;; is_last = false) {
		struct answer *answer = answer_new();

		run(3);
		answer->aggregate = aggregate;
		aggregate = NULL;
		question.has_idle_last = is_last;
		assert_int_equal(snapshot_rows(answer, &question), 0);
		assert_int_equal(answer->source.n, 2);
		assert_int_equal(answer->source.groups[0]->blocked_ns,
				 is_last ? 300 * US : 900 * US);
		assert_int_equal(answer->source.groups[0]->is_idle, !is_last);
		answer_free(answer);
		if (!is_last)
			break;
	}
}

/* They come before those that have less than a hundredth of the time that is not idle. */
static void test_small_rows_come_behind_idle_ones(void **state)
{
	struct snapshot_question question = { .top = 3, .with_idle = true, .has_idle_last = true };
	struct answer *answer = answer_new();

	kernel.is_idle = true;
	add_image(0, 1, false);
	add_image(0, 2, false);
	add_image(0, 3, false);
	add_row(0, 0, 1, 500 * US, &kernel);
	add_row(0, 1, 1, 2 * US, &other);
	add_row(0, 2, 1, 300 * US, &other);
	windows[0]->rows[0].state = 1;
	list.n = 1;
	run(3);
	answer->aggregate = aggregate;
	aggregate = NULL;
	assert_int_equal(snapshot_rows(answer, &question), 0);
	assert_int_equal(answer->source.groups[0]->blocked_ns, 300 * US);
	assert_int_equal(answer->source.groups[1]->blocked_ns, 500 * US);
	assert_int_equal(answer->source.groups[2]->blocked_ns, 2 * US);
	answer_free(answer);
}

/* Returns the only group with this name of threads, reason and state of being idle. */
static struct aggregate_group *line_of(struct aggregate_group **groups, size_t n, const char *comm,
				       enum wait_reason reason)
{
	struct aggregate_group *found = NULL;
	size_t i;

	for (i = 0; i < n; i++) {
		if (strcmp(groups[i]->key.comm, comm) != 0 || !groups[i]->has_reason ||
		    groups[i]->reason != reason)
			continue;
		assert_null(found);
		found = groups[i];
	}
	assert_non_null(found);
	return found;
}

/*
 * Rows by line: the threads of a pool are one group for each reason, with the time in each window;
 * the sums are those of the rows by stack.
 */
static void test_lines(void **state)
{
	struct frame frames[3], *of_kernel, *of_other, *of_user;
	struct aggregate_group **groups, *pool;
	const uint64_t *slots;
	size_t n, i, k;

	stack_set_function(&kernel, &frames[0], &of_kernel, "__do_sys_flock");
	stack_set_function(&other, &frames[1], &of_other, "anon_pipe_read");
	stack_set_function(&user, &frames[2], &of_user, "serve");
	for (i = 0; i < 3; i++) {
		for (k = 0; k < 4; k++) {
			struct window_image *image = add_image(i, 10 + k, false);

			image->process = process_unref(image->process);
			image->process = process_table_see(
				processes,
				&(struct process_id){ .pid = NO_PID, .start_boot_ns = 5 }, false,
				"program");
			snprintf(image->comm, sizeof(image->comm), "worker-%zu", k);
			add_row(i, (uint32_t)k, 1, 100 * US, k < 3 ? &kernel : &other);
		}
		add_image(i, 20, true);
		memcpy(windows[i]->images[4].comm, "kworker/0:1", 12);
		add_row(i, 4, 2, 10 * (i + 1) * US, &other);
		windows[i]->rows[0].runnable_ns = 40 * US;
	}
	windows[0]->images[0].sums.short_count = 2;
	windows[0]->images[0].sums.short_blocked_ns = 7;
	options.group = GROUP_BY_LINE;
	groups = run(4);
	assert_int_equal(sum_of(groups, 4), 1200 * US + 120 * US + 120 * US + 7);
	pool = line_of(groups, 4, "worker-*", REASON_FLOCK);
	assert_int_equal(pool->count, 9);
	assert_int_equal(pool->blocked_ns, 900 * US);
	assert_null(pool->kernel);
	slots = aggregate_slots(aggregate, &n);
	assert_int_equal(n, 3);
	for (i = 0; i < n; i++) {
		assert_int_equal(slots[i], LENGTH_NS);
		assert_int_equal(pool->line->slots[i], 340 * US);
		assert_int_equal(pool->line->runnable_slots[i], 40 * US);
	}
	assert_string_equal(aggregate_function(aggregate, pool), "serve");
	pool = line_of(groups, 4, "kworker/*:*", REASON_PIPE_READ);
	assert_int_equal(pool->key.pid, 0);
	assert_int_equal(pool->line->slots[2], 60 * US);
}

/*
 * Processes of one name are one line, with their number: the folded ones as far as they are known.
 * Where functions are of interest, each has a line of its own.
 */
static void test_processes_of_a_line(void **state)
{
	const struct process_info shared = { .comm = "program" };
	struct frame frames[2], *of_kernel, *of_other;
	struct aggregate_group **groups;
	struct window_image *image;
	struct process *process;
	size_t i, k;

	stack_set_function(&kernel, &frames[0], &of_kernel, "serve");
	stack_set_function(&other, &frames[1], &of_other, "accept");
	for (i = 0; i < 2; i++) {
		for (k = 0; k < 5; k++) {
			add_image(i, 10 + 3 * i + k, false);
			add_row(i, (uint32_t)k, 1, 100 * US, k < 3 ? &kernel : &other);
		}
	}
	list.n = 2;
	options.group = GROUP_BY_LINE;
	groups = run(1);
	assert_int_equal(groups[0]->blocked_ns, 1000 * US);
	assert_int_equal(aggregate_line_processes(groups[0]), 8);
	image = &windows[1]->images[0];
	process = image->process;
	/* All rows of a folded entry are of the same processes. */
	image->process = process_see_folded(process, &shared);
	image->folded = image->started = 5000;
	windows[1]->rows[0].processes = windows[1]->rows[0].started = 5000;
	windows[1]->rows[1].image = 0;
	windows[1]->rows[1].processes = windows[1]->rows[1].started = 5000;
	groups = run(1);
	assert_int_equal(aggregate_line_processes(groups[0]), 5000);
	options.group = GROUP_BY_NONE;
	options.by = AGGREGATE_BY_PROCESS;
	groups = run(9);
	for (i = 0; i < 9 && !groups[i]->folded; i++)
		;
	assert_true(i < 9);
	assert_int_equal(groups[i]->folded, 5000);
	assert_int_equal(groups[i]->started, 5000);
	options.group = GROUP_BY_LINE;
	options.by = AGGREGATE_BY_STACK;
	process_unref(image->process);
	image->process = process;
	/* Here, the sum of one process was folded: it is that process. */
	groups = run(1);
	assert_int_equal(aggregate_line_processes(groups[0]), 8);
	/* The sets of processes have a fourth of the query's memory: here, room for four. */
	image->folded = image->started = 0;
	windows[1]->rows[1].image = 1;
	memset(&windows[1]->rows[0].processes, 0, 2 * sizeof(uint32_t));
	memset(&windows[1]->rows[1].processes, 0, 2 * sizeof(uint32_t));
	options.max_memory = 4 * 4 * 4 * sizeof(uint64_t);
	groups = run(1);
	assert_int_equal(groups[0]->blocked_ns, 1000 * US);
	assert_int_equal(aggregate_line_processes(groups[0]), 4);
	options.max_memory = 0;
	options.line_functions = true;
	groups = run(2);
	assert_int_equal(sum_of(groups, 2), 1000 * US);
}

/* Wakers of one name are told apart from others, and are named as far as they are the same. */
static void test_wakers_of_a_line(void **state)
{
	static const struct {
		const char *comm;
		int32_t pid, tid;
	} wakers[] = { { "flusher-1", 7, 71 }, { "flusher-2", 7, 72 }, { "timer", 0, 0 } };
	struct aggregate_group **groups;
	size_t i;

	windows[0]->wakers = calloc(ARRAY_SIZE(wakers), sizeof(*windows[0]->wakers));
	windows[0]->n_wakers = ARRAY_SIZE(wakers);
	add_image(0, 1, false);
	for (i = 0; i < ARRAY_SIZE(wakers); i++) {
		struct window_waker *waker = &windows[0]->wakers[i];

		add_row(0, 0, 1, 100 * US, &kernel);
		waker->kernel = stack_ref(&other);
		waker->links[0] = (struct window_link){
			.context = wakers[i].pid ? WAKE_TASK : WAKE_TIMER,
			.pid = wakers[i].pid,
			.tid = wakers[i].tid,
		};
		memcpy(waker->links[0].comm, wakers[i].comm, strlen(wakers[i].comm));
		waker->links[1].context = WAKE_IRQ;
	}
	list.n = 1;
	options.group = GROUP_BY_LINE;
	groups = run(2);
	for (i = 0; i < 2; i++) {
		const struct window_link *link = groups[i]->waker->links;

		assert_null(groups[i]->waker->kernel);
		assert_int_equal(link[1].context, WAKE_NONE);
		if (link->context == WAKE_TIMER) {
			assert_int_equal(groups[i]->count, 1);
			continue;
		}
		assert_int_equal(groups[i]->count, 2);
		assert_string_equal(link->comm, "flusher-*");
		assert_int_equal(link->pid, 7);
		assert_int_equal(link->tid, 0);
	}
}

/* A function with more than a fifth of the time is found, and none without a tenth of it. */
static void test_function_of_a_line(void **state)
{
	enum { N = 40 };
	static struct stack stacks[N];
	static struct frame frames[N];
	static struct frame *pointers[N];
	static char names[N][16];
	struct aggregate_group **groups;
	size_t i;

	add_image(0, 1, false);
	for (i = 0; i < N; i++) {
		stack_init(&stacks[i], 1000 + i);
		snprintf(names[i], sizeof(names[i]), "f%zu", i);
		stack_set_function(&stacks[i], &frames[i], &pointers[i], names[i]);
		add_row(0, 0, 1, 10 * US, &stacks[i]);
		windows[0]->rows[i].user = NULL;
	}
	stack_unref(&user);
	list.n = 1;
	options.group = GROUP_BY_LINE;
	groups = run(1);
	assert_null(aggregate_function(aggregate, groups[0]));
	add_row(0, 0, 1, 200 * US, &stacks[7]);
	windows[0]->rows[N].user = NULL;
	groups = run(1);
	assert_string_equal(aggregate_function(aggregate, groups[0]), "f7");
}

/* Returns a process that runs this program, if it is the first one. */
static struct process *find_process(void *userdata, const struct aggregate_process *process)
{
	struct process **found = userdata;

	assert_null(process->process);
	return found[process->number - 1];
}

/*
 * A process that is read from disk has no program, and is looked up: that of another program, which
 * has a name as those of stackd, keeps its rows.
 */
static void test_own_threads_on_disk(void **state)
{
	char own[4096] = {};
	enum { N = 4 };
	const char *const exes[N] = { own, "/tmp/stackd", "/usr/bin/stackd", "/tmp/stackd" };
	const char *const cgroups[N] = { "/", "/user.slice/stackd.service",
					 "/system.slice/stackd.service",
					 "/system.slice/stackd.service-of-others" };
	struct process *found[N];
	struct aggregate_group **groups;
	size_t i, n_own = 0;

	assert_true(readlink("/proc/self/exe", own, sizeof(own) - 1) > 0);
	windows[0]->owners = __real_calloc(N, sizeof(struct window_owner));
	windows[0]->n_owners = N;
	for (i = 0; i < N; i++) {
		struct window_image *image = window_add_image(windows[0]);
		struct process_info info = { .id.pid = NO_PID + (int32_t)i, .exe = exes[i] };

		found[i] = process_table_see_as(processes, &info);
		image->uid = i + 1;
		image->tid = NO_PID + (int32_t)i;
		image->owner = (uint32_t)i;
		windows[0]->owners[i] = (struct window_owner){ .id.pid = NO_PID + (int32_t)i,
							       .number = (int64_t)i + 1,
							       .cgroup = cgroups[i],
							       .comm = "stackd-parse" };
		add_row(0, (uint32_t)i, 1, 100 * US, &kernel);
		add_row(0, (uint32_t)i, 1, 100 * US, &other);
	}
	list.n = 1;
	options.folds_own = true;
	options.find_process = find_process;
	options.userdata = found;
	groups = run(5);
	for (i = 0; i < 5; i++) {
		n_own += groups[i]->is_own;
		assert_int_equal(groups[i]->blocked_ns, groups[i]->is_own ? 400 * US : 100 * US);
		assert_true(groups[i]->is_own || groups[i]->process.number == 2 ||
			    groups[i]->process.number == 4);
	}
	assert_int_equal(n_own, 1);
	for (i = 0; i < N; i++)
		process_unref(found[i]);
}

/* The program and the name have to be those of stackd. */
static void test_own_processes(void **state)
{
	assert_true(own_process_matches("/usr/sbin/stackd", "stackd", "/usr/sbin/stackd"));
	assert_true(own_process_matches("/usr/sbin/stackd (deleted)", "stackd-parse+",
					"/usr/sbin/stackd"));
	assert_true(own_process_matches("/usr/sbin/stackd", "stackd-lines",
					"/usr/sbin/stackd (deleted)"));
	assert_false(own_process_matches("/usr/sbin/stackd", "stackd", NULL));
	assert_false(own_process_matches("/usr/sbin/stackd", "stackd", "/tmp/stackd"));
	assert_false(own_process_matches("/usr/sbin/stackd", "stackd", "/usr/sbin/stackd2"));
	assert_false(own_process_matches("/usr/sbin/stackd", "stackdump", "/usr/sbin/stackd"));
	assert_false(own_process_matches("/usr/sbin/stackd", "x", "/usr/sbin/stackd"));
	assert_false(own_process_matches("", "stackd", ""));
}

/* Once the client has hung up, no further window is read, neither of the range nor after it. */
static void test_a_client_that_is_gone(void **state)
{
	add_image(0, 1, false);
	add_row(0, 0, 1, 10 * US, &kernel);
	options.is_cancelled = &is_gone;
	run(1);
	assert_int_equal(reads, ARRAY_SIZE(windows));
	aggregate = aggregate_free(aggregate);
	later = list;
	for (gone_at = 1; gone_at <= 2 * ARRAY_SIZE(windows); gone_at++) {
		is_gone = false;
		reads = 0;
		assert_int_equal(
			aggregate_new(&list, &later, &filter, &options, &unread, &aggregate),
			-ECANCELED);
		assert_int_equal(reads, gone_at);
	}
}

/* Any allocation may fail: aggregating then returns -ENOMEM. */
static void test_out_of_memory(void **state)
{
	uint32_t i;
	long n;
	int r = -ENOMEM;

	for (i = 0; i < MANY; i++) {
		add_image(0, i + 1, false)->sums.short_count = 1;
		add_row(0, i, 1, 100 * US, &kernel);
		add_open(0, i, 900 * US, INT64_MAX);
		add_image(1, i + 1, false);
		add_span(1, i, 900 * US, 1200 * US, 1201 * US);
	}
	for (n = 0; r; n++) {
		allocations = n;
		r = aggregate_new(&list, &later, &filter, &options, &unread, &aggregate);
		allocations = -1;
		assert_true(r == 0 || r == -ENOMEM);
	}
	assert_true(n > MANY);
	assert_int_equal(aggregate_totals(aggregate)->threads, MANY);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_rows_of_windows_add_up),
		TEST(test_a_wait_over_windows),
		TEST(test_functions),
		TEST(test_throttled),
		TEST(test_throttled_rows),
		TEST(test_open_only),
		TEST(test_step),
		TEST(test_unseen),
		TEST(test_folded_open_waits),
		TEST(test_runs_of_stackd),
		TEST(test_unread_stacks),
		TEST(test_sampled_lengths),
		TEST(test_states_apart),
		TEST(test_times),
		TEST(test_part_of_a_row_is_an_estimate),
		TEST(test_idle_does_not_depend_on_what_is_shown),
		TEST(test_reasons),
		TEST(test_times_by_reason),
		TEST(test_function_of_most),
		TEST(test_reasons_are_no_more_than_the_row),
		TEST(test_kernel_threads_are_idle),
		TEST(test_ambiguous_stacks_stand_alone),
		TEST(test_short_waits_have_a_group),
		TEST(test_sampled_waits_are_not_counted_twice),
		TEST(test_sampled_operations),
		TEST(test_estimates_above_the_sum),
		TEST(test_lines_have_time),
		TEST(test_threads_have_exact_sums),
		TEST(test_idle_parts_of_exact_sums),
		TEST(test_estimates_within_a_limit_of_memory),
		TEST(test_a_filter_sees_each_name),
		TEST(test_operations),
		TEST(test_operations_by_window),
		TEST(test_a_limit_on_operations),
		TEST(test_a_limit_on_groups),
		TEST(test_a_limit_and_many_small_rows),
		TEST(test_a_limit_keeps_the_longest),
		TEST(test_groups_by_name),
		TEST(test_names_within_a_limit_of_memory),
		TEST(test_own_threads_are_one_group),
		TEST(test_own_threads_come_last),
		TEST(test_idle_rows_come_last),
		TEST(test_small_rows_come_behind_idle_ones),
		TEST(test_own_processes),
		TEST(test_a_client_that_is_gone),
		TEST(test_own_threads_on_disk),
		TEST(test_lines),
		TEST(test_processes_of_a_line),
		TEST(test_wakers_of_a_line),
		TEST(test_function_of_a_line),
		TEST(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
