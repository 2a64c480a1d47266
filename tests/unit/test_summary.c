/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Aggregates the same windows on disk twice: read themselves, and read from their summaries. Sums,
 * coverage and losses are the same; rows differ only by what the summaries have within "(others)".
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
#include "daemon/query/aggregate.h"
#include "daemon/store/internal.h"
#include "daemon/store/reader.h"
#include "daemon/store/store.h"
#include "tests/unit/sql.h"

#define LENGTH_NS (5 * NS_PER_S)
#define MINUTE_NS (60 * NS_PER_S)
/* A multiple of the length of all summaries. */
#define REAL_NS (INT64_C(1700002800) * NS_PER_S / (24 * MINUTE_NS) * (24 * MINUTE_NS))

enum {
	WINDOWS = 100,
	SUMMARY = 24, /* windows in a summary of the last tier */
	LIVING = 12,  /* processes that all windows have */
	SHORT = 30,   /* processes that only one window has */
	STACKS = 40,
	ROWS = 20,	    /* as [window] max_rows and max_folded */
	BREAK = 60,	    /* before this window, the clock is set forward */
	NO_PID = 0x3f000000 /* above any pid_max */
};

static char directory[] = "/tmp/test_summary.XXXXXX";
static char path[64];
static struct process_table *table;
static struct stack stacks[STACKS];
static struct frame frames[STACKS];
static struct frame *members[STACKS];
static int64_t now_ns;	 /* the time of both clocks */
static uint32_t n_short; /* number of processes that only one window has, in each window */

static int64_t now(clockid_t clock)
{
	return now_ns + (clock == CLOCK_REALTIME ? REAL_NS : 0);
}

static void stacks_make(void)
{
	static char names[STACKS][32];
	size_t i;

	for (i = 0; i < STACKS; i++) {
		snprintf(names[i], sizeof(names[i]), "function_%zu", i);
		frames[i] = (struct frame){ .kind = FRAME_NATIVE, .name = names[i] };
		frames[i].file_offset = i;
		members[i] = &frames[i];
		stacks[i] = (struct stack){ .refs = 1,
					    .raw_id = 1000 + i,
					    .id = 100 + i,
					    .place_id = 500 + i,
					    .functions_id = 900 + i,
					    .is_idle = i % 9 == 0,
					    .is_resolved = true,
					    .n_frames = 1,
					    .frames = &members[i] };
	}
}

static struct process *process_make(size_t window, size_t i)
{
	struct process_info info = { .exe = "/usr/bin/a", .cgroup = i % 2 ? "/a" : "/b" };

	info.id.pid = NO_PID + (int32_t)(i < LIVING ? i : window * 1000 + i);
	info.id.start_boot_ns = 5 + i;
	snprintf(info.comm, sizeof(info.comm), "comm%zu", i % 6);
	return process_table_add_stored(table, &info);
}

static void row_add(struct window *window, size_t n, uint32_t i, uint64_t ns)
{
	struct window_row *row = window_add_row(window);
	uint32_t buckets[WAIT_BUCKETS] = { [9] = i + 1 };

	row->image = i;
	row->user = stack_ref(&stacks[(i * 7 + n % 3) % STACKS]);
	row->count = i + 1;
	row->blocked_ns = ns;
	row->runnable_ns = n * NS_PER_US;
	row->max_ns = ns;
	row->max_end_ns = window->end_ns - 1;
	row->state = i % 4 ? 1 : 2;
	assert_int_equal(window_row_set_buckets(window, row, buckets), 0);
}

