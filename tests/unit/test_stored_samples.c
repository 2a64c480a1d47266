/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Merges windows of oncpu on disk that have more samples than the rows of a tier. Each function
 * keeps its own time: samples in the same function count as one row, those in others do not. The
 * windows' stacks are also in a window of offcpu, which is merged without a look at functions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/store/reader.h"
#include "daemon/store/store.h"
#include "daemon/window/stack_id.h"
#include "tests/unit/sql.h"

#define LENGTH_NS (5 * NS_PER_S)
#define MINUTE_NS (60 * NS_PER_S)
#define REAL_NS	  (INT64_C(1700002800) * NS_PER_S)

enum {
	WINDOWS = 24,
	MINUTE = 12,
	FUNCTIONS = 20,
	PLACES = 4, /* addresses in each function */
	STACKS = FUNCTIONS * PLACES,
	ROWS = 30,	    /* as [window] max_rows: more than functions, fewer than stacks */
	NO_PID = 0x3f000000 /* above any pid_max */
};

static char directory[] = "/tmp/test_stored_samples.XXXXXX";
static char path[64];
static struct process_table *table;
static char names[FUNCTIONS][32];
static struct stack stacks[STACKS];
static struct frame frames[STACKS];
static struct frame *members[STACKS];
static int64_t now_ns; /* the time of both clocks */

static int64_t now(clockid_t clock)
{
	return now_ns + (clock == CLOCK_REALTIME ? REAL_NS : 0);
}

static void stacks_make(void)
{
	size_t i;

	for (i = 0; i < STACKS; i++) {
		snprintf(names[i / PLACES], sizeof(names[0]), "function_%zu", i / PLACES);
		frames[i] = (struct frame){ .kind = FRAME_NATIVE, .name = names[i / PLACES] };
		frames[i].file_offset = i;
		frames[i].name_offset = i % PLACES;
		members[i] = &frames[i];
		stacks[i] = (struct stack){ .refs = 1,
					    .raw_id = 1000 + i,
					    .id = 100 + i,
					    .place_id = 500 + i,
					    .is_resolved = true,
					    .n_frames = 1,
					    .frames = &members[i] };
		stacks[i].functions_id = stack_functions_id_of(&members[i], 1);
	}
}

static struct window *window_make(enum probe_kind kind, uint64_t session, size_t n)
{
	struct process_info info = { .comm = "a", .exe = "/usr/bin/a", .cgroup = "/a" };
	struct window *window = window_new();
	struct window_image *image;

	window->kind = kind;
	window->seq = n + 1;
	window->session = session;
	window->start_ns = (int64_t)n * LENGTH_NS;
	window->end_ns = window->start_ns + LENGTH_NS;
	window->real_offset_ns = REAL_NS;
	info.id.pid = NO_PID;
	info.id.start_boot_ns = 5;
	image = window_add_image(window);
	image->process = process_table_add_stored(table, &info);
	image->uid = 7;
	image->start_boot_ns = 5;
	image->tid = NO_PID;
	snprintf(image->comm, sizeof(image->comm), "a");
	return window;
}

/* Sample i is `n` long for each window n, so that the functions' times differ. */
static uint64_t sample_ns(size_t i, size_t n)
{
	return (i + 1) * NS_PER_MS + n;
}

static struct window *samples_make(size_t n)
{
	struct window *window = window_make(PROBE_ONCPU, 2, n);
	size_t i;

	for (i = 0; i < STACKS; i++)
		*window_add_sample(window) = (struct window_sample){
			.user = stack_ref(&stacks[i]),
			.count = i + 1,
			.on_ns = sample_ns(i, n),
		};
	window_seal(window);
	return window;
}

static struct window *waits_make(size_t n)
{
	struct window *window = window_make(PROBE_OFFCPU, 1, n);
	uint32_t buckets[WAIT_BUCKETS] = { [9] = 1 };
	size_t i;

