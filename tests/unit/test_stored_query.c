/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Aggregates the same windows on disk in two ways, and compares all groups: loaded whole, with
 * their processes and all frames, and loaded for a query, with owners and the heads of stacks.
 */
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
#include "daemon/store/store.h"
#include "daemon/window/fold.h"

#define LENGTH_NS (5 * NS_PER_S)
#define REAL_NS	  (INT64_C(1700000000) * NS_PER_S)

/* FOLDED: the window whose processes are folded; ALIKE: a process with a name like stackd's */
enum {
	WINDOWS = 20,
	FOLDED = 8,
	ALIKE = 7,
	PROCESSES = 40,
	STACKS = 30,
	FRAMES = 12,
	NO_PID = 0x3f000000
};

static char directory[] = "/tmp/test_stored_query.XXXXXX";
static char path[64];
static struct process_table *table;
static struct stack stacks[STACKS];
static struct frame frames[STACKS];
static struct frame *members[STACKS][FRAMES];

/* The number of threads that use the reader of a query, which must be one at a time. */
static atomic_int readers;
static atomic_bool had_two_readers;

static void reader_enter(void)
{
	if (atomic_fetch_add(&readers, 1) > 0)
		had_two_readers = true;
}

int __real_store_reader_load(struct store_reader *reader, const struct store_entry *entry,
			     struct window **out);
int __wrap_store_reader_load(struct store_reader *reader, const struct store_entry *entry,
			     struct window **out);
int __wrap_store_reader_load(struct store_reader *reader, const struct store_entry *entry,
			     struct window **out)
{
	int r;

	reader_enter();
	r = __real_store_reader_load(reader, entry, out);
	readers--;
	return r;
}

struct process *__real_store_reader_process(struct store_reader *reader, int64_t number);
struct process *__wrap_store_reader_process(struct store_reader *reader, int64_t number);
struct process *__wrap_store_reader_process(struct store_reader *reader, int64_t number)
{
	struct process *process;

	reader_enter();
	process = __real_store_reader_process(reader, number);
	readers--;
	return process;
}

static void stacks_make(void)
{
	static char names[STACKS][32];
	size_t i, k;

	for (i = 0; i < STACKS; i++) {
		snprintf(names[i], sizeof(names[i]), i % 5 ? "function_%zu" : "schedule_%zu", i);
		frames[i] = (struct frame){ .kind = i % 2 ? FRAME_NATIVE : FRAME_KERNEL,
					    .file_id = i % 2,
					    .file_offset = i,
					    .name_offset = i % 3,
					    .name = names[i],
					    .module = i % 2 ? (char *)"/usr/bin/a" : NULL };
	}
	for (i = 0; i < STACKS; i++) {
		for (k = 0; k < FRAMES; k++)
			members[i][k] = &frames[(i + k) % STACKS];
		stacks[i] = (struct stack){ .refs = 1,
					    .raw_id = 1000 + i,
					    .id = 100 + i,
					    .place_id = 500 + i / 2,
					    .functions_id = 900 + i,
					    .is_idle = i % 7 == 0,
					    .is_resolved = true,
					    .n_frames = FRAMES - i % 3,
					    .frames = members[i] };
	}
}

/* Each window has processes of its own and some that are in all windows. */
static struct process *process_make(size_t window, size_t i)
{
	struct process_info info = { .comm = "program", .exe = "/usr/bin/a" };

	info.id.pid = NO_PID + (int32_t)(i < 10 ? i : window * 1000 + i);
	info.id.start_boot_ns = 5 + i;
	info.is_kernel = i == 3;
	info.cgroup = i % 3 ? (i % 2 ? "/a.slice/x.service" : "/b") : NULL;
	info.comm[6] = (char)('a' + i % 4);
	if (i == ALIKE)
		snprintf(info.comm, sizeof(info.comm), "stackd-parse");
	return process_table_add_stored(table, &info);
}