/* Adds a wait that ends in the next window. */
static void open_add(struct window *window, size_t n, uint32_t i)
{
	struct window_open *open = window_add_open(window);
	struct window_span *span;

	open->image = i;
	open->start_ns = window->end_ns - NS_PER_S;
	open->wake_ns = INT64_MAX;
	open->state = 1;
	open->user = stack_ref(&stacks[5]);
	if (n == 0)
		return;
	span = window_add_span(window);
	span->image = i;
	span->start_ns = window->start_ns - NS_PER_S;
	span->wake_ns = window->start_ns + NS_PER_S;
	span->end_ns = span->wake_ns + NS_PER_MS;
	span->state = 1;
	span->user = stack_ref(&stacks[5]);
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
	window->real_offset_ns = REAL_NS + (n < BREAK ? 0 : 2 * NS_PER_S);
	window->lost[WINDOW_LOST_MEMORY] = n;
	window->cost = (struct window_cost){ .ns = LENGTH_NS,
					     .cpu_ns = n * NS_PER_MS,
					     .bpf_ns = NS_PER_MS };
	window->sample_below_ns = (int64_t)n;
	for (i = 0; i < LIVING + n_short; i++) {
		uint64_t ns = (i + 1) * (n + 3) * 7919 * 1000 % NS_PER_MS;

		image = window_add_image(window);
		image->process = process_make(n, i);
		image->uid = i < LIVING ? i : 1000 * n + i;
		image->start_boot_ns = 5 + i;
		image->tid = NO_PID + (int32_t)(i < LIVING ? i : n * 1000 + i);
		snprintf(image->comm, sizeof(image->comm), "comm%u", i % 6);
		if (i < LIVING)
			ns += (uint64_t)(1 + i) * NS_PER_S / 10;
		image->sums = (struct thread_sums){
			.on_ns = i,
			.blocked_ns = ns,
			.runnable_ns = n * NS_PER_US,
			.switches = i + 1,
		};
		row_add(window, n, i, ns);
		if (i < LIVING)
			open_add(window, n, i);
	}
	window_seal(window);
	return window;
}

/* Each summary has as many windows as it says, of one tier, and they are all there. */
static void assert_whole(void)
{
	assert_int_equal(
		sql_number(path, "SELECT count(*) FROM summaries WHERE windows != "
				 "(SELECT count(*) FROM window_tiers WHERE id >= summaries.id AND "
				 "id <= last_id AND session = summaries.session AND tier = "
				 "(SELECT tier FROM window_tiers WHERE id = summaries.id)) "
				 "OR parts != (SELECT sum(parts) FROM windows WHERE "
				 "id >= summaries.id AND id <= last_id)"),
		0);
}

static void idle_wait(struct store *store)
{
	struct store_stats stats;
	int quiet = 0;

	/* The writer looks for work once a second. */
	while (quiet < 1500) {
		usleep(1000);
		store_stats(store, &stats);
		quiet = stats.is_writing && !stats.is_working && !stats.queued ? quiet + 1 : 0;
	}
	assert_string_equal(stats.problems[STORE_PROBLEM_FILE], "");
}

static struct store *store_begin(size_t rows, size_t n_tiers, uint64_t max_size)
{
	struct store_options options = {
		.path = path,
		.max_size = max_size,
		.max_age_ns = INT64_MAX / 4,
		.tiers = { { LENGTH_NS, n_tiers > 1 ? MINUTE_NS : INT64_MAX / 4, 50 },
			   { MINUTE_NS, INT64_MAX / 4, 50 } },
		.n_tiers = n_tiers,
		.fold = { .max_rows = rows, .max_folded = rows },
		.boot_id = "test",
		.now = now,
	};
	struct store *store;

	assert_int_equal(store_start(&options, &store), 0);
	return store;
}

static void store_fill(size_t rows, size_t n_tiers)
{
	struct store *store = store_begin(rows, n_tiers, 256 << 20);
	size_t n;

	for (n = 0; n < WINDOWS; n++) {
		struct window *window = window_make(n), *folded;
		const struct window_fold_limits limits = { .max_rows = 2 * rows,
							   .max_folded = 2 * rows };

		assert_int_equal(window_fold(window, &limits, &folded), 0);
		now_ns = window->end_ns;
		store_add(store, folded);
		window_unref(folded);
		window_unref(window);
	}
	idle_wait(store);
	assert_null(store_stop(store));
	assert_whole();
}

