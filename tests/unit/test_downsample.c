/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks that three windows of 1000 us and the one made of them give the same answer. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/query/aggregate.h"
#include "daemon/store/downsample.h"

#define US	  NS_PER_US
#define LENGTH_NS (1000 * US)

enum { NO_PID = 0x3f000000 /* above any pid_max */, WINDOWS = 3 };

static struct process_table *processes;
static struct process *process;
static struct stack kernel = { .id = 100, .place_id = 100, .raw_id = 1100, .refs = 1 };
static struct stack user = { .id = 102, .place_id = 102, .raw_id = 1102, .refs = 1 };
static struct window *windows[WINDOWS];

static void image_add(size_t n, uint64_t uid)
{
	struct window_image *image = window_add_image(windows[n]);

	image->uid = image->start_boot_ns = uid;
	image->tid = NO_PID + (int32_t)uid;
	image->process = process_ref(process);
	image->sums = (struct thread_sums){ .on_ns = 10 * uid, .switches = 3, .short_count = 2 };
	image->estimate = (struct window_estimate){ 1, 20 * uid, 3 };
	memcpy(image->comm, "thread", 7);
}

static void row_add(size_t n, uint32_t image, uint64_t ns)
{
	uint32_t buckets[WAIT_BUCKETS] = {};
	struct window_row *row = window_add_row(windows[n]);

	buckets[wait_bucket(ns)] = 2;
	assert_int_equal(window_row_set_buckets(windows[n], row, buckets), 0);
	row->image = image;
	row->count = 2;
	row->blocked_ns = 2 * ns;
	row->max_ns = ns;
	row->max_end_ns = windows[n]->end_ns - 7;
	row->culprits.ran_before = (struct culprit){ .ns = ns, .tid = image + 1 };
	row->culprits.held_up_by = (struct culprit){ .ns = 3 * ns, .tid = image + 2 };
	row->state = 1;
	row->kernel = stack_ref(&kernel);
	row->user = stack_ref(&user);
}

static void open_add(size_t n, uint32_t image, int64_t start_ns)
{
	struct window_open *open = window_add_open(windows[n]);

	*open = (struct window_open){ .image = image, .start_ns = start_ns, .state = 1 };
	open->wake_ns = INT64_MAX;
	open->kernel = stack_ref(&kernel);
	open->user = stack_ref(&user);
}

static void span_add(size_t n, uint32_t image, int64_t start_ns, int64_t wake_ns, int64_t end_ns)
{
	struct window_span *span = window_add_span(windows[n]);

	*span = (struct window_span){ .image = image, .start_ns = start_ns, .state = 1 };
	span->wake_ns = wake_ns;
	span->end_ns = end_ns;
	span->culprits.ran_before =
		(struct culprit){ .ns = (uint64_t)(end_ns - wake_ns), .tid = image };
	span->culprits.held_up_by =
		(struct culprit){ .ns = (uint64_t)(wake_ns - start_ns), .tid = image };
	span->kernel = stack_ref(&kernel);
	span->user = stack_ref(&user);
}

static void sample_add(size_t n, uint32_t image, uint64_t count)
{
	struct window_sample *sample = window_add_sample(windows[n]);

	*sample = (struct window_sample){ .image = image, .count = count, .on_ns = count * US };
	sample->user = stack_ref(&user);
}

/* The unit /all is in each window, the others are in one window each. */
static void pressure_set(struct window_pressure *pressure, size_t i)
{
	const struct pressure stalled = { .some_ns = { i + 1, 10, 0 }, .full_ns = { 0, i, 0 } };
	char other[] = { '/', (char)('x' - i), '\0' };

	pressure->state = pressure->units_state = PRESSURE_READ;
	pressure->ns = pressure->units_ns = LENGTH_NS + i;
	pressure->stalled = stalled;
	window_pressure_add_unit(pressure, strdup("/all"), &stalled);
	window_pressure_add_unit(pressure, strdup(other), &stalled);
}