static void waits_add(struct window *window, size_t n, uint32_t i)
{
	struct window_row *row = window_add_row(window);
	uint32_t buckets[WAIT_BUCKETS] = { [9] = i + 1 };
	struct window_span *span;
	struct window_open *open;

	row->image = i;
	row->kernel = stack_ref(&stacks[2 * (i % 15)]);
	row->user = stack_ref(&stacks[1 + 2 * ((i + n) % 14)]);
	row->count = i + 1;
	row->blocked_ns = (i + 1) * NS_PER_MS;
	row->runnable_ns = n * NS_PER_US;
	row->max_ns = row->blocked_ns;
	row->max_end_ns = window->end_ns - 1;
	row->state = i % 4 ? 1 : 2;
	assert_int_equal(window_row_set_buckets(window, row, buckets), 0);
	if (i >= 10)
		return;
	/* The waits of processes in all windows begin in one window and end in the next but one. */
	open = window_add_open(window);
	open->image = i;
	open->start_ns = window->end_ns - NS_PER_S;
	open->wake_ns = INT64_MAX;
	open->state = 1;
	open->kernel = stack_ref(&stacks[4]);
	if (n == 0)
		return;
	span = window_add_span(window);
	span->image = i;
	span->start_ns = window->start_ns - NS_PER_S;
	span->wake_ns = window->start_ns + NS_PER_S;
	span->end_ns = span->wake_ns + NS_PER_MS;
	span->state = 1;
	span->kernel = stack_ref(&stacks[4 + i % 2]);
	span->user = stack_ref(&stacks[5]);
}

static void sample_add(struct window *window, size_t n, uint32_t i)
{
	struct window_sample *sample = window_add_sample(window);

	sample->image = i;
	sample->kernel = i % 2 ? stack_ref(&stacks[2 * ((i + n) % 15)]) : NULL;
	sample->user = stack_ref(&stacks[1 + 2 * (i % 14)]);
	sample->count = i + 1;
	sample->on_ns = (i + 1) * NS_PER_MS;
}

/* Returns the window with all but two of its rows folded; takes over the reference to `window`. */
static struct window *window_folded(struct window *window)
{
	const struct window_fold_limits limits = { .max_rows = 2,
						   .max_folded = 20,
						   .max_images = 2 };
	struct window *folded;

	assert_int_equal(window_fold(window, &limits, &folded), 0);
	assert_true(folded->n_members > PROCESSES / 2);
	window_unref(window);
	return folded;
}

static struct window *window_make(size_t n)
{
	struct window *window = window_new();
	struct window_image *image;
	uint32_t i;

	window->seq = n + 1;
	window->session = 1;
	window->start_ns = (int64_t)n * LENGTH_NS;
	window->end_ns = window->start_ns + LENGTH_NS;
	window->real_offset_ns = REAL_NS;
	for (i = 0; i < PROCESSES; i++) {
		image = window_add_image(window);
		image->process = process_make(n, i);
		image->uid = i < 10 ? i : 1000 * n + i;
		image->start_boot_ns = 5 + i;
		image->tid = NO_PID + (int32_t)(i < 10 ? i : n * 1000 + i);
		memcpy(image->comm, "thread", 7);
		image->sums = (struct thread_sums){
			.on_ns = i, .blocked_ns = 3 * i, .switches = 2, .short_count = i % 2
		};
	}
	for (i = 0; i < PROCESSES; i++) {
		waits_add(window, n, i);
		sample_add(window, n, i);
	}
	window_seal(window);
	return n == FOLDED ? window_folded(window) : window;
}

static int set_up(void **state)
{
	struct store_options options = { .path = path,
					 .max_size = 256 << 20,
					 .max_age_ns = INT64_MAX / 4,
					 .tiers = { { LENGTH_NS, INT64_MAX / 4, 100 } },
					 .n_tiers = 1,
					 .boot_id = "test" };
	struct store_stats stats;
	struct store *store;
	size_t n;

	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/db", directory);
	stacks_make();
	assert_int_equal(process_table_new_stored(&table), 0);
	assert_int_equal(store_start(&options, &store), 0);
	for (n = 0; n < WINDOWS; n++) {
		struct window *window = window_make(n);

		store_add(store, window);
		window_unref(window);
	}
	do {
		usleep(1000);
		store_stats(store, &stats);
	} while (stats.written + stats.dropped_write + stats.dropped_queue < WINDOWS);
	assert_int_equal(stats.written, WINDOWS);
	store_stop(store);
	return 0;
}