struct answer_of {
	struct store_reader *reader;
	struct timeline *timeline;
	struct timeline_summaries summaries;
	struct timeline_coverage coverage;
	uint64_t lost[WINDOW_LOST_N];
	struct arena *arena;
	struct aggregate *aggregate;
	struct aggregate_group **groups;
	size_t n;
};

static void answer_make(struct answer_of *answer, size_t first, size_t end, bool with_summaries)
{
	static const struct filter filter = { .max_ns = INT64_MAX };
	const struct aggregate_options options = {};
	const struct store_query query = { .skips_members = true };
	const struct timeline_session session = { .probe = "offcpu", .is_recording = true };
	struct timeline_source source = { .window_ns = LENGTH_NS, .boot_id = "test" };
	int64_t since = REAL_NS + (int64_t)first * LENGTH_NS;
	int64_t until = REAL_NS + (int64_t)end * LENGTH_NS;

	*answer = (struct answer_of){ .arena = arena_new() };
	assert_int_equal(store_reader_open(path, &answer->reader), 0);
	store_reader_set_query(answer->reader, &query);
	source.reader = answer->reader;
	assert_int_equal(timeline_open(&source, &session, since, until, &answer->timeline), 0);
	assert_int_equal(timeline_read_later(answer->timeline, until), 0);
	if (with_summaries)
		assert_int_equal(timeline_summarize(answer->timeline, &answer->summaries), 0);
	assert_int_equal(aggregate_new(timeline_range(answer->timeline),
				       timeline_later(answer->timeline), &filter, &options, NULL,
				       &answer->aggregate),
			 0);
	assert_int_equal(
		timeline_coverage(answer->timeline, answer->arena, since, until, &answer->coverage),
		0);
	assert_int_equal(timeline_losses(answer->timeline, 0, timeline_range(answer->timeline)->n,
					 answer->lost),
			 0);
	answer->groups = aggregate_groups(answer->aggregate, &answer->n);
}

static void answer_drop(struct answer_of *answer)
{
	aggregate_free(answer->aggregate);
	timeline_close(answer->timeline);
	store_reader_close(answer->reader);
	arena_free(answer->arena);
}

/* Adds up the groups with this comm, stack and state. */
static void sums_of(const struct answer_of *answer, const struct aggregate_key *key, bool is_whole,
		    struct aggregate_group *out)
{
	size_t i, k;

	*out = (struct aggregate_group){};
	for (i = 0; i < answer->n; i++) {
		const struct aggregate_group *group = answer->groups[i];

		if (!is_whole && (group->key.user != key->user || group->key.state != key->state ||
				  memcmp(group->key.comm, key->comm, COMM_LEN) != 0))
			continue;
		out->count += group->count;
		out->blocked_ns += group->blocked_ns;
		out->runnable_ns += group->runnable_ns;
		out->open += group->open;
		out->open_ns += group->open_ns;
		out->max_ns = group->max_ns > out->max_ns ? group->max_ns : out->max_ns;
		for (k = 0; k < WAIT_BUCKETS; k++)
			out->buckets[k] += group->buckets[k];
	}
}

static void assert_same_sums(const struct answer_of *a, const struct answer_of *b,
			     const struct aggregate_key *key)
{
	struct aggregate_group x, y;

	sums_of(a, key, !key, &x);
	sums_of(b, key, !key, &y);
	assert_int_equal(x.count, y.count);
	assert_int_equal(x.blocked_ns, y.blocked_ns);
	assert_int_equal(x.runnable_ns, y.runnable_ns);
	assert_int_equal(x.open, y.open);
	assert_int_equal(x.open_ns, y.open_ns);
	assert_int_equal(x.max_ns, y.max_ns);
	assert_memory_equal(x.buckets, y.buckets, sizeof(x.buckets));
}

