/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/collect.h"

#include <errno.h>

#include "daemon/store/bytes.h"
#include "daemon/store/internal.h"
#include "daemon/store/window_row.h"

/*
 * A collection reads tables and deletes unused rows, in short steps. WINDOWS_A_STEP: maximum number
 * of rows of the tables `windows` and `summaries` that one step reads. ROWS_A_STEP: maximum number
 * of rows of any other table.
 */
enum { WINDOWS_A_STEP = 16, ROWS_A_STEP = 2000 };

/*
 * ROW_BYTES: the bytes of a row besides its data: its other columns, its entry in the index, empty
 * space. A window takes WINDOW_BYTES and 1 / WINDOW_PART of its encoded form besides that form:
 * the larger it is, the more of its last page is empty.
 */
enum { ROW_BYTES = 64, WINDOW_BYTES = 320, WINDOW_PART = 16 };

_Static_assert((int)STORE_TIERS_MAX <= (int)ID_SET_TIERS, "a set can tell all tiers apart");

/*
 * For each phase that deletes rows of a table: its SQL statements, and where the numbers of the
 * rows in use are stored.
 */
static const struct phase {
	enum store_statement last; /* finds the highest row number */
	enum store_statement list; /* lists the rows whose number is above a given one */
	enum store_statement drop;
	size_t marks; /* offset in struct store_marks of the set of the table's rows in use */
} phases[COLLECT_PHASES_N] = {
	[COLLECT_STACKS] = { STATEMENT_STACKS_LAST, STATEMENT_STACKS_AFTER, STATEMENT_STACK_DROP,
			     offsetof(struct store_marks, stacks) },
	[COLLECT_FRAMES] = { STATEMENT_FRAMES_LAST, STATEMENT_FRAMES_AFTER, STATEMENT_FRAME_DROP,
			     offsetof(struct store_marks, frames) },
	[COLLECT_FILES] = { STATEMENT_FILES_LAST, STATEMENT_FILES_AFTER, STATEMENT_FILE_DROP,
			    offsetof(struct store_marks, files) },
	[COLLECT_PROCESSES] = { STATEMENT_PROCESSES_LAST, STATEMENT_PROCESSES_AFTER,
				STATEMENT_PROCESS_DROP, offsetof(struct store_marks, processes) },
};

void store_collect_cancel(struct store *store)
{
	struct store_collect *collect = &store->collect;

	if (store->intern)
		store_intern_mark(store->intern, NULL);
	store_marks_clear(&collect->marks);
	*collect = (struct store_collect){};
}

int store_collect_begin(struct store *store)
{
	struct store_collect *collect = &store->collect;
	enum store_collect_phase phase;
	int r;

	if (collect->phase != COLLECT_NONE)
		return 0;
	r = store_db_number(&store->db, STATEMENT_WINDOW_NEXT, &collect->last[COLLECT_WINDOWS]);
	for (phase = COLLECT_STACKS; phase < COLLECT_PHASES_N && !r; phase++)
		r = store_db_number(&store->db, phases[phase].last, &collect->last[phase]);
	if (r)
		return r;
	collect->phase = COLLECT_WINDOWS;
	collect->at = INT64_MIN;
	store->removed_bytes = 0;
	store_intern_mark(store->intern, &collect->marks);
	return 0;
}

/* A window whose stacks and processes are being marked. */
struct marked_window {
	struct store_marks *marks;
	unsigned int tiers; /* its tier, as in struct id_set */
};

static int on_stack(void *userdata, int64_t number)
{
	const struct marked_window *window = userdata;

	return id_set_add(&window->marks->stacks, number, window->tiers);
}

static int on_process(void *userdata, int64_t number)
{
	const struct marked_window *window = userdata;

	return id_set_add(&window->marks->processes, number, window->tiers);
}

/* Counts a row of so many bytes for the tiers whose windows refer to it. */
static void row_count(struct store_collect *collect, unsigned int tiers, int64_t bytes)
{
	double part = (double)bytes / __builtin_popcount(tiers);
	size_t i;

	for (i = 0; i < STORE_TIERS_MAX; i++)
		if (tiers & 1U << i)
			collect->shared[i] += part;
}

/*
 * Marks the stacks and processes of a window as in use. Skips a damaged window: it cannot be read,
 * so nothing needs its rows.
 */
static int window_mark(struct store_collect *collect, sqlite3_stmt *statement)
{
	const void *blob = sqlite3_column_blob(statement, 2);
	size_t size = (size_t)sqlite3_column_bytes(statement, 2);
	uint64_t number = (uint64_t)sqlite3_column_int64(statement, 3);
	size_t tier = number < STORE_TIERS_MAX ? (size_t)number : STORE_TIERS_MAX - 1;
	struct marked_window window = { .marks = &collect->marks, .tiers = 1U << tier };
	int r;

	collect->at = sqlite3_column_int64(statement, 0);
	collect->encoded[tier] += (double)size;
	row_count(collect, window.tiers, WINDOW_BYTES + (int64_t)size / WINDOW_PART);
	if (!blob || sqlite3_column_int64(statement, 1) != store_sum(collect->at, blob, size))
		return 0;
	r = store_blob_numbers(blob, size, on_stack, on_process, &window);
	return r == -EBADMSG ? 0 : r;
}

/*
 * Marks the stacks and processes of the next WINDOWS_A_STEP windows or summaries, which `which`
 * lists, as in use. Returns the number of these windows, 0 after the last one, or a negative errno.
 */
static int windows_step(struct store *store, enum store_statement which)
{
	struct store_collect *collect = &store->collect;
	sqlite3_stmt *statement;
	int r, n = 0;

	r = store_db_query(&store->db, which, &statement, "ii", collect->at,
			   (int64_t)WINDOWS_A_STEP);
	if (r)
		return r;
	while ((r = store_db_row(&store->db, statement)) > 0) {
		r = window_mark(collect, statement);
		if (r)
			break;
		n++;
	}
	sqlite3_reset(statement);
	return r ? r : n;
}