static int tear_down(void **state)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -r %s", directory);
	return system(command);
}

struct answer_of {
	struct store_reader *reader;
	struct timeline *timeline;
	struct aggregate *aggregate;
	struct aggregate_group **groups;
	size_t n;
};

static int by_key(const void *x, const void *y)
{
	const struct aggregate_group *const *a = x, *const *b = y;

	return memcmp(&(*a)->key, &(*b)->key, sizeof((*a)->key));
}

static void answer_make(struct answer_of *answer, const struct filter *filter,
			const struct aggregate_options *options, const struct store_query *query)
{
	const struct timeline_session session = { .probe = "offcpu" };
	struct timeline_source source = {};

	assert_int_equal(store_reader_open(path, &answer->reader), 0);
	if (query)
		store_reader_set_query(answer->reader, query);
	source.reader = answer->reader;
	/* The last windows are after the range: waits of the range end there. */
	assert_int_equal(timeline_open(&source, &session, REAL_NS, REAL_NS + 17 * LENGTH_NS,
				       &answer->timeline),
			 0);
	assert_int_equal(timeline_read_later(answer->timeline, REAL_NS + 17 * LENGTH_NS), 0);
	assert_int_equal(aggregate_new(timeline_range(answer->timeline),
				       timeline_later(answer->timeline), filter, options, NULL,
				       &answer->aggregate),
			 0);
	assert_int_equal(store_reader_damaged(answer->reader), 0);
	answer->groups = aggregate_groups(answer->aggregate, &answer->n);
	qsort(answer->groups, answer->n, sizeof(*answer->groups), by_key);
}

static void answer_drop(struct answer_of *answer)
{
	aggregate_free(answer->aggregate);
	timeline_close(answer->timeline);
	store_reader_close(answer->reader);
}

static void assert_same_stack(struct store_reader *reader, struct stack *whole, struct stack *lean)
{
	size_t i;

	assert_int_equal(!whole, !lean);
	if (!whole)
		return;
	assert_int_equal(store_reader_fill(reader, lean), 0);
	assert_int_equal(whole->place_id, lean->place_id);
	assert_int_equal(whole->n_frames, lean->n_frames);
	for (i = 0; i < whole->n_frames; i++)
		assert_string_equal(whole->frames[i]->name, lean->frames[i]->name);
}

static void assert_same_group(struct answer_of *lean_answer, const struct aggregate_group *whole,
			      const struct aggregate_group *lean)
{
	struct process_info a, b;
	struct process *process = store_reader_process(lean_answer->reader, lean->process.number);

	assert_memory_equal(&whole->key, &lean->key, sizeof(whole->key));
	assert_int_equal(whole->count, lean->count);
	assert_int_equal(whole->on_ns, lean->on_ns);
	assert_int_equal(whole->blocked_ns, lean->blocked_ns);
	assert_int_equal(whole->runnable_ns, lean->runnable_ns);
	assert_int_equal(whole->open, lean->open);
	assert_int_equal(whole->open_ns, lean->open_ns);
	assert_int_equal(whole->max_ns, lean->max_ns);
	assert_int_equal(whole->max_tid, lean->max_tid);
	assert_int_equal(whole->is_idle, lean->is_idle);
	assert_int_equal(whole->state, lean->state);
	assert_memory_equal(whole->buckets, lean->buckets, sizeof(whole->buckets));
	assert_same_stack(lean_answer->reader, whole->kernel, lean->kernel);
	assert_same_stack(lean_answer->reader, whole->user, lean->user);
	if (whole->name)
		assert_string_equal(whole->name, lean->name);
	process_info(whole->process.process, &a);
	process_info(process, &b);
	assert_int_equal(a.id.pid, b.id.pid);
	assert_string_equal(a.exe ? a.exe : "", b.exe ? b.exe : "");
}