/* Asserts that all is the same in both answers but for how the time is shared out among rows. */
static void assert_same_frame(const struct answer_of *a, const struct answer_of *b)
{
	const struct aggregate_totals *x = aggregate_totals(a->aggregate);
	const struct aggregate_totals *y = aggregate_totals(b->aggregate);
	size_t i;

	assert_int_equal(x->on_cpu_ns, y->on_cpu_ns);
	assert_int_equal(x->blocked_ns, y->blocked_ns);
	assert_int_equal(x->runnable_ns, y->runnable_ns);
	assert_int_equal(x->waits, y->waits);
	assert_int_equal(x->open_waits, y->open_waits);
	assert_same_sums(a, b, NULL);
	assert_int_equal(aggregate_cost(a->aggregate)->cpu_ns,
			 aggregate_cost(b->aggregate)->cpu_ns);
	assert_int_equal(aggregate_sample_below(a->aggregate),
			 aggregate_sample_below(b->aggregate));
	assert_memory_equal(a->lost, b->lost, sizeof(a->lost));
	assert_int_equal(a->coverage.windows, b->coverage.windows);
	assert_int_equal(a->coverage.compacted, b->coverage.compacted);
	assert_int_equal(a->coverage.covered_ns, b->coverage.covered_ns);
	assert_int_equal(a->coverage.used_start_ns, b->coverage.used_start_ns);
	assert_int_equal(a->coverage.used_end_ns, b->coverage.used_end_ns);
	assert_int_equal(a->coverage.used_ns, b->coverage.used_ns);
	assert_int_equal(a->coverage.n_gaps, b->coverage.n_gaps);
	for (i = 0; i < a->coverage.n_gaps; i++) {
		assert_int_equal(a->coverage.gaps[i].start_ns, b->coverage.gaps[i].start_ns);
		assert_int_equal(a->coverage.gaps[i].end_ns, b->coverage.gaps[i].end_ns);
		assert_string_equal(a->coverage.gaps[i].reason, b->coverage.gaps[i].reason);
	}
}

static int set_up(void **state)
{
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/db", directory);
	stacks_make();
	n_short = SHORT;
	return process_table_new_stored(&table);
}

static int tear_down(void **state)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -r %s", directory);
	return system(command);
}

static int remove_db(void **state)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -f %s*", path);
	return system(command);
}

/* Summaries that are not folded have each row of their windows. */
static void test_all_rows(void **state)
{
	struct answer_of windows, summaries;
	size_t i;

	n_short = SHORT;
	store_fill(0, 1);
	/* With all rows of short-lived processes, summaries are too large to be kept. */
	assert_int_equal(sql_number(path, "SELECT count(*) FROM summaries"), 0);
	remove_db(NULL);
	n_short = 0;
	store_fill(0, 1);
	n_short = SHORT;
	answer_make(&windows, 0, WINDOWS, false);
	answer_make(&summaries, 0, WINDOWS, true);
	assert_int_equal(summaries.summaries.n, 5);
	assert_int_equal(summaries.summaries.lacks_ns, 0);
	assert_same_frame(&windows, &summaries);
	assert_int_equal(windows.n, summaries.n);
	for (i = 0; i < windows.n; i++)
		assert_same_sums(&windows, &summaries, &windows.groups[i]->key);
	answer_drop(&windows);
	answer_drop(&summaries);
}

static int by_time(const void *x, const void *y)
{
	const struct aggregate_group *const *a = x, *const *b = y;

	return (*a)->blocked_ns > (*b)->blocked_ns ? -1 : (*a)->blocked_ns < (*b)->blocked_ns;
}

