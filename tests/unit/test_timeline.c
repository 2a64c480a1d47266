/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
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
#include "daemon/store/db.h"
#include "daemon/store/history.h"
#include "daemon/store/intern.h"
#include "daemon/store/reader.h"
#include "daemon/store/timeline.h"
#include "daemon/store/window_blob.h"
#include "daemon/store/window_row.h"

/*
 * Timelines of windows of 5 s, in a history and a database that each test fills by hand; no clock
 * is read. Times are in seconds of the real clock, which is OFFSET seconds ahead of the monotonic
 * one.
 */
#define OFFSET 1000
#define LENGTH 5

#define S(seconds) ((int64_t)(seconds)*NS_PER_S)

enum { SESSION = 1, CLIENT_SESSION = 107, THIS_RUN = 9 };

static char directory[] = "/tmp/test_timeline.XXXXXX";
static char path[64];

struct place {
	struct history *history;
	struct store_db db; /* the writer's side */
	struct store_reader *reader;
	struct arena *arena;
	struct timeline *timeline;
	struct timeline_source source;
	struct timeline_session session;
	struct timeline_coverage coverage;
	bool has_disk;
};

static int setup(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	assert_non_null(place);
	assert_int_equal(history_new(S(100000), SIZE_MAX, &place->history), 0);
	unlink(path);
	assert_int_equal(store_db_open(&place->db, path, true), 0);
	place->arena = arena_new();
	place->source = (struct timeline_source){
		.history = place->history,
		.run = THIS_RUN,
		.boot_id = "boot b",
	};
	place->session = (struct timeline_session){
		.id = SESSION,
		.probe = "offcpu",
		.is_recording = true,
	};
	*state = place;
	return 0;
}

static int teardown(void **state)
{
	struct place *place = *state;

	timeline_close(place->timeline);
	store_reader_close(place->reader);
	store_db_close(&place->db);
	history_free(place->history);
	arena_free(place->arena);
	free(place);
	return 0;
}

static struct store_entry entry_at(uint64_t run, uint64_t seq, int64_t start_s)
{
	return (struct store_entry){
		.run = run,
		.seq = seq,
		.merged_from = 1,
		.session = SESSION,
		.kind = PROBE_OFFCPU,
		.start_ns = S(start_s - OFFSET),
		.end_ns = S(start_s - OFFSET + LENGTH),
		.real_offset_ns = S(OFFSET),
	};
}

static void memory_add_entry(struct place *place, const struct store_entry *entry)
{
	struct window *window = window_new();

	window->session = entry->session;
	window->seq = entry->seq;
	window->merged_from = (uint32_t)entry->merged_from;
	window->start_ns = entry->start_ns;
	window->end_ns = entry->end_ns;
	window->real_offset_ns = entry->real_offset_ns;
	window->boot_offset_ns = entry->boot_offset_ns;
	window->lost[LOST_WAIT_KEYS] = entry->lost[LOST_WAIT_KEYS];
	window->bytes = 1000;
	history_add(place->history, window, NULL, 0);
}

static void memory_add(struct place *place, uint64_t seq, int64_t start_s)
{
	const struct store_entry entry = entry_at(0, seq, start_s);

	memory_add_entry(place, &entry);
}

/* Adds the row of a window with this blob. */
static void row_add(struct place *place, const struct store_entry *entry, const void *blob,
		    size_t size, int64_t sum)
{
	sqlite3_stmt *statement;
	struct bytes lost = {};

	place->has_disk = true;
	assert_int_equal(store_db_query(&place->db, STATEMENT_WINDOW_ADD, &statement, ""), 0);
	store_row_bind(statement, entry, &lost);
	sqlite3_bind_int64(statement, 19, sum);
	sqlite3_bind_blob(statement, 20, blob, (int)size, SQLITE_STATIC);
	assert_int_equal(store_db_exec(&place->db, statement), 0);
	bytes_fini(&lost);
}

/* Adds a window without a valid blob: it can be listed, but not read. */
static void disk_add_entry(struct place *place, const struct store_entry *entry)
{
	struct store_entry added = *entry;

	assert_int_equal(store_db_number(&place->db, STATEMENT_WINDOW_NEXT, &added.id), 0);
	row_add(place, &added, "", 1, 0);
}