/* "sh" has started "true" in each window, and another program in one window each. */
static void spawns_set(struct window_spawns *spawns, size_t i)
{
	const struct spawn_sums sums = { i + 1, i + 1, i + 1, i, 100 * i, 1000 * i };
	char other[] = { 'p', (char)('a' + i), '\0' };

	/* The first window is of an older stackd. */
	spawns->ns = i ? LENGTH_NS : 0;
	if (!i)
		return;
	window_spawns_count(spawns, "sh", "true", &sums);
	window_spawns_count(spawns, "sh", other, &sums);
	spawns->others.exits = 5;
	spawns->n_others = 1;
}

static int set_up(void **state)
{
	struct process_info info = { .id = { .pid = NO_PID, .start_boot_ns = 5 }, .comm = "known" };
	size_t i;

	if (process_table_new_stored(&processes))
		return -1;
	process = process_table_add_stored(processes, &info);
	for (i = 0; i < WINDOWS; i++) {
		windows[i] = window_new();
		windows[i]->seq = 10 + i;
		windows[i]->session = 1;
		windows[i]->start_ns = (int64_t)i * LENGTH_NS;
		windows[i]->end_ns = windows[i]->start_ns + LENGTH_NS;
		windows[i]->real_offset_ns = NS_PER_S;
		for (size_t k = 0; k < WINDOW_LOST_N; k++)
			windows[i]->lost[k] = i * (k + 1);
		windows[i]->lost_ns = 7 * i;
		windows[i]->switch_ins = 5 * i;
		windows[i]->sampled = 3 * i;
		pressure_set(&windows[i]->pressure, i);
		spawns_set(&windows[i]->spawns, i);
		windows[i]->sample_below_ns = i == 1 ? 180 * US : 0;
		windows[i]->cost = (struct window_cost){
			.ns = LENGTH_NS,
			.cpu_ns = i,
			.bpf_ns = 10,
			.known_ns = i ? LENGTH_NS : 0,
			.limited_ns = i == 2 ? LENGTH_NS : 0,
			.budget_ns = i == 2 ? 7 : 0,
			.answers_ns = 2 * i,
			.sessions_ns = 3 * i,
			.beyond_ns = i == 2 ? LENGTH_NS : 0,
			.braked = i,
			.brake_below_ns = (int64_t)(2 - i) * US,
			.shed_ns = { [WINDOW_SHED_FRAMES] = i * LENGTH_NS },
		};
		/* The order differs from window to window. */
		image_add(i, 1 + i % 2);
		image_add(i, 2 - i % 2);
		row_add(i, (uint32_t)(i % 2), (i == 1 ? 300 : 100) * US);
	}
	return 0;
}

static int tear_down(void **state)
{
	size_t i;

	for (i = 0; i < WINDOWS; i++)
		window_unref(windows[i]);
	process_unref(process);
	process_table_free(processes);
	return 0;
}

static struct aggregate *answer(struct window **list, size_t n, struct aggregate_group **group)
{
	struct timeline_list all = { .windows = list, .n = n }, none = {};
	struct aggregate_options options = { .by = AGGREGATE_BY_THREAD };
	struct filter filter = { .max_ns = INT64_MAX };
	struct aggregate_group **groups;
	struct aggregate *aggregate;
	size_t i, found;

	assert_int_equal(aggregate_new(&all, &none, &filter, &options, NULL, &aggregate), 0);
	groups = aggregate_groups(aggregate, &found);
	*group = NULL;
	for (i = 0; i < found; i++)
		if (groups[i]->tid == NO_PID + 1 && !groups[i]->is_short)
			*group = groups[i];
	assert_non_null(*group);
	return aggregate;
}

