/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Aggregates made-up windows of 1000 us each; CLOCK_REALTIME is 1 s ahead of their clock. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/query/aggregate.h"
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

/* Open waits that may be over are counted, and so is their part of the runnable time. */
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
	assert_int_equal(aggregate_totals(aggregate)->unseen_ns, 0);
	windows[2]->opens[0].state |= STATE_UNSEEN;
	groups = run(1);
	assert_int_equal(groups[0]->unseen, 1);
	assert_int_equal(groups[0]->open, 1);
	assert_int_equal(aggregate_totals(aggregate)->unseen, 1);
	assert_int_equal(aggregate_totals(aggregate)->unseen_ns, 3000 * US);
	/* Like runnable_ns, unseen_ns is a sum over all waits, whatever states are asked for. */
	filter.has_states = true;
	groups = run(0);
	assert_int_equal(aggregate_totals(aggregate)->unseen, 0);
	assert_int_equal(aggregate_totals(aggregate)->unseen_ns, 3000 * US);
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
	windows[0]->rows[0].state = 2;
	assert_false(run(1)[0]->is_idle);
	windows[0]->rows[0].state = STATE_PREEMPTED;
	assert_false(run(1)[0]->is_idle);
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
	assert_int_equal(groups[0]->sampled.blocked_ns, 0);
	filter.min_ns = 20 * US;
	groups = run(1);
	assert_int_equal(groups[0]->blocked_ns, 450 * US);
	assert_int_equal(groups[0]->sampled.blocked_ns, 450 * US);
	assert_int_equal(groups[0]->count, 9);
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
		TEST(test_throttled),
		TEST(test_throttled_rows),
		TEST(test_open_only),
		TEST(test_unseen),
		TEST(test_states_apart),
		TEST(test_times),
		TEST(test_part_of_a_row_is_an_estimate),
		TEST(test_idle_does_not_depend_on_what_is_shown),
		TEST(test_kernel_threads_are_idle),
		TEST(test_ambiguous_stacks_stand_alone),
		TEST(test_short_waits_have_a_group),
		TEST(test_sampled_waits_are_not_counted_twice),
		TEST(test_sampled_operations),
		TEST(test_estimates_above_the_sum),
		TEST(test_threads_have_exact_sums),
		TEST(test_estimates_within_a_limit_of_memory),
		TEST(test_a_filter_sees_each_name),
		TEST(test_operations),
		TEST(test_operations_by_window),
		TEST(test_a_limit_on_operations),
		TEST(test_a_limit_on_groups),
		TEST(test_a_limit_and_many_small_rows),
		TEST(test_a_limit_keeps_the_longest),
		TEST(test_groups_by_name),
		TEST(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