/* Adds a window of this run without rows, which can be read. */
static void disk_add_readable(struct place *place, struct store_entry entry)
{
	const struct store_names names = {};
	struct window *window = window_new();
	struct bytes blob = {};

	assert_int_equal(store_db_number(&place->db, STATEMENT_WINDOW_NEXT, &entry.id), 0);
	window->session = entry.session;
	window->kind = entry.kind;
	window->seq = entry.seq;
	window->merged_from = (uint32_t)entry.merged_from;
	window->start_ns = entry.start_ns;
	window->end_ns = entry.end_ns;
	window->real_offset_ns = entry.real_offset_ns;
	assert_int_equal(store_blob_encode(window, entry.run, &names, &blob), 0);
	row_add(place, &entry, blob.data, blob.n, store_sum(entry.id, blob.data, blob.n));
	bytes_fini(&blob);
	window_unref(window);
}

static void disk_add(struct place *place, uint64_t run, uint64_t seq, int64_t start_s)
{
	const struct store_entry entry = entry_at(run, seq, start_s);

	disk_add_entry(place, &entry);
}

/* Adds a run; runs get the numbers 1, 2, ... */
static void run_add(struct place *place, const char *boot_id, bool is_clean)
{
	place->has_disk = true;
	assert_int_equal(
		store_db_change(&place->db, STATEMENT_RUN_ADD, "tti", boot_id, "test", (int64_t)0),
		0);
	if (!is_clean)
		return;
	assert_int_equal(store_db_change(&place->db, STATEMENT_RUN_END, "ii",
					 (int64_t)sqlite3_last_insert_rowid(place->db.handle),
					 (int64_t)0),
			 0);
}

static void gap_note(struct place *place, int64_t start_s, int64_t end_s, const char *reason)
{
	place->has_disk = true;
	assert_int_equal(
		store_db_change(&place->db, STATEMENT_GAP_ADD, "iit", S(start_s), S(end_s), reason),
		0);
}

static const struct timeline_list *list_open(struct place *place, int64_t since_ns,
					     int64_t until_ns)
{
	place->timeline = timeline_close(place->timeline);
	place->reader = store_reader_close(place->reader);
	if (place->has_disk)
		assert_int_equal(store_reader_open(path, &place->reader), 0);
	place->source.reader = place->reader;
	assert_int_equal(timeline_open(&place->source, &place->session, since_ns, until_ns,
				       &place->timeline),
			 0);
	return timeline_range(place->timeline);
}

static const struct timeline_coverage *cover(struct place *place, int64_t since_s, int64_t until_s)
{
	list_open(place, S(since_s), S(until_s));
	assert_int_equal(timeline_coverage(place->timeline, place->arena, S(since_s), S(until_s),
					   &place->coverage),
			 0);
	return &place->coverage;
}

static void assert_gap(const struct timeline_coverage *coverage, size_t i, int64_t start_s,
		       int64_t end_s, const char *reason)
{
	assert_true(i < coverage->n_gaps);
	assert_int_equal(coverage->gaps[i].start_ns, S(start_s));
	assert_int_equal(coverage->gaps[i].end_ns, S(end_s));
	assert_string_equal(coverage->gaps[i].reason, reason);
}

static void test_memory_covers_its_range(void **state)
{
	struct place *place = *state;
	const struct timeline_coverage *coverage;
	uint64_t seq;

	for (seq = 1; seq <= 4; seq++)
		memory_add(place, seq, 2000 + (int64_t)seq * LENGTH);
	coverage = cover(place, 2006, 2018);
	assert_int_equal(coverage->n_gaps, 0);
	assert_int_equal(coverage->windows, 3);
	assert_int_equal(coverage->covered_ns, S(12));
	assert_int_equal(coverage->used_start_ns, S(2005));
	assert_int_equal(coverage->used_end_ns, S(2020));
	assert_int_equal(coverage->used_ns, S(15));
	assert_int_equal(timeline_first_start(place->timeline), S(2005));
}

static void test_a_range_is_half_open(void **state)
{
	struct place *place = *state;
	const struct timeline_list *list;

	memory_add(place, 1, 2000);
	memory_add(place, 2, 2005);
	memory_add(place, 3, 2010);
	disk_add(place, 8, 1, 1900);
	disk_add(place, 8, 2, 1905);
	list = list_open(place, S(1905), S(2010));
	assert_int_equal(list->n, 3);
	assert_int_equal(list->n_stored, 1);
	assert_int_equal(store_entry_start(&list->entries[0]), S(1905));
	assert_int_equal(store_entry_end(&list->entries[2]), S(2010));
}

/*
 * Each time is listed once. Windows that memory has are not listed from disk, too; but a longer one
 * on disk, of which memory has a part only, is listed instead of that part.
 */