/* Compares a range whose summaries are folded further than its windows. */
static void assert_close(size_t first, size_t end, size_t n_summaries)
{
	struct answer_of windows, summaries;
	struct aggregate_group a, b;
	size_t i;

	answer_make(&windows, first, end, false);
	answer_make(&summaries, first, end, true);
	assert_int_equal(windows.summaries.n, 0);
	assert_int_equal(summaries.summaries.n, n_summaries);
	assert_same_frame(&windows, &summaries);
	assert_true(timeline_range(summaries.timeline)->n + summaries.summaries.windows ==
		    timeline_range(windows.timeline)->n + n_summaries);
	qsort(windows.groups, windows.n, sizeof(*windows.groups), by_time);
	for (i = 0; i < windows.n; i++) {
		const struct aggregate_key *key = &windows.groups[i]->key;

		if (!key->user || windows.groups[i]->is_idle)
			continue;
		sums_of(&windows, key, false, &a);
		sums_of(&summaries, key, false, &b);
		assert_true(b.blocked_ns + b.runnable_ns <= a.blocked_ns + a.runnable_ns);
		assert_true(a.blocked_ns + a.runnable_ns - b.blocked_ns - b.runnable_ns <=
			    summaries.summaries.lacks_ns);
		/* Those with the most time lack at most small rows of other processes. */
		if (i < 5) {
			assert_true(a.blocked_ns - b.blocked_ns <= a.blocked_ns / 1000);
			assert_int_equal(a.max_ns, b.max_ns);
		}
	}
	answer_drop(&windows);
	answer_drop(&summaries);
}

static void test_folded(void **state)
{
	store_fill(ROWS, 1);
	/*
	 * 0 to 23, 24 to 47; 48 to 59, after which the clock is set; 60 to 71; 72 to 95, of which
	 * the clock shows 2 s more. The last ones are not complete.
	 */
	assert_int_equal(sql_number(path, "SELECT count(*) FROM summaries"), 5);
	assert_int_equal(sql_number(path, "SELECT sum(windows) FROM summaries"), 96);
	assert_true(sql_number(path, "SELECT min(lacks_ns) FROM summaries") > 0);
	assert_close(0, WINDOWS, 5);
	/* Summaries that the range covers only in part are not read. */
	assert_close(1, WINDOWS, 4);
	assert_close(SUMMARY, 2 * SUMMARY, 1);
	assert_close(SUMMARY, 2 * SUMMARY - 1, 0);
	assert_close(SUMMARY + 1, 3 * SUMMARY, 2);
}

/* A summary that cannot be read, or says what is not so, is not used; its windows are. */
static void test_damaged(void **state)
{
	struct answer_of answer, again;

	store_fill(ROWS, 1);
	sql_run(path, "UPDATE summaries SET lacks_ns = 1 WHERE id = 1");
	answer_make(&answer, 0, 2 * SUMMARY, true);
	assert_int_equal(answer.summaries.n, 1);
	assert_false(timeline_has_bad_summary(answer.timeline));
	answer_drop(&answer);
	sql_run(path, "UPDATE summaries SET blob_sum = blob_sum + 1");
	answer_make(&answer, 0, 2 * SUMMARY, true);
	assert_true(timeline_has_bad_summary(answer.timeline));
	answer_drop(&answer);
	answer_make(&again, 0, 2 * SUMMARY, false);
	assert_int_equal(again.coverage.bad, 0);
	answer_drop(&again);
	/* A window that a summary has is missing. */
	sql_run(path, "DELETE FROM windows WHERE id = 30");
	answer_make(&answer, 0, WINDOWS, true);
	assert_int_equal(answer.summaries.n, 3);
	answer_drop(&answer);
}

/* Windows that are merged, evicted or folded have no summary any more; others get one. */
static void test_retention(void **state)
{
	struct answer_of before, after;
	struct store *store;
	int64_t tier;

	store_fill(ROWS, 2);
	/* Of the last minute, and of those before it, which are one window each by now. */
	assert_true(sql_number(path, "SELECT count(*) FROM window_tiers WHERE tier = 1") >= 4);
	assert_true(sql_number(path, "SELECT count(*) FROM summaries") > 0);
	answer_make(&before, 0, WINDOWS, true);
	now_ns += 20 * MINUTE_NS;
	store = store_begin(ROWS, 2, 256 << 20);
	idle_wait(store);
	store_stop(store);
	assert_whole();
	tier = sql_number(path, "SELECT count(*) FROM window_tiers WHERE tier = 0");
	assert_true(tier <= 12);
	assert_int_equal(sql_number(path,
				    "SELECT count(*) FROM summaries JOIN window_tiers USING (id) "
				    "WHERE tier = 0"),
			 0);
	answer_make(&after, 0, WINDOWS, true);
	assert_int_equal(aggregate_totals(before.aggregate)->blocked_ns,
			 aggregate_totals(after.aggregate)->blocked_ns);
	answer_drop(&before);
	answer_drop(&after);
}