static void assert_same_pressure(const struct aggregate *before, const struct aggregate *after)
{
	const struct window_pressure *a = aggregate_pressure(before),
				     *b = aggregate_pressure(after);
	size_t i;

	assert_int_equal(a->state, PRESSURE_READ);
	assert_int_equal(a->ns, WINDOWS * LENGTH_NS + 3);
	assert_int_equal(b->ns, a->ns);
	assert_int_equal(a->stalled.some_ns[PRESSURE_CPU], 1 + 2 + 3);
	assert_memory_equal(&a->stalled, &b->stalled, sizeof(a->stalled));
	assert_int_equal(a->n_units, 1 + WINDOWS);
	assert_int_equal(b->n_units, a->n_units);
	for (i = 0; i < a->n_units; i++) {
		assert_string_equal(a->units[i].path, b->units[i].path);
		assert_memory_equal(&a->units[i].stalled, &b->units[i].stalled,
				    sizeof(a->units[i].stalled));
	}
	assert_int_equal(a->units[0].stalled.some_ns[PRESSURE_IO], 10 * WINDOWS);
}

static void assert_same_spawns(const struct aggregate *before, const struct aggregate *after)
{
	const struct window_spawns *a = aggregate_spawns(before), *b = aggregate_spawns(after);

	assert_int_equal(a->ns, (WINDOWS - 1) * LENGTH_NS);
	assert_int_equal(b->ns, a->ns);
	assert_int_equal(a->n, WINDOWS);
	assert_int_equal(b->n, a->n);
	assert_memory_equal(a->v, b->v, a->n * sizeof(*a->v));
	assert_string_equal(a->v[2].comm, "true");
	assert_int_equal(a->v[2].sums.exits, 2 + 3);
	assert_int_equal(a->v[2].sums.cpu_ns, 300);
	assert_int_equal(a->others.exits, 10);
	assert_memory_equal(&a->others, &b->others, sizeof(a->others));
	assert_int_equal(b->n_others, 2);
}

/* Compares the sums of thread 1 and of all threads. */
static void assert_same_answer(void)
{
	struct aggregate_group *before_group, *after_group;
	struct aggregate *before = answer(windows, WINDOWS, &before_group), *after;
	struct window *window;

	assert_int_equal(store_downsample(windows, WINDOWS, &window), 0);
	after = answer(&window, 1, &after_group);
	assert_same_pressure(before, after);
	assert_same_spawns(before, after);
	assert_int_equal(window->cost.cpu_ns, 0 + 1 + 2);
	assert_int_equal(window->cost.known_ns, 2 * LENGTH_NS);
	assert_int_equal(window->cost.limited_ns, LENGTH_NS);
	assert_int_equal(window->cost.budget_ns, 7);
	assert_int_equal(window->cost.answers_ns, 2 * (0 + 1 + 2));
	assert_int_equal(window->cost.sessions_ns, 3 * (0 + 1 + 2));
	assert_int_equal(window->cost.beyond_ns, LENGTH_NS);
	assert_int_equal(window->cost.braked, 0 + 1 + 2);
	assert_int_equal(window->cost.brake_below_ns, 2 * US);
	assert_int_equal(window->cost.shed_ns[WINDOW_SHED_FRAMES], (0 + 1 + 2) * LENGTH_NS);
	assert_memory_equal(aggregate_cost(before), aggregate_cost(after),
			    sizeof(struct window_cost));
	assert_int_equal(window->merged_from, WINDOWS);
	assert_int_equal(window->seq, 10);
	for (size_t k = 0; k < WINDOW_LOST_N; k++)
		assert_int_equal(window->lost[k], (0 + 1 + 2) * (k + 1));
	assert_int_equal(window->lost_ns, 7 * (0 + 1 + 2));
	assert_int_equal(window->switch_ins, 5 * (0 + 1 + 2));
	assert_int_equal(window->sampled, 3 * (0 + 1 + 2));
	assert_int_equal(window->sample_below_ns, 180 * US);
	assert_int_equal(window->end_ns - window->start_ns, WINDOWS * LENGTH_NS);
	assert_memory_equal(aggregate_totals(before), aggregate_totals(after),
			    sizeof(*aggregate_totals(before)));
	assert_int_equal(before_group->count, after_group->count);
	assert_int_equal(before_group->blocked_ns, after_group->blocked_ns);
	assert_int_equal(before_group->runnable_ns, after_group->runnable_ns);
	assert_int_equal(before_group->open, after_group->open);
	assert_int_equal(before_group->open_ns, after_group->open_ns);
	assert_int_equal(before_group->max_ns, after_group->max_ns);
	assert_memory_equal(&before_group->culprits, &after_group->culprits,
			    sizeof(before_group->culprits));
	assert_int_equal(before_group->max_end_real_ns, after_group->max_end_real_ns);
	assert_memory_equal(before_group->buckets, after_group->buckets,
			    sizeof(before_group->buckets));
	aggregate_free(before);
	aggregate_free(after);
	window_unref(window);
}