static void test_a_window_is_listed_once(void **state)
{
	struct place *place = *state;
	struct store_entry longer = entry_at(THIS_RUN, 4, 2020);
	const struct timeline_list *list;
	uint64_t seq;

	disk_add(place, 8, 6, 1990);
	for (seq = 1; seq <= 3; seq++)
		disk_add(place, THIS_RUN, seq, 2000 + (int64_t)seq * LENGTH);
	longer.merged_from = 3;
	longer.end_ns += S(2 * LENGTH);
	disk_add_entry(place, &longer);
	for (seq = 5; seq <= 8; seq++)
		memory_add(place, seq, 2000 + (int64_t)seq * LENGTH);
	list = list_open(place, INT64_MIN, INT64_MAX);
	assert_int_equal(list->n_stored, 5);
	assert_int_equal(list->n, 7);
	assert_int_equal(list->entries[0].run, 8);
	assert_int_equal(list->entries[3].seq, 3);
	assert_int_equal(list->entries[4].seq, 4);
	assert_int_equal(list->entries[5].seq, 7);
	assert_int_equal(list->entries[5].run, THIS_RUN);
	assert_null(list->windows[4]);
	assert_int_equal(list->windows[6]->seq, 8);
	assert_int_equal(cover(place, 2005, 2045)->n_gaps, 0);
	assert_int_equal(cover(place, 2005, 2045)->covered_ns, S(40));
	/* A range in which all is in memory does not change with what is before it. */
	assert_int_equal(list_open(place, S(2036), S(2045))->n_stored, 0);
}

/* Checks which windows of [2000, 2100) are listed, and which of these are on disk: "1d 2m". */
static void assert_listed(struct place *place, const char *expected)
{
	const struct timeline_list *list = list_open(place, S(2000), S(2100));
	char text[256] = "";
	size_t used = 0, n_stored = 0, i;

	for (i = 0; i < list->n; i++) {
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%d%c", i ? " " : "",
					 (int)list->entries[i].seq,
					 list->entries[i].id ? 'd' : 'm');
		assert_int_equal(!list->windows[i], list->entries[i].id != 0);
		if (list->windows[i])
			assert_int_equal(list->windows[i]->seq, list->entries[i].seq);
		n_stored += list->entries[i].id != 0;
	}
	assert_string_equal(text, expected);
	assert_int_equal(list->n_stored, n_stored);
}

/* Windows in memory have all rows, and are listed in place of those on disk, joined or not. */
static void test_memory_is_listed(void **state)
{
	struct place *place = *state;
	struct store_entry joined = entry_at(THIS_RUN, 2, 2010);
	uint64_t seq;

	disk_add_readable(place, entry_at(THIS_RUN, 1, 2005));
	joined.merged_from = 3;
	joined.end_ns += S(2 * LENGTH);
	disk_add_readable(place, joined);
	for (seq = 1; seq <= 5; seq++)
		memory_add(place, seq, 2000 + (int64_t)seq * LENGTH);
	assert_listed(place, "1m 2m 3m 4m 5m");
	assert_int_equal(cover(place, 2005, 2030)->covered_ns, S(25));
	assert_int_equal(place->coverage.n_gaps, 0);
}

/* Memory has only the later parts of a joined window: none is listed twice. */
static void test_a_joined_window_is_listed_for_its_parts(void **state)
{
	struct place *place = *state;
	struct store_entry joined = entry_at(THIS_RUN, 2, 2010);
	uint64_t seq;

	disk_add_readable(place, entry_at(THIS_RUN, 1, 2005));
	joined.merged_from = 3;
	joined.end_ns += S(2 * LENGTH);
	disk_add_readable(place, joined);
	for (seq = 3; seq <= 5; seq++)
		memory_add(place, seq, 2000 + (int64_t)seq * LENGTH);
	assert_listed(place, "1d 2d 5m");
	assert_int_equal(cover(place, 2005, 2030)->covered_ns, S(25));
	assert_int_equal(place->coverage.n_gaps, 0);
	/* The range ends within the joined window. */
	assert_int_equal(list_open(place, S(2005), S(2014))->n, 2);
	/* The same for windows after the range. */
	assert_int_equal(timeline_read_later(place->timeline, S(2014)), 0);
	assert_int_equal(timeline_later(place->timeline)->n, 2);
	assert_int_equal(timeline_later(place->timeline)->n_stored, 1);
}

/* Reads all windows of the list, the last one first; returns how many could be read. */
static size_t read_all(const struct timeline_list *list)
{
	size_t i, n = 0;

	for (i = list->n; i-- > 0;) {
		struct window *window = timeline_window(list, i);

		if (!window)
			continue;
		assert_int_equal(window->seq, list->entries[i].seq);
		assert_int_equal(window->end_ns, list->entries[i].end_ns);
		n++;
		window_unref(window);
	}
	return n;
}