/* Summaries are made of the windows of an earlier run, and not twice. */
static void test_earlier(void **state)
{
	struct answer_of answer;
	struct store *store;

	store_fill(ROWS, 1);
	sql_run(path, "DELETE FROM summaries");
	answer_make(&answer, 0, WINDOWS, true);
	assert_int_equal(answer.summaries.n, 0);
	answer_drop(&answer);
	store = store_begin(ROWS, 1, 256 << 20);
	idle_wait(store);
	store_stop(store);
	assert_whole();
	assert_int_equal(sql_number(path, "SELECT count(*) FROM summaries"), 5);
	assert_close(0, WINDOWS, 5);
	store = store_begin(ROWS, 1, 256 << 20);
	idle_wait(store);
	store_stop(store);
	assert_int_equal(sql_number(path, "SELECT count(*) FROM summaries"), 5);
}

/* Loads all summaries with their processes and stacks; returns their number. */
static size_t summaries_load(void)
{
	struct store_entry *entries;
	struct store_reader *reader;
	struct window *window;
	size_t n, i;

	assert_int_equal(store_reader_open(path, &reader), 0);
	assert_int_equal(
		store_reader_summaries(reader, "offcpu", INT64_MIN, INT64_MAX, &entries, &n), 0);
	for (i = 0; i < n; i++) {
		assert_int_equal(store_reader_load(reader, &entries[i], &window), 0);
		window_unref(window);
	}
	assert_int_equal(store_reader_damaged(reader), 0);
	free(entries);
	store_reader_close(reader);
	return n;
}

/* Deletes unused rows as the writer does when the database is full. */
static void collect(void)
{
	struct store store = {
		.path = path,
		.lock_path = path,
		.max_size = 256 << 20,
		.tiers = { { LENGTH_NS, INT64_MAX / 4, 100 } },
		.n_tiers = 1,
		.now = now,
		.lock_fd = -1,
	};
	char lock_path[sizeof(path) + 8];
	int r;

	snprintf(lock_path, sizeof(lock_path), "%s.lock", path);
	store.lock_path = lock_path;
	pthread_mutex_init(&store.lock, NULL);
	assert_int_equal(store_file_open(&store), 0);
	assert_int_equal(store_collect_begin(&store), 0);
	do
		r = store_collect_step(&store);
	while (r > 0);
	assert_int_equal(r, 0);
	store_file_close(&store);
	pthread_mutex_destroy(&store.lock);
}

/*
 * Rows to which only a summary refers stay when unused rows are deleted; those that only windows
 * used which are gone do not.
 */
static void test_collected(void **state)
{
	/* No window is folded, so that only summaries have folded processes. */
	n_short = 2 * ROWS - LIVING;
	store_fill(ROWS, 1);
	n_short = SHORT;
	assert_int_equal(sql_number(path, "SELECT max(id) - count(*) FROM processes"), 0);
	sql_run(path, "DELETE FROM windows WHERE id <= 24");
	collect();
	assert_true(sql_number(path, "SELECT max(id) - count(*) FROM processes") > 20 * SUMMARY);
	assert_whole();
	assert_int_equal(summaries_load(), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_all_rows, remove_db),
		cmocka_unit_test_setup(test_folded, remove_db),
		cmocka_unit_test_setup(test_damaged, remove_db),
		cmocka_unit_test_setup(test_retention, remove_db),
		cmocka_unit_test_setup(test_earlier, remove_db),
		cmocka_unit_test_setup(test_collected, remove_db),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