static void test_rows(void **state)
{
	assert_same_answer();
}

/* Returns thread 1's group with these stacks, or without them, in an answer by stack. */
static struct aggregate_group *group_of(struct aggregate *aggregate, const struct stack *stack)
{
	struct aggregate_group **groups;
	size_t i, n;

	groups = aggregate_groups(aggregate, &n);
	for (i = 0; i < n; i++)
		if (groups[i]->kernel == stack && !groups[i]->is_short)
			return groups[i];
	fail();
	return NULL;
}

/* Adds a row of short waits, picked where `below` was the limit, that stand for `count` waits. */
static void picked_add(size_t n, uint32_t image, uint64_t count, uint64_t below)
{
	uint32_t buckets[WAIT_BUCKETS] = { [3] = (uint32_t)count };
	struct window_row *row = window_add_row(windows[n]);

	*row = (struct window_row){ .image = image, .count = count, .state = 1 | STATE_SAMPLED };
	assert_int_equal(window_row_set_buckets(windows[n], row, buckets), 0);
	row->blocked_ns = below;
	row->max_ns = 9 * US;
	row->kernel = stack_ref(&kernel);
	row->user = stack_ref(&user);
	windows[n]->images[image].sums.short_count += count;
	windows[n]->images[image].sums.short_blocked_ns += below;
	windows[n]->images[image].sums.blocked_ns += below;
	windows[n]->images[image].estimate.count += count;
	windows[n]->images[image].estimate.blocked_ns += below;
	if (windows[n]->sample_below_ns < (int64_t)below)
		windows[n]->sample_below_ns = (int64_t)below;
}

/* Adds up the groups with the stacks of all rows in an answer by stack. */
static struct aggregate *answer_by_stack(struct window **list, size_t n,
					 struct aggregate_group **group)
{
	struct timeline_list all = { .windows = list, .n = n }, none = {};
	struct aggregate_options options = {};
	struct filter filter = { .max_ns = INT64_MAX };
	struct aggregate *aggregate;

	assert_int_equal(aggregate_new(&all, &none, &filter, &options, NULL, &aggregate), 0);
	*group = group_of(aggregate, &kernel);
	return aggregate;
}

/*
 * Windows whose limits of sampling differ, one of them without any, as an older version made them:
 * each row keeps the weight of its own window, and exact waits stay apart from estimates.
 */
static void test_limits_that_differ(void **state)
{
	struct aggregate_group *a, *b;
	struct aggregate *before, *after;
	struct window *window;
	size_t i, picked = 0;

	for (i = 0; i < WINDOWS; i++)
		windows[i]->images[0].estimate = windows[i]->images[1].estimate =
			(struct window_estimate){};
	picked_add(1, 0, 20, 180 * US);
	picked_add(1, 1, 10, 180 * US);
	picked_add(2, 0, 4000, 50000 * US);
	before = answer_by_stack(windows, WINDOWS, &a);
	assert_int_equal(store_downsample(windows, WINDOWS, &window), 0);
	after = answer_by_stack(&window, 1, &b);
	assert_int_equal(window->sample_below_ns, 50000 * US);
	for (i = 0; i < window->n_rows; i++)
		if (window->rows[i].state & STATE_SAMPLED)
			picked += window->rows[i].count;
	assert_int_equal(picked, 20 + 10 + 4000);
	assert_int_equal(a->sampled.count, 20 + 10 + 4000);
	assert_int_equal(a->sampled.blocked_ns, (180 + 180 + 50000) * US);
	assert_int_equal(a->count, b->count);
	assert_int_equal(a->blocked_ns, b->blocked_ns);
	assert_memory_equal(&a->sampled, &b->sampled, sizeof(a->sampled));
	assert_memory_equal(a->buckets, b->buckets, sizeof(a->buckets));
	assert_memory_equal(aggregate_totals(before), aggregate_totals(after),
			    sizeof(*aggregate_totals(before)));
	aggregate_free(before);
	aggregate_free(after);
	window_unref(window);
}