/* Windows that are read ahead from disk come before windows in memory, which are not. */
static void test_windows_are_read_in_order(void **state)
{
	enum { N = 60 };
	struct place *place = *state;
	struct store_entry entry;
	uint64_t seq;

	for (seq = 1; seq <= N; seq++) {
		entry = entry_at(THIS_RUN, seq, 2000 + (int64_t)seq * LENGTH);
		disk_add_readable(place, entry);
		if (seq > N / 2)
			memory_add(place, seq, 2000 + (int64_t)seq * LENGTH);
	}
	assert_int_equal(read_all(list_open(place, S(2000), S(3000))), N);
	assert_true(timeline_range(place->timeline)->n_stored > 16);
	/* Again, one after the other. */
	for (seq = 0; seq < N; seq += 7) {
		struct window *window = timeline_window(timeline_range(place->timeline), seq);

		assert_int_equal(window->seq, seq + 1);
		window_unref(window);
	}
}

static void test_windows_of_other_sessions_are_not_listed(void **state)
{
	struct place *place = *state;
	struct store_entry other = entry_at(0, 2, 2005);

	other.session = CLIENT_SESSION;
	memory_add(place, 1, 2000);
	memory_add_entry(place, &other);
	other.run = THIS_RUN;
	other.start_ns = other.end_ns - 1;
	disk_add_entry(place, &other);
	assert_int_equal(list_open(place, INT64_MIN, INT64_MAX)->n, 1);
}

/* The number of a client's session of an earlier run may be one of this run's, too. */
static void test_a_session_of_an_earlier_run(void **state)
{
	struct place *place = *state;
	struct store_entry entry = entry_at(8, 1, 2000);
	const struct timeline_list *list;

	entry.session = CLIENT_SESSION;
	memory_add_entry(place, &entry);
	disk_add_entry(place, &entry);
	entry.run = 7;
	disk_add_entry(place, &entry);
	place->session = (struct timeline_session){ .id = CLIENT_SESSION, .run = 8 };
	list = list_open(place, INT64_MIN, INT64_MAX);
	assert_int_equal(list->n, 1);
	assert_int_equal(list->n_stored, 1);
	assert_int_equal(list->entries[0].run, 8);
}

static void test_later_windows(void **state)
{
	struct place *place = *state;
	const struct timeline_list *later;

	disk_add(place, 8, 1, 2000);
	disk_add(place, 8, 2, 2005);
	disk_add(place, 8, 3, 2119);
	disk_add(place, 8, 4, 2130);
	memory_add(place, 1, 3000);
	list_open(place, S(2000), S(2005));
	assert_int_equal(timeline_read_later(place->timeline, S(2005)), 0);
	later = timeline_later(place->timeline);
	assert_int_equal(later->n, 3);
	assert_int_equal(later->n_stored, 2);
	assert_int_equal(later->entries[1].seq, 3);
	assert_int_equal(later->windows[2]->seq, 1);
}

/* Checks the reason of the gap after a run that ended like this. */
static void assert_ended(struct place *place, const char *first_boot, bool is_clean,
			 const char *reason)
{
	run_add(place, first_boot, is_clean);
	run_add(place, "boot b", false);
	disk_add(place, 1, 1, 2000);
	disk_add(place, 2, 1, 2100);
	assert_gap(cover(place, 2010, 2105), 0, 2010, 2100, reason);
	assert_int_equal(place->coverage.n_gaps, 1);
	assert_int_equal(place->coverage.covered_ns, S(LENGTH));
}

static void test_stackd_was_stopped(void **state)
{
	assert_ended(*state, "boot b", true, "stackd was stopped");
}

static void test_stackd_was_stopped_and_the_host_restarted(void **state)
{
	assert_ended(*state, "boot a", true, "stackd was stopped, and the host restarted");
}

static void test_stackd_was_killed(void **state)
{
	assert_ended(*state, "boot b", false, "stackd was killed or crashed");
}

static void test_the_host_went_down(void **state)
{
	assert_ended(*state, "boot a", false, "stackd was not stopped: the host went down");
}

/* Without anything that records, the boot id of the host says how the last run ended. */
static void test_nothing_is_recorded_any_more(void **state)
{
	struct place *place = *state;

	place->session.is_recording = false;
	place->source.run = 0;
	run_add(place, "boot a", true);
	disk_add(place, 1, 1, 2000);
	assert_gap(cover(place, 2000, 2010), 0, 2005, 2010,
		   "stackd was stopped, and the host restarted");
}

