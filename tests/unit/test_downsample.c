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
		windows[i]->lost[0] = i;
		pressure_set(&windows[i]->pressure, i);
		windows[i]->sample_below_ns = i == 1 ? 180 * US : 0;
		windows[i]->cost = (struct window_cost){ LENGTH_NS, i, 10 };
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

/* Compares the sums of thread 1 and of all threads. */
static void assert_same_answer(void)
{
	struct aggregate_group *before_group, *after_group;
	struct aggregate *before = answer(windows, WINDOWS, &before_group), *after;
	struct window *window;

	assert_int_equal(store_downsample(windows, WINDOWS, &window), 0);
	after = answer(&window, 1, &after_group);
	assert_same_pressure(before, after);
	assert_int_equal(window->cost.cpu_ns, 0 + 1 + 2);
	assert_memory_equal(aggregate_cost(before), aggregate_cost(after),
			    sizeof(struct window_cost));
	assert_int_equal(window->parts, WINDOWS);
	assert_int_equal(window->seq, 10);
	assert_int_equal(window->lost[0], 0 + 1 + 2);
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

static void test_too_many(void **state)
{
	struct window *window = NULL;

	windows[0]->buckets[0] = UINT32_MAX;
	windows[2]->buckets[0] = UINT32_MAX;
	assert_int_equal(store_downsample(windows, WINDOWS, &window), -EOVERFLOW);
	assert_null(window);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_rows),
		TEST(test_a_wait_that_ends),
		TEST(test_a_wait_that_goes_on),
		TEST(test_a_wait_that_was_lost),
		TEST(test_a_wait_that_was_folded),
		TEST(test_folded_processes),
		TEST(test_samples),
		TEST(test_operations),
		TEST(test_too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