	for (i = 0; i < STACKS; i++) {
		struct window_row *row = window_add_row(window);

		row->user = stack_ref(&stacks[i]);
		row->count = row->state = 1;
		row->blocked_ns = row->max_ns = NS_PER_MS;
		row->max_end_ns = window->end_ns - 1;
		assert_int_equal(window_row_set_buckets(window, row, buckets), 0);
	}
	window_seal(window);
	return window;
}

static void window_store(struct store *store, struct window *window)
{
	now_ns = window->end_ns;
	store_add(store, window);
	window_unref(window);
}

/* Waits until the windows are written, and the first minute of both probes is merged. */
static void merges_wait(struct store *store)
{
	struct store_stats stats;

	do {
		usleep(1000);
		store_stats(store, &stats);
		assert_string_equal(stats.problems[STORE_PROBLEM_FILE], "");
	} while (!stats.is_writing || stats.queued ||
		 sql_number(path, "SELECT count(*) FROM window_tiers WHERE tier = 1") < 2);
}

static void windows_store(void)
{
	struct store_options options = {
		.path = path,
		.max_size = 256 << 20,
		.max_age_ns = INT64_MAX / 4,
		.tiers = { { LENGTH_NS, MINUTE_NS, 50 }, { MINUTE_NS, INT64_MAX / 4, 50 } },
		.n_tiers = 2,
		.fold = { .max_rows = ROWS, .max_folded = ROWS },
		.boot_id = "test",
		.now = now,
	};
	struct store *store;
	size_t n;

	assert_int_equal(store_start(&options, &store), 0);
	for (n = 0; n < WINDOWS; n++) {
		window_store(store, waits_make(n));
		window_store(store, samples_make(n));
	}
	now_ns += 5 * MINUTE_NS;
	merges_wait(store);
	assert_null(store_stop(store));
}

/* Loads the first window of a minute; its stacks have all their frames. */
static struct window *minute_load(struct store_reader *reader)
{
	const struct store_select select = { .probe = "oncpu" };
	struct store_entry *entries;
	struct window *window;
	size_t n;

	assert_int_equal(
		store_reader_list(reader, &select, 0, INT64_MAX / 2, WINDOWS, &entries, &n), 0);
	assert_true(n > 0);
	assert_int_equal(entries[0].merged_from, MINUTE);
	assert_int_equal(store_reader_load(reader, &entries[0], &window), 0);
	free(entries);
	return window;
}

static uint64_t function_ns(size_t function)
{
	uint64_t ns = 0;
	size_t i, n;

	for (n = 0; n < MINUTE; n++)
		for (i = 0; i < PLACES; i++)
			ns += sample_ns(function * PLACES + i, n);
	return ns;
}

static void test_functions_keep_their_time(void **state)
{
	struct store_reader *reader;
	struct window *window;
	size_t found[FUNCTIONS] = {}, i, k;

	windows_store();
	assert_int_equal(store_reader_open(path, &reader), 0);
	window = minute_load(reader);
	assert_int_equal(window->n_samples, FUNCTIONS);
	for (i = 0; i < window->n_samples; i++) {
		const struct window_sample *sample = &window->samples[i];

		assert_int_equal(sscanf(sample->user->frames[0]->name, "function_%zu", &k), 1);
		assert_true(k < FUNCTIONS);
		assert_int_equal(found[k]++, 0);
		assert_int_equal(sample->on_ns, function_ns(k));
	}
	window_unref(window);
	store_reader_close(reader);
}

static int set_up(void **state)
{
	stacks_make();
	return !mkdtemp(directory) || process_table_new_stored(&table) ||
	       snprintf(path, sizeof(path), "%s/stackd.db", directory) < 0;
}

static int tear_down(void **state)
{
	char command[96];

	process_table_free(table);
	snprintf(command, sizeof(command), "rm -r %s", directory);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions_keep_their_time),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