/* A file that is only read may be a copy of one that is being written to, also of another host. */
static void assert_end_of_file(struct place *place, const char *boot)
{
	place->session.is_recording = false;
	place->source.run = 0;
	run_add(place, boot, false);
	disk_add(place, 1, 1, 2000);
	assert_gap(
		cover(place, 2000, 2010), 0, 2005, 2010,
		"the file ends here: it is a copy, or stackd was killed or crashed, or the host went down");
}

static void test_the_file_ends(void **state)
{
	assert_end_of_file(*state, "boot b");
}

static void test_the_file_of_another_boot_ends(void **state)
{
	assert_end_of_file(*state, "boot a");
}

static void assert_within(struct place *place, int64_t lost_s, int64_t stepped_s, int64_t slept_s,
			  const char *reason)
{
	struct store_entry entry = entry_at(0, 2, 2005 + lost_s);

	entry.real_offset_ns += S(stepped_s);
	entry.boot_offset_ns += S(slept_s);
	memory_add(place, 1, 2000);
	memory_add_entry(place, &entry);
	assert_gap(cover(place, 2000, 2010 + lost_s + stepped_s), 0, 2005,
		   2005 + lost_s + stepped_s, reason);
	assert_int_equal(place->coverage.n_gaps, 1);
}

static void test_a_window_could_not_be_kept(void **state)
{
	assert_within(*state, LENGTH, 0, 0, "a window could not be kept");
}

static void test_the_clock_was_set_forward(void **state)
{
	assert_within(*state, 0, 60, 0, "the clock was set forward");
}

static void test_the_host_was_suspended(void **state)
{
	assert_within(*state, 0, 60, 60, "the host was suspended");
}

/* The windows in between have times before the range. */
static void test_the_clock_was_set_and_set_again(void **state)
{
	struct place *place = *state;
	struct store_entry entry = entry_at(0, 2, 2005);

	memory_add(place, 1, 2000);
	entry.real_offset_ns -= S(100);
	memory_add_entry(place, &entry);
	memory_add(place, 3, 2010);
	assert_gap(cover(place, 2000, 2015), 0, 2005, 2010, "the clock was set, and set again");
	assert_int_equal(place->coverage.covered_ns, S(10));
}

/* The monotonic clock of another boot says nothing about windows of this one. */
static void test_windows_of_another_boot(void **state)
{
	struct place *place = *state;
	struct store_entry entry = entry_at(0, 2, 2006);

	entry.real_offset_ns += S(5000);
	memory_add_entry(place, &entry);
	disk_add(place, 8, 1, 2000);
	disk_add(place, 8, 3, 2010);
	assert_gap(cover(place, 2000, 2015), 0, 2005, 2010, "a window could not be kept");
}

static void test_the_clock_was_set_back(void **state)
{
	struct place *place = *state;

	run_add(place, "boot b", true);
	run_add(place, "boot b", true);
	disk_add(place, 2, 1, 2000);
	disk_add(place, 1, 1, 2010);
	assert_gap(cover(place, 2000, 2015), 0, 2005, 2010, "the clock was set back");
}

static void test_drift_is_no_gap(void **state)
{
	struct place *place = *state;
	struct store_entry entry = entry_at(0, 2, 2005);

	entry.real_offset_ns += NS_PER_MS;
	memory_add(place, 1, 2000);
	memory_add_entry(place, &entry);
	assert_int_equal(cover(place, 2000, 2010)->n_gaps, 0);
	assert_int_equal(place->coverage.windows, 2);
}

static void test_a_noted_reason_comes_first(void **state)
{
	struct place *place = *state;

	gap_note(place, 2004, 2006, "a short one");
	gap_note(place, 2005, 2010, "not written: the disk was full");
	disk_add(place, THIS_RUN, 1, 2000);
	disk_add(place, THIS_RUN, 3, 2010);
	assert_gap(cover(place, 2000, 2015), 0, 2005, 2010, "not written: the disk was full");
	assert_int_equal(place->coverage.n_gaps, 1);
}

/* A reason is that of the time that was noted, not of all of a longer gap. */
static void test_a_noted_reason_holds_for_its_time(void **state)
{
	struct place *place = *state;

	gap_note(place, 2010, 2015, "not written: the disk was full");
	disk_add(place, THIS_RUN, 1, 2000);
	disk_add(place, THIS_RUN, 99, 3000);
	cover(place, 2000, 3005);
	assert_gap(&place->coverage, 0, 2005, 2010, "a window could not be kept");
	assert_gap(&place->coverage, 1, 2010, 2015, "not written: the disk was full");
	assert_gap(&place->coverage, 2, 2015, 3000, "a window could not be kept");
	assert_int_equal(place->coverage.n_gaps, 3);
}