/* Marks as in use the frames of the stack in the statement's current row. */
static int frames_mark(struct store_collect *collect, sqlite3_stmt *statement, unsigned int tiers)
{
	const uint8_t *data = sqlite3_column_blob(statement, 2);
	size_t size = (size_t)sqlite3_column_bytes(statement, 2);
	struct bytes_reader in = { .at = data, .end = data + size };
	uint64_t last = 0, n = store_stack_frames(&in);
	int r = 0;

	for (; n && !in.is_failed && !r; n--) {
		last += (uint64_t)bytes_get_i64(&in);
		if (!in.is_failed)
			r = id_set_add(&collect->marks.frames, (int64_t)last, tiers);
	}
	return r;
}

/* Marks as in use the file of the frame in the statement's current row. */
static int file_mark(struct store_collect *collect, sqlite3_stmt *statement, unsigned int tiers)
{
	const uint8_t *data = sqlite3_column_blob(statement, 2);
	size_t size = (size_t)sqlite3_column_bytes(statement, 2);
	struct bytes_reader in = { .at = data, .end = data + size };
	int64_t file = store_frame_file(&in);

	return file ? id_set_add(&collect->marks.files, file, tiers) : 0;
}

/*
 * Examines the next rows of the table of the current phase. Stores the numbers of the rows that are
 * not in use in ids[], and returns how many these are, or a negative errno. Sets *n_out to the
 * number of examined rows.
 */
static int unused_list(struct store *store, int64_t *ids, size_t *n_out)
{
	struct store_collect *collect = &store->collect;
	const struct phase *phase = &phases[collect->phase];
	const struct id_set *marks =
		(const struct id_set *)(const void *)((const char *)&collect->marks + phase->marks);
	sqlite3_stmt *statement;
	int r, n = 0, failed = 0;
	unsigned int tiers;

	*n_out = 0;
	r = store_db_query(&store->db, phase->list, &statement, "iii", collect->at,
			   collect->last[collect->phase], (int64_t)ROWS_A_STEP);
	if (r)
		return r;
	while (!failed && (r = store_db_row(&store->db, statement)) > 0) {
		collect->at = sqlite3_column_int64(statement, 0);
		++*n_out;
		tiers = id_set_tiers(marks, collect->at);
		if (!tiers) {
			ids[n++] = collect->at;
			continue;
		}
		row_count(collect, tiers, sqlite3_column_int64(statement, 1) + ROW_BYTES);
		if (collect->phase == COLLECT_STACKS)
			failed = frames_mark(collect, statement, tiers);
		else if (collect->phase == COLLECT_FRAMES)
			failed = file_mark(collect, statement, tiers);
	}
	sqlite3_reset(statement);
	if (failed)
		return failed;
	return r < 0 ? r : n;
}

static int rows_drop(struct store *store, const int64_t *ids, int n)
{
	bool is_alone = sqlite3_get_autocommit(store->db.handle);
	int r = is_alone ? store_db_run(&store->db, "BEGIN IMMEDIATE") : 0, i;

	for (i = 0; i < n && !r; i++)
		r = store_db_change(&store->db, phases[store->collect.phase].drop, "i", ids[i]);
	if (!is_alone)
		return r;
	if (!r)
		r = store_db_run(&store->db, "COMMIT");
	if (r && !sqlite3_get_autocommit(store->db.handle))
		store_db_run(&store->db, "ROLLBACK");
	return r;
}

/*
 * Examines the next rows of the table of the current phase, and deletes those that are not in use.
 * Returns the number of examined rows, or a negative errno.
 */
static int rows_step(struct store *store)
{
	int64_t ids[ROWS_A_STEP];
	size_t looked;
	int r, n = unused_list(store, ids, &looked);

	if (n < 0)
		return n;
	r = n ? rows_drop(store, ids, n) : 0;
	return r ? r : (int)looked;
}

/* Deletes the rows of clients' sessions and of runs of stackd that no window needs any more. */
static int sessions_trim(struct store *store)
{
	int64_t id, end;
	int r = store_row_end(&store->db, STATEMENT_WINDOW_OLDEST, &id, &end);

	if (r)
		return r == -ENOENT ? 0 : r;
	r = store_db_change(&store->db, STATEMENT_SESSIONS_TRIM, "i", end);
	return r ? r : store_db_change(&store->db, STATEMENT_RUNS_TRIM, "");
}

static int phase_step(struct store *store)
{
	struct store_collect *collect = &store->collect;
	int r;

	if (collect->phase == COLLECT_WINDOWS)
		r = windows_step(store, STATEMENT_WINDOW_BLOBS_AFTER);
	else if (collect->phase == COLLECT_SUMMARIES)
		r = windows_step(store, STATEMENT_SUMMARY_BLOBS_AFTER);
	else
		r = rows_step(store);
	if (r < 0)
		return r;
	if (collect->marks.is_failed)
		return -ENOMEM;
	if (r > 0)
		return 1;
	collect->at = INT64_MIN;
	if (++collect->phase == COLLECT_STACKS)
		store_intern_forget_unmarked(store->intern);
	if (collect->phase < COLLECT_PHASES_N)
		return 1;
	r = store_tiers_weigh(store, collect->shared, collect->encoded);
	return r ? r : sessions_trim(store);
}

int store_collect_step(struct store *store)
{
	int r;

	if (store->collect.phase == COLLECT_NONE)
		return 0;
	r = phase_step(store);
	if (r <= 0)
		store_collect_cancel(store);
	return r;
}