static void assert_same_answers(const struct filter *filter,
				const struct aggregate_options *options)
{
	struct store_query query = { .max_frames = options->group ? GROUP_FRAMES : 0,
				     .with_functions = !options->group && options->by_functions,
				     .skips_members = !filter->wire || !filter->wire->pids.n,
				     .wants = filter->wire ? aggregate_wants : NULL,
				     .userdata = filter };
	struct answer_of whole = {}, lean = {};
	size_t i;

	answer_make(&whole, filter, options, NULL);
	answer_make(&lean, filter, options, &query);
	assert_true(whole.n > 0);
	assert_int_equal(whole.n, lean.n);
	assert_memory_equal(aggregate_totals(whole.aggregate), aggregate_totals(lean.aggregate),
			    sizeof(struct aggregate_totals));
	for (i = 0; i < whole.n; i++)
		assert_same_group(&lean, whole.groups[i], lean.groups[i]);
	answer_drop(&whole);
	answer_drop(&lean);
}

static void test_all(void **state)
{
	const struct filter filter = { .max_ns = INT64_MAX };
	enum aggregate_by by;
	enum group_by group;

	for (by = AGGREGATE_BY_STACK; by <= AGGREGATE_BY_PROCESS; by++)
		assert_same_answers(&filter, &(struct aggregate_options){ .by = by });
	assert_same_answers(&filter, &(struct aggregate_options){ .by_functions = true });
	for (group = GROUP_BY_COMM; group <= GROUP_BY_FUNCTION; group++)
		assert_same_answers(&filter, &(struct aggregate_options){ .group = group });
	assert_same_answers(&filter, &(struct aggregate_options){ .open_only = true });
}

static struct process *find_process(void *userdata, const struct aggregate_process *process)
{
	return answer_process(userdata, process);
}

/*
 * Whether a process that is named like stackd is stackd is read from disk while the windows of the
 * range are, by another thread.
 */
static void test_processes_while_loading(void **state)
{
	const struct timeline_session session = { .probe = "offcpu" };
	const struct store_query query = { .max_frames = 0 };
	const struct filter filter = { .max_ns = INT64_MAX };
	struct aggregate_options options = { .by = AGGREGATE_BY_PROCESS,
					     .folds_own = true,
					     .find_process = find_process };
	struct timeline_source source = {};
	struct answer *answer;

	had_two_readers = false;
	for (int i = 0; i < 10; i++) {
		answer = answer_new();
		options.userdata = answer;
		assert_int_equal(store_reader_open(path, &answer->reader), 0);
		store_reader_set_query(answer->reader, &query);
		source.reader = answer->reader;
		assert_int_equal(timeline_open(&source, &session, REAL_NS,
					       REAL_NS + WINDOWS * LENGTH_NS, &answer->timeline),
				 0);
		assert_int_equal(aggregate_new(timeline_range(answer->timeline),
					       timeline_later(answer->timeline), &filter, &options,
					       NULL, &answer->aggregate),
				 0);
		answer->aggregate = aggregate_free(answer->aggregate);
		timeline_close(answer->timeline);
		store_reader_close(answer->reader);
		arena_free(answer->arena);
		free(answer);
	}
	assert_false(had_two_readers);
}

/* Filters are tested on the processes of a window before its rows are read. */
static void test_filters(void **state)
{
	const int64_t everywhere = NO_PID + 2, once = NO_PID + 7015;
	const int64_t folded = NO_PID + FOLDED * 1000 + 15;
	const struct wire_filter wires[] = {
		{ .pids = { &everywhere, 1 } },
		{ .pids = { &once, 1 } },
		{ .pids = { &folded, 1 } },
		{ .tids = { &once, 1 } },
		{ .comm = "prograb" },
		{ .cgroup = "/a.slice" },
		{ .unit = "x" },
		{ .kernel_threads = 1, .comm = "*" },
	};
	struct filter filter = { .max_ns = INT64_MAX };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(wires); i++) {
		filter.wire = &wires[i];
		assert_same_answers(&filter, &(struct aggregate_options){});
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_filters),
		cmocka_unit_test(test_processes_while_loading),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