/* A list of windows on disk that cannot be read is no sign that stackd did not run. */
static void test_an_unreadable_list_is_a_gap(void **state)
{
	struct place *place = *state;

	disk_add(place, THIS_RUN, 1, 2000);
	memory_add(place, 3, 2010);
	store_db_run(&place->db, "ALTER TABLE windows RENAME TO others");
	assert_gap(cover(place, 2000, 2015), 0, 2000, 2010, "unreadable on disk");
	assert_int_equal(place->coverage.n_gaps, 1);
}

/* A note of a run that was killed later says nothing about the time after that. */
static void test_a_note_ends_with_its_run(void **state)
{
	struct place *place = *state;

	run_add(place, "boot b", false);
	run_add(place, "boot b", false);
	gap_note(place, 2005, 2010, "not written: the disk was full");
	disk_add(place, 1, 1, 2000);
	disk_add(place, 2, 1, 2020);
	cover(place, 2000, 2025);
	assert_gap(&place->coverage, 0, 2005, 2010, "not written: the disk was full");
	assert_gap(&place->coverage, 1, 2010, 2020, "stackd was killed or crashed");
	assert_int_equal(place->coverage.n_gaps, 2);
}

static void test_evicted_on_disk(void **state)
{
	struct place *place = *state;
	place->has_disk = true;
	assert_int_equal(store_db_change(&place->db, STATEMENT_META_SET, "tit", "evicted", S(1950),
					 "older than [store] max_age"),
			 0);
	disk_add(place, 8, 1, 2000);
	assert_gap(cover(place, 1900, 2005), 0, 1900, 2000, "older than [store] max_age");
}

static void test_evicted_from_memory(void **state)
{
	struct place *place = *state;

	history_set_limits(place->history, S(100000), 2000);
	memory_add(place, 1, 2000);
	memory_add(place, 2, 2005);
	memory_add(place, 3, 2010);
	assert_gap(cover(place, 2000, 2015), 0, 2000, 2005, "dropped for [window] max_memory");
	assert_true(timeline_has_memory(place->timeline));
	assert_int_equal(timeline_memory_evicted(place->timeline), S(2005));
}

static void test_before_everything(void **state)
{
	struct place *place = *state;

	/* What is always recorded began with stackd. */
	place->session.since_ns = S(1995);
	memory_add(place, 1, 2000);
	assert_gap(cover(place, 1990, 2005), 0, 1990, 2000, "stackd was not running");
}

static void test_before_a_session(void **state)
{
	struct place *place = *state;
	struct store_entry entry = entry_at(0, 1, 2000);

	entry.session = CLIENT_SESSION;
	memory_add_entry(place, &entry);
	place->session = (struct timeline_session){ .id = CLIENT_SESSION, .since_ns = S(2000) };
	assert_gap(cover(place, 1990, 2005), 0, 1990, 2000, "the session had not begun");
}

static void test_the_open_window_is_late(void **state)
{
	struct place *place = *state;

	memory_add(place, 1, 2000);
	assert_gap(cover(place, 2000, 2010), 0, 2005, 2010, "stackd is too busy to end the window");
}

/* This run has not ended, as the newest window on disk is of it. */
static void test_the_open_window_is_late_and_all_others_on_disk(void **state)
{
	struct place *place = *state;
	int i;

	for (i = 0; i < THIS_RUN; i++)
		run_add(place, "boot b", false);
	disk_add(place, THIS_RUN, 1, 2000);
	assert_gap(cover(place, 2000, 2010), 0, 2005, 2010, "stackd is too busy to end the window");
}

static void test_after_a_session(void **state)
{
	struct place *place = *state;

	place->session.is_recording = false;
	memory_add(place, 1, 2000);
	assert_gap(cover(place, 2000, 2010), 0, 2005, 2010, "not recorded");
}

