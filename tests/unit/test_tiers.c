/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Folds the windows of a host where processes come and go as the tiers of the store do, and
 * compares what took most time in each range with the windows as they were.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bpf/shared.h"
#include "common/base.h"
#include "daemon/store/downsample.h"
#include "daemon/store/store.h"
#include "tests/bench/month_top.h"

#define LENGTH_NS (5 * NS_PER_S)

enum {
	WINDOWS = 120, /* ten minutes */
	MINUTE = 12,
	RANGE = 60, /* windows in a range of five minutes */
	COMMS = 20,
	PLACES = 15, /* stacks of a program */
	STACKS = COMMS * PLACES,
	LIVING = 60, /* threads that live all the time */
	SHORT = 400, /* processes that only one window has */
	ROWS = 124,  /* as [window] max_rows and max_folded */
	/*
	 * How often rows are halved before too few are left for the first 20: 15 are left then,
	 * less than of 500 rows that are halved STORE_LEVEL_MAX times.
	 */
	LEVELS = 3,
	NO_PID = 0x3f000000 /* above any pid_max */
};

static struct process_table *processes;
static struct process *living[LIVING];
static struct stack stacks[STACKS];
static struct window *windows[WINDOWS], *folded[WINDOWS], *minutes[WINDOWS / MINUTE];
static uint64_t seed;

static uint64_t random_below(uint64_t n)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (seed >> 33) % n;
}

static struct process *process_make(uint32_t i)
{
	char exe[32];
	struct process_info info = {
		.id = { .pid = NO_PID + (int32_t)i, .start_boot_ns = 1 + i },
		.exe = exe,
		.cgroup = i % COMMS % 3 ? "/user.slice" : "/system.slice/a.service",
	};

	snprintf(info.comm, sizeof(info.comm), "comm%u", i % COMMS);
	snprintf(exe, sizeof(exe), "/bin/exe%u", i % COMMS);
	return process_table_add_stored(processes, &info);
}

static uint32_t image_add(struct window *window, struct process *process, uint32_t i)
{
	struct window_image *image = window_add_image(window);

	image->process = process;
	image->uid = image->start_boot_ns = 1000 + i;
	image->tid = NO_PID + (int32_t)i;
	snprintf(image->comm, sizeof(image->comm), "comm%u", i % COMMS);
	image->sums.blocked_ns = random_below(LENGTH_NS);
	return (uint32_t)window->n_images - 1;
}

/* Returns a number below n, small ones much more often than large ones. */
static uint64_t random_skewed(uint64_t n)
{
	return random_below(1 + random_below(1 + random_below(n)));
}

/*
 * Adds a wait. Most waits are short; some programs wait longer than others, and some of the stacks
 * of a program are much more common than others.
 */
static void row_add(struct window *window, uint32_t image, uint32_t i)
{
	uint32_t buckets[WAIT_BUCKETS] = { [5] = 1 };
	struct window_row *row = window_add_row(window);

	uint64_t place = i % COMMS * PLACES + random_skewed(PLACES);

	row->image = image;
	row->state = place % 4 ? 1 : 2;
	row->count = 1;
	row->blocked_ns = 1000 + random_skewed(NS_PER_S) / (1 + place % PLACES) / (1 + i % COMMS);
	row->runnable_ns = random_below(20000);
	row->max_ns = row->blocked_ns;
	row->user = stack_ref(&stacks[place]);
	window_row_set_buckets(window, row, buckets);
}

static struct window *window_make(uint32_t number)
{
	struct window *window = window_new();
	uint32_t i, k, image;

	window->seq = number + 1;
	window->session = 1;
	window->start_ns = 1000 * NS_PER_S + number * LENGTH_NS;
	window->end_ns = window->start_ns + LENGTH_NS;
	for (i = 0; i < LIVING; i++) {
		image = image_add(window, process_ref(living[i]), i);
		for (k = 0; k < 1 + i % 4; k++)
			row_add(window, image, i);
	}
	for (i = 0; i < SHORT; i++) {
		uint32_t id = LIVING + number * SHORT + i;

		image = image_add(window, process_make(id), id);
		for (k = 0; k < 1 + id % 3; k++)
			row_add(window, image, id);
	}
	window_seal(window);
	return window;
}

static const struct window_fold_limits most = { .max_rows = ROWS,
						.max_folded = ROWS,
						.max_sums = ROWS / WINDOW_SUMS_SHARE };

static struct window *fold_to(struct window *window, const struct window_fold_limits *limits)
{
	struct window *out;

	assert_int_equal(window_fold(window, limits, &out), 0);
	return out;
}

static struct window *merge_to(struct window **from, size_t n,
			       const struct window_fold_limits *limits)
{
	struct window *merged, *out;

	assert_int_equal(store_downsample(from, n, &merged), 0);
	out = fold_to(merged, limits);
	window_unref(merged);
	return out;
}

static struct window *merge(struct window **from, size_t n, unsigned int level)
{
	const struct window_fold_limits limits = store_fold_limits(&most, level);

	return merge_to(from, n, &limits);
}

static int set_up(void **state)
{
	uint32_t i;

	seed = 7;
	if (process_table_new_stored(&processes))
		return -1;
	for (i = 0; i < LIVING; i++)
		living[i] = process_make(i);
	for (i = 0; i < STACKS; i++)
		stacks[i] = (struct stack){
			.id = 100 + i, .raw_id = 100 + i, .place_id = 100 + i, .refs = 1
		};
	for (i = 0; i < WINDOWS; i++) {
		windows[i] = window_make(i);
		folded[i] = fold_to(windows[i], &most);
	}
	return 0;
}