/* Weights that fill a bucket of the histogram in one window do not keep it from being merged. */
static void test_full_buckets(void **state)
{
	uint64_t buckets[WAIT_BUCKETS] = {};
	struct window *window;
	size_t i;

	picked_add(1, 0, UINT32_MAX, 180 * US);
	picked_add(2, 1, UINT32_MAX, 180 * US);
	picked_add(2, 0, 7, 180 * US);
	assert_int_equal(store_downsample(windows, WINDOWS, &window), 0);
	for (i = 0; i < window->n_rows; i++)
		if (window->rows[i].state & STATE_SAMPLED && window->rows[i].count > 7)
			window_row_add_buckets(window, &window->rows[i], buckets);
	assert_in_range(buckets[3], UINT32_MAX, 2 * (uint64_t)UINT32_MAX);
	window_unref(window);
}

/* A wait begins in the first window, or before it, and ends in the last. */
static void test_a_wait_that_ends(void **state)
{
	open_add(0, 0, 500 * US);
	open_add(1, 1, 500 * US);
	span_add(2, 0, 500 * US, 1900 * US, 2700 * US);
	assert_same_answer();
	span_add(0, 1, -700 * US, 20 * US, 30 * US);
	assert_same_answer();
}

static void test_a_wait_that_goes_on(void **state)
{
	open_add(0, 0, -500 * US);
	open_add(1, 1, -500 * US);
	open_add(2, 0, -500 * US);
	assert_same_answer();
}

/* The end of a wait was lost: the time it had taken by then is kept. */
static void test_a_wait_that_was_lost(void **state)
{
	open_add(0, 0, 900 * US);
	open_add(1, 1, 900 * US);
	assert_same_answer();
}

/* Adds the time that a wait took in a window to a row, as folding the wait does. */
static void part_add(size_t n, uint32_t image, uint64_t blocked_ns)
{
	struct window_row *row = window_add_row(windows[n]);

	*row = (struct window_row){ .image = image, .state = 1, .blocked_ns = blocked_ns };
	row->kernel = stack_ref(&kernel);
	row->user = stack_ref(&user);
	row->processes = 2 + (uint32_t)n;
	row->started = 1;
	windows[n]->folded.rows++;
}

/* Merges the windows, and checks that no time was added or dropped. */
static void assert_same_time(struct window **out)
{
	struct aggregate_group *before_group, *after_group;
	struct aggregate *before = answer(windows, WINDOWS, &before_group), *after;

	assert_int_equal(store_downsample(windows, WINDOWS, out), 0);
	after = answer(out, 1, &after_group);
	assert_int_equal(before_group->count, after_group->count);
	assert_int_equal(before_group->blocked_ns, after_group->blocked_ns);
	assert_int_equal(before_group->runnable_ns, after_group->runnable_ns);
	assert_int_equal(before_group->open, after_group->open);
	assert_int_equal(before_group->max_ns, after_group->max_ns);
	assert_memory_equal(&before_group->culprits, &after_group->culprits,
			    sizeof(before_group->culprits));
	assert_int_equal(before_group->folded, after_group->folded);
	assert_int_equal(before_group->started, after_group->started);
	assert_memory_equal(before_group->buckets, after_group->buckets,
			    sizeof(before_group->buckets));
	aggregate_free(before);
	aggregate_free(after);
}