/* A damaged window is a gap and lost nothing that counts; it is known once it was asked for. */
static void test_an_unreadable_window_is_a_gap(void **state)
{
	struct place *place = *state;
	struct store_entry entry = entry_at(8, 1, 2000);
	uint64_t lost[WINDOW_LOST_N] = {};
	const struct timeline_list *list;

	entry.lost[LOST_WAIT_KEYS] = 3;
	disk_add_entry(place, &entry);
	entry = entry_at(0, 1, 2005);
	entry.lost[LOST_WAIT_KEYS] = 4;
	memory_add_entry(place, &entry);
	list = list_open(place, S(2000), S(2010));
	assert_int_equal(
		timeline_losses(place->timeline, 0, timeline_range(place->timeline)->n, lost), 0);
	assert_int_equal(lost[LOST_WAIT_KEYS], 7);
	assert_null(timeline_window(list, 0));
	window_unref(timeline_window(list, 1));
	memset(lost, 0, sizeof(lost));
	assert_int_equal(
		timeline_losses(place->timeline, 0, timeline_range(place->timeline)->n, lost), 0);
	assert_int_equal(lost[LOST_WAIT_KEYS], 4);
	assert_int_equal(timeline_coverage(place->timeline, place->arena, S(2000), S(2010),
					   &place->coverage),
			 0);
	assert_int_equal(place->coverage.bad, 1);
	assert_int_equal(place->coverage.windows, 1);
	assert_int_equal(place->coverage.n_gaps, 1);
	assert_gap(&place->coverage, 0, 2000, 2005, "unreadable on disk");
}

/* Unreadable windows in a row are one gap; a readable window between them ends it. */
static void test_gaps_of_one_reason_are_one(void **state)
{
	struct place *place = *state;
	struct store_entry entry;
	const struct timeline_list *list;
	size_t i;

	for (i = 0; i < 6; i++) {
		if (i == 4)
			continue;
		entry = entry_at(8, i + 1, 2000 + LENGTH * (int64_t)i);
		disk_add_entry(place, &entry);
	}
	entry = entry_at(0, 1, 2020);
	memory_add_entry(place, &entry);
	list = list_open(place, S(2000), S(2030));
	for (i = list->n; i-- > 0;)
		window_unref(timeline_window(list, i));
	/* A limit that was reached is not damage. */
	for (i = 0; i < list->n; i++)
		if (list->entries[i].bad && store_entry_start(&list->entries[i]) < S(2010))
			list->entries[i].bad = -ENOMEM;
	assert_int_equal(timeline_coverage(place->timeline, place->arena, S(2000), S(2030),
					   &place->coverage),
			 0);
	assert_int_equal(place->coverage.bad, 5);
	assert_int_equal(place->coverage.n_gaps, 3);
	assert_gap(&place->coverage, 0, 2000, 2010,
		   "not read: stackd ran out of memory; ask for a shorter range");
	assert_gap(&place->coverage, 1, 2010, 2020, "unreadable on disk");
	assert_gap(&place->coverage, 2, 2025, 2030, "unreadable on disk");
}

static void test_no_window_at_all(void **state)
{
	struct place *place = *state;

	assert_gap(cover(place, 2000, 2010), 0, 2000, 2010, "stackd was not running");
	assert_false(timeline_has_memory(place->timeline));
	assert_int_equal(timeline_memory_evicted(place->timeline), 0);
	assert_int_equal(place->coverage.used_start_ns, S(2000));
	assert_int_equal(place->coverage.used_end_ns, S(2010));
	assert_int_equal(place->coverage.windows, 0);
}

static void test_compacted_windows_count(void **state)
{
	struct place *place = *state;
	struct store_entry entry = entry_at(8, 1, 2000);

	place->source.window_ns = S(LENGTH);
	entry.merged_from = 12;
	entry.end_ns = entry.start_ns + S(60);
	disk_add_entry(place, &entry);
	/* Windows that clients cut early, joined to one of usual length, are not compacted. */
	entry = entry_at(8, 13, 2060);
	entry.merged_from = 3;
	disk_add_entry(place, &entry);
	assert_int_equal(cover(place, 2000, 2065)->compacted, 1);
	assert_int_equal(place->coverage.n_gaps, 0);
	assert_int_equal(place->coverage.covered_ns, S(65));
}

/* The second window begins and ends within the first. */
static void test_the_end_that_is_covered(void **state)
{
	struct place *place = *state;
	struct store_entry entry = entry_at(8, 1, 2000);

	entry.end_ns = entry.start_ns + S(60);
	disk_add_entry(place, &entry);
	disk_add(place, 8, 13, 2010);
	cover(place, 2000, 2060);
	assert_int_equal(place->coverage.used_end_ns, S(2060));
	assert_int_equal(place->coverage.covered_ns, S(60));
	assert_int_equal(place->coverage.used_ns, S(60));
}

/* After the clock was set back a little, a window begins before the end of the one before it. */
static void test_an_overlap_is_used_once(void **state)
{
	struct place *place = *state;

	disk_add(place, 8, 1, 2000);
	disk_add(place, 8, 2, 2003);
	cover(place, 2000, 2008);
	assert_int_equal(place->coverage.windows, 2);
	assert_int_equal(place->coverage.used_end_ns, S(2008));
	assert_int_equal(place->coverage.covered_ns, S(8));
	assert_int_equal(place->coverage.used_ns, S(8));
}