static int tear_down(void **state)
{
	size_t i;

	for (i = 0; i < WINDOWS; i++) {
		window_unref(windows[i]);
		window_unref(folded[i]);
	}
	for (i = 0; i < LIVING; i++)
		process_unref(living[i]);
	for (i = 0; i < STACKS; i++)
		assert_int_equal(stacks[i].refs, 1);
	process_table_free(processes);
	return 0;
}

/* Adds up to n windows from `from`, each of which has `parts` windows of 5 s. */
static void sums_make(struct window **from, size_t first, size_t n, size_t parts,
		      struct top_sums *out)
{
	size_t i;

	*out = (struct top_sums){};
	for (i = first / parts; i < (first + n) / parts; i++)
		top_add(out, from[i]);
}

/*
 * Compares the range of n windows of 5 s. No time is lost, and the first 20 are the same unless the
 * rows were halved too often.
 */
static void assert_same_top(struct window **from, size_t first, size_t n, size_t parts,
			    unsigned int level)
{
	struct top_result result = {};
	struct top_sums real, sums;

	sums_make(windows, first, n, 1, &real);
	sums_make(from, first, n, parts, &sums);
	assert_int_equal(real.total_ns, sums.total_ns);
	top_compare(&real, &sums, &result);
	if (level <= LEVELS) {
		assert_int_equal(result.same, 1);
		assert_true(result.worst < 0.001);
	}
	top_clear(&real);
	top_clear(&sums);
}

static size_t threads_count(const struct window *window)
{
	size_t n = 0, i;

	for (i = 0; i < window->n_images; i++)
		n += !window->images[i].folded;
	return n;
}

/*
 * Threads are halved twice as often as rows, but a few are left as long as there are rows. Of the
 * rows that are left, most stand for several processes.
 */
static void test_limits(void **state)
{
	const struct window_fold_limits full = { .max_rows = 500,
						 .max_folded = 500,
						 .max_sums = 100 };
	static const size_t images[] = { 0, 62, 31, 15, 7, 3, 1, 1, 1, 1, 1 };
	static const size_t sums[] = { 100, 25, 16, 16, 16, 16, 16, 16, 16, 16, 16 };
	struct window_fold_limits limits;
	unsigned int level;
	size_t rows;

	for (level = 0; level < ARRAY_SIZE(images); level++) {
		limits = store_fold_limits(&full, level);
		rows = level < 9 ? 500 >> level : 1;
		assert_int_equal(store_fold_rows(&full, level), rows);
		assert_int_equal(limits.max_rows + limits.max_folded, rows + (500 >> level));
		assert_int_equal(limits.max_rows, level == 0 ? 500 : rows < 8 ? 1 : rows / 4);
		assert_int_equal(limits.max_images, images[level]);
		assert_int_equal(limits.max_sums, sums[level]);
	}
	limits = store_fold_limits(&(struct window_fold_limits){}, 3);
	assert_int_equal(limits.max_rows, 0);
	assert_int_equal(limits.max_images, 0);
	assert_int_equal(store_fold_rows(&limits, 3), 0);
}

static void test_windows_of_5_s(void **state)
{
	size_t i;

	assert_true(windows[0]->n_rows > 5 * ROWS);
	assert_true(folded[0]->folded.rows > 0);
	for (i = 0; i + RANGE <= WINDOWS; i += 7)
		assert_same_top(folded, i, RANGE, 1, 0);
}

/* Merges the windows of each minute, folded to these limits, and compares them with the whole ones.
 */
static void minutes_check(const struct window_fold_limits *limits, unsigned int level)
{
	/* A process that keeps its sum also has its parts of rows with stacks to itself. */
	const size_t more = 8 * limits->max_sums;
	size_t i;

	for (i = 0; i < WINDOWS / MINUTE; i++) {
		minutes[i] = merge_to(&folded[i * MINUTE], MINUTE, limits);
		assert_true(minutes[i]->n_rows <= 2 * (size_t)(ROWS >> level) + 16 + more);
		if (level)
			assert_true(threads_count(minutes[i]) <= limits->max_images);
	}
	for (i = 0; i + RANGE <= WINDOWS; i += MINUTE)
		assert_same_top(minutes, i, RANGE, MINUTE, level);
	for (i = 0; i < WINDOWS / MINUTE; i++)
		window_unref(minutes[i]);
}

static void test_windows_of_a_minute(void **state)
{
	struct window_fold_limits limits;
	unsigned int level;

	for (level = 0; level <= STORE_LEVEL_MAX; level++) {
		limits = store_fold_limits(&most, level);
		minutes_check(&limits, level);
		limits.max_sums = 0;
		minutes_check(&limits, level);
	}
}

/* The windows of ten minutes are made from those of a minute, which were halved before. */
static void test_windows_of_ten_minutes(void **state)
{
	unsigned int level;
	struct window *ten;
	size_t i;

	for (level = 0; level <= STORE_LEVEL_MAX; level++) {
		for (i = 0; i < WINDOWS / MINUTE; i++)
			minutes[i] = merge(&folded[i * MINUTE], MINUTE, level);
		ten = merge(minutes, WINDOWS / MINUTE, level);
		assert_same_top(&ten, 0, WINDOWS, WINDOWS, level);
		window_unref(ten);
		for (i = 0; i < WINDOWS / MINUTE; i++)
			window_unref(minutes[i]);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limits),
		TEST(test_windows_of_5_s),
		TEST(test_windows_of_a_minute),
		TEST(test_windows_of_ten_minutes),
	};

	return cmocka_run_group_tests_name("tiers", tests, NULL, NULL);
}