/* A wait that lasts for three windows was folded in one of them, before it ended or did not. */
static void test_a_wait_that_was_folded(void **state)
{
	size_t folded, ends, i;
	struct window *window;

	for (i = 0; i < 2 * WINDOWS; i++) {
		folded = i / 2;
		ends = i % 2;
		if (i > 0) {
			tear_down(state);
			set_up(state);
		}
		if (folded == 0)
			part_add(0, 0, 500 * US);
		else
			open_add(0, 0, 500 * US);
		if (folded == 1)
			part_add(1, 1, LENGTH_NS);
		else
			open_add(1, 1, 500 * US);
		if (folded == 2)
			part_add(2, 0, LENGTH_NS);
		else if (ends)
			span_add(2, 0, 500 * US, 1900 * US, 2700 * US);
		else
			open_add(2, 0, 500 * US);
		assert_same_time(&window);
		assert_int_equal(window->folded.rows, 1);
		assert_int_equal(window->n_opens, folded < 2 && !ends);
		if (window->n_opens) {
			assert_int_equal(window->opens[0].count, 1);
			assert_int_equal(window->opens[0].whole_ns, 2500 * US);
		}
		window_unref(window);
	}
}

/* Several windows have folded rows of the same processes: at least the most in one window. */
static void test_folded_processes(void **state)
{
	struct window *window;
	size_t i, k;

	for (i = 0; i < WINDOWS; i++) {
		part_add(i, (uint32_t)(i % 2), US);
		windows[i]->folded.processes = 4 - i;
		windows[i]->images[i % 2].folded = 1 + (uint32_t)i;
		for (k = 0; k < 2; k++)
			*window_add_member(windows[i]) =
				(struct window_member){ .image = (uint32_t)(i % 2),
							.pid = (int32_t)(10 + i / 2 + k) };
	}
	assert_same_time(&window);
	assert_int_equal(window->folded.processes, 4);
	assert_int_equal(window->folded.rows, 3);
	assert_int_equal(window->images[0].folded, 3);
	for (i = 0; i < window->n_rows; i++) {
		if (!window->rows[i].processes)
			continue;
		assert_int_equal(window->rows[i].processes, 4);
		assert_int_equal(window->rows[i].started, 3);
	}
	assert_int_equal(window->n_members, 3);
	for (i = 0; i < 3; i++)
		assert_int_equal(window->members[i].pid, 10 + i);
	window_unref(window);
}

static void test_samples(void **state)
{
	sample_add(0, 0, 3);
	sample_add(1, 1, 4);
	sample_add(2, 1, 5);
	assert_same_answer();
}

static void test_operations(void **state)
{
	struct window *window;
	size_t i, open = 0;

	for (i = 0; i < 2 * WINDOWS; i++) {
		struct window_io *io = window_add_io(windows[i / 2]);

		*io = (struct window_io){ .image = (uint32_t)(i / 2 % 2), .op = 1 };
		if (i % 2)
			io->open = io->oldest_ns = i;
		else
			io->count = 10;
	}
	assert_int_equal(store_downsample(windows, WINDOWS, &window), 0);
	assert_int_equal(window->n_ios, 2);
	open = window->ios[1].open > 0;
	assert_int_equal(window->ios[!open].count, 10 * WINDOWS);
	assert_int_equal(window->ios[!open].open, 0);
	/* The open waits are those of the last window. */
	assert_int_equal(window->ios[open].open, 2 * WINDOWS - 1);
	assert_int_equal(window->ios[open].count, 0);
	window_unref(window);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_rows),
		TEST(test_limits_that_differ),
		TEST(test_full_buckets),
		TEST(test_a_wait_that_ends),
		TEST(test_a_wait_that_goes_on),
		TEST(test_a_wait_that_was_lost),
		TEST(test_a_wait_that_was_folded),
		TEST(test_folded_processes),
		TEST(test_samples),
		TEST(test_operations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