static void test_gaps_are_bounded(void **state)
{
	struct place *place = *state;
	uint64_t seq;

	for (seq = 1; seq <= TIMELINE_GAPS_MAX + 10; seq++)
		memory_add(place, seq, (int64_t)(seq + 1000) * 2 * LENGTH);
	assert_int_equal(cover(place, 2000, 40000)->n_gaps, TIMELINE_GAPS_MAX);
	assert_gap(&place->coverage, TIMELINE_GAPS_MAX - 1,
		   (TIMELINE_GAPS_MAX + 999) * 2 * LENGTH + LENGTH, 40000,
		   "12 gaps with windows between them: more than are listed");
	assert_int_equal(place->coverage.windows, TIMELINE_GAPS_MAX + 10);
	assert_int_equal(place->coverage.used_ns, S(LENGTH) * (TIMELINE_GAPS_MAX + 10));
}

/* One more window than a list takes: the oldest is left out, and the gap says so. */
static void test_too_many_windows(void **state)
{
	struct place *place = *state;
	int64_t end = 2000 + (STORE_LIST_MAX + 1) * LENGTH;
	uint64_t seq;

	assert_int_equal(store_db_run(&place->db, "BEGIN"), 0);
	for (seq = 0; seq <= STORE_LIST_MAX; seq++)
		disk_add(place, 8, seq, 2000 + (int64_t)seq * LENGTH);
	assert_int_equal(store_db_run(&place->db, "COMMIT"), 0);
	cover(place, 2000, end);
	assert_true(timeline_is_truncated(place->timeline));
	assert_int_equal(timeline_range(place->timeline)->n, STORE_LIST_MAX);
	assert_int_equal(timeline_first_start(place->timeline), S(2000));
	assert_int_equal(place->coverage.n_gaps, 1);
	assert_gap(&place->coverage, 0, 2000, 2005,
		   "more windows than one answer reads: ask for a shorter range");
	/* This is not so before a later part of the range. */
	assert_int_equal(timeline_coverage_of(place->timeline, place->arena, 2, 4, S(2000), S(2025),
					      &place->coverage),
			 0);
	assert_int_equal(place->coverage.n_gaps, 1);
	assert_gap(&place->coverage, 0, 2000, 2015, "stackd was not running");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_memory_covers_its_range),
		TEST(test_a_range_is_half_open),
		TEST(test_a_window_is_listed_once),
		TEST(test_memory_is_listed),
		TEST(test_a_joined_window_is_listed_for_its_parts),
		TEST(test_windows_are_read_in_order),
		TEST(test_windows_of_other_sessions_are_not_listed),
		TEST(test_a_session_of_an_earlier_run),
		TEST(test_later_windows),
		TEST(test_stackd_was_stopped),
		TEST(test_stackd_was_stopped_and_the_host_restarted),
		TEST(test_stackd_was_killed),
		TEST(test_the_host_went_down),
		TEST(test_nothing_is_recorded_any_more),
		TEST(test_the_file_ends),
		TEST(test_the_file_of_another_boot_ends),
		TEST(test_a_window_could_not_be_kept),
		TEST(test_the_clock_was_set_forward),
		TEST(test_the_host_was_suspended),
		TEST(test_the_clock_was_set_and_set_again),
		TEST(test_windows_of_another_boot),
		TEST(test_the_clock_was_set_back),
		TEST(test_drift_is_no_gap),
		TEST(test_a_noted_reason_comes_first),
		TEST(test_a_noted_reason_holds_for_its_time),
		TEST(test_a_note_ends_with_its_run),
		TEST(test_evicted_on_disk),
		TEST(test_evicted_from_memory),
		TEST(test_before_everything),
		TEST(test_before_a_session),
		TEST(test_the_open_window_is_late),
		TEST(test_the_open_window_is_late_and_all_others_on_disk),
		TEST(test_after_a_session),
		TEST(test_an_unreadable_window_is_a_gap),
		TEST(test_an_unreadable_list_is_a_gap),
		TEST(test_gaps_of_one_reason_are_one),
		TEST(test_no_window_at_all),
		TEST(test_compacted_windows_count),
		TEST(test_the_end_that_is_covered),
		TEST(test_an_overlap_is_used_once),
		TEST(test_gaps_are_bounded),
		TEST(test_too_many_windows),
	};
	int failed;

	if (!mkdtemp(directory))
		return 1;
	snprintf(path, sizeof(path), "%s/stackd.db", directory);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	rmdir(directory);
	return failed;
}
