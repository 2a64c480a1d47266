/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base.h"
#include "daemon/store/internal.h"

enum {
	PAGE = 4096, /* size of a page of the database in bytes */
	/* When the disk is full, 1/8 of all windows are evicted at once; at least 4, at most 64. */
	EVICT_FULL_MOST = 64,
	EVICT_FULL_SHARE = 8,
	EVICT_FULL_LEAST = 4,
	/*
	 * While one window is written, at most this many windows are evicted for max_age. For
	 * max_size, windows are evicted in groups of this size.
	 */
	EVICT_AT_ONCE = 4,
	/*
	 * Unused rows are deleted whenever 1/8 of all windows, but at least 4 and at most 64, were
	 * evicted. While windows are evicted to make room for one new window, unused rows are also
	 * deleted after every 16 of them.
	 */
	TRIM_AT_ONCE = 16,
	TRIM_MOST = 64,
	TRIM_SHARE = 8,
	TRIM_LEAST = 4,
	/*
	 * `touch` (see intern.h) is at most 1/4 of the number of windows, but never below
	 * STORE_TOUCH_LEAST
	 */
	TOUCH_SHARE = 4,
};

/* The bytes of max_size that are reserved for the database's log and for half-empty pages. */
#define RESERVE (6U << 20)

static int rows_trim(struct store *store, enum store_statement which, int64_t before)
{
	sqlite3_stmt *statement;
	int r;

	statement = store_db_statement(&store->db, which, &r);
	if (r)
		return r;
	if (before)
		sqlite3_bind_int64(statement, 1, before);
	return store_db_exec(&store->db, statement);
}

/*
 * Finds the id and the end of the oldest window. Returns 0, -ENOENT (no windows) or another errno.
 */
static int oldest_get(struct store *store, int64_t *id_out, int64_t *end_out)
{
	sqlite3_stmt *statement;
	int r;

	statement = store_db_statement(&store->db, STATEMENT_WINDOW_OLDEST, &r);
	if (r)
		return r;
	r = store_db_step(&store->db, statement);
	if (r <= 0)
		return r ? r : -ENOENT;
	*id_out = sqlite3_column_int64(statement, 0);
	*end_out = sqlite3_column_int64(statement, 1);
	sqlite3_reset(statement);
	return 0;
}

/* Sets a row of the table `meta`; `text` may be NULL. */
static int meta_set(struct store *store, const char *name, int64_t value, const char *text)
{
	sqlite3_stmt *statement;
	int r;

	statement = store_db_statement(&store->db, STATEMENT_META_SET, &r);
	if (r)
		return r;
	sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
	sqlite3_bind_int64(statement, 2, value);
	sqlite3_bind_text(statement, 3, text, -1, SQLITE_STATIC);
	return store_db_exec(&store->db, statement);
}

/*
 * Stores `level` in the table `meta`, as the highest touch level (see intern.h) at which a window
 * that is on disk was written.
 */
static int level_note(struct store *store, size_t level)
{
	int r = meta_set(store, "touch", (int64_t)level, NULL);

	if (!r)
		store->touch_noted = (int)level;
	return r;
}

/*
 * Returns the touch level that level_note() stored; the highest possible level if none is stored.
 */
static size_t level_get(struct store *store)
{
	int64_t level = STORE_TOUCH_LEVELS - 1;
	sqlite3_stmt *statement;
	int r;

	statement = store_db_statement(&store->db, STATEMENT_META_GET, &r);
	if (r)
		return STORE_TOUCH_LEVELS - 1;
	sqlite3_bind_text(statement, 1, "touch", -1, SQLITE_STATIC);
	if (store_db_step(&store->db, statement) > 0) {
		level = sqlite3_column_int64(statement, 0);
		sqlite3_reset(statement);
	}
	return level < 0 || level >= STORE_TOUCH_LEVELS ? STORE_TOUCH_LEVELS - 1 : (size_t)level;
}

/*
 * Returns the highest touch level (see intern.h) at which the window number `window` or a later
 * window was written.
 */
static size_t level_since(const struct store *store, int64_t window)
{
	size_t level = STORE_TOUCH_LEVELS - 1;

	while (level && store->touched[level] < window)
		level--;
	return level;
}

int store_touch(struct store *store, int64_t window, int64_t *touch_out)
{
	int64_t touch = STORE_TOUCH_LEAST;
	size_t level = 0;

	while (level + 1 < STORE_TOUCH_LEVELS &&
	       2 * touch * TOUCH_SHARE <= (int64_t)store->stats.windows) {
		touch *= 2;
		level++;
	}
	store->touched[level] = window;
	*touch_out = touch;
	level = level_since(store, 1);
	return (int)level > store->touch_noted ? level_note(store, level) : 0;
}

void store_touch_begin(struct store *store)
{
	sqlite3_stmt *statement;
	int r;

	memset(store->touched, 0, sizeof(store->touched));
	store->touch_noted = -1;
	statement = store_db_statement(&store->db, STATEMENT_WINDOW_NEWEST, &r);
	if (!r)
		r = store_db_step(&store->db, statement);
	if (r > 0) {
		store->touched[level_get(store)] = sqlite3_column_int64(statement, 0);
		sqlite3_reset(statement);
	} else if (r < 0) {
		/*
		 * The newest window is not known: assume the highest level, so that no row in use
		 * is deleted.
		 */
		store->touched[STORE_TOUCH_LEVELS - 1] = INT64_MAX;
	}
}

/*
 * Deletes the rows of stacks, frames, processes, sessions and runs to which no window refers,
 * neither one on disk nor the one that is being written.
 */
static int interned_trim(struct store *store)
{
	int64_t oldest, end = INT64_MIN, before, frames;
	size_t level;
	int r = oldest_get(store, &oldest, &end);

	if (r == -ENOENT)
		oldest = store_intern_window(store->intern);
	else if (r)
		return r;
	store->evicted = 0;
	before = oldest - ((int64_t)STORE_TOUCH_LEAST << level_since(store, oldest));
	if (before <= 0)
		return 0;
	/*
	 * When the `seen` of a stack is set, the `seen` of its frames may still be new enough, and
	 * is left as it is. So the `seen` of a frame may be lower than that of its stack, by up to
	 * one `touch`.
	 */
	level = level_since(store, before);
	frames = before - ((int64_t)STORE_TOUCH_LEAST << level);
	memset(&store->touched[level + 1], 0,
	       (STORE_TOUCH_LEVELS - 1 - level) * sizeof(store->touched[0]));
	store_intern_forget_before(store->intern, before, frames);
	r = (int)level == store->touch_noted ? 0 : level_note(store, level);
	if (!r)
		r = rows_trim(store, STATEMENT_STACKS_TRIM, before);
	if (!r)
		r = rows_trim(store, STATEMENT_FRAMES_TRIM, frames);
	if (!r)
		r = rows_trim(store, STATEMENT_PROCESSES_TRIM, before);
	if (!r)
		r = rows_trim(store, STATEMENT_SESSIONS_TRIM, end);
	return r ? r : rows_trim(store, STATEMENT_RUNS_TRIM, 0);
}

/* True if enough windows (see TRIM_SHARE) were evicted since unused rows were last deleted. */
static bool is_trim_due(const struct store *store)
{
	uint64_t every = store->stats.windows / TRIM_SHARE;

	if (every > TRIM_MOST)
		every = TRIM_MOST;
	return store->evicted >= (every < TRIM_LEAST ? TRIM_LEAST : every);
}

static int oldest_drop(struct store *store, int64_t id, int64_t end_ns, const char *reason,
		       uint64_t *counter)
{
	sqlite3_stmt *statement;
	int r;

	statement = store_db_statement(&store->db, STATEMENT_WINDOW_DROP, &r);
	if (r)
		return r;
	sqlite3_bind_int64(statement, 1, id);
	r = store_db_exec(&store->db, statement);
	if (!r)
		r = meta_set(store, "evicted", end_ns, reason);
	if (r)
		return r;
	store->evicted++;
	pthread_mutex_lock(&store->lock);
	(*counter)++;
	pthread_mutex_unlock(&store->lock);
	return is_trim_due(store) ? interned_trim(store) : 0;
}

/*
 * Evicts windows older than max_age, but only a few per call: a clock that is wrong for a moment
 * must not cost the whole history.
 */
static int evict_age(struct store *store, int64_t now_ns)
{
	int64_t id, end;
	unsigned int n = 0;
	int r = 0;

	while (n++ < EVICT_AT_ONCE && (r = oldest_get(store, &id, &end)) == 0 &&
	       end < now_ns - store->max_age_ns) {
		r = oldest_drop(store, id, end, "older than [store] max_age",
				&store->stats.evicted_age);
		if (r)
			return r;
	}
	return r == -ENOENT ? 0 : r;
}

static int used_bytes(struct store *store, int64_t *out)
{
	int64_t pages, free_pages;
	int r = store_db_number(&store->db, STATEMENT_PAGES, &pages);

	if (!r)
		r = store_db_number(&store->db, STATEMENT_FREE_PAGES, &free_pages);
	if (!r)
		*out = (pages - free_pages) * PAGE;
	return r;
}

static int evict_size(struct store *store, size_t size)
{
	int64_t limit = (int64_t)store->max_size - (int64_t)(RESERVE + 4 * size), used, id, end;
	unsigned int n = 0;
	int r;

	while ((r = used_bytes(store, &used)) == 0 && (used > limit || n % EVICT_AT_ONCE)) {
		r = oldest_get(store, &id, &end);
		if (r)
			return r == -ENOENT ? interned_trim(store) : r;
		r = oldest_drop(store, id, end, "dropped for [store] max_size",
				&store->stats.evicted_size);
		if (r)
			return r;
		/*
		 * Windows with many short-lived processes leave many unused rows: delete these
		 * rows, too.
		 */
		if (++n % TRIM_AT_ONCE == 0 && store->evicted)
			r = interned_trim(store);
		if (r)
			return r;
	}
	return r;
}

/* Makes the file at most 512 unused pages shorter if it is larger than max_size. */
static int vacuum(struct store *store)
{
	int64_t pages;
	int r = store_db_number(&store->db, STATEMENT_PAGES, &pages);

	if (r || pages * PAGE <= (int64_t)store->max_size)
		return r;
	return store_db_run(&store->db, "PRAGMA incremental_vacuum(512)");
}

int store_evict(struct store *store, int64_t now_ns, size_t size)
{
	int r = evict_age(store, now_ns);

	if (!r)
		r = evict_size(store, size);
	return r ? r : vacuum(store);
}

/*
 * Returns how many windows to evict when the disk is full. Not all at once: perhaps another
 * program's temporary file fills the disk, and only for a while.
 */
static int64_t evict_count(struct store *store)
{
	int64_t windows = 0;

	store_db_number(&store->db, STATEMENT_WINDOW_COUNT, &windows);
	windows /= EVICT_FULL_SHARE;
	if (windows < EVICT_FULL_LEAST)
		return EVICT_FULL_LEAST;
	return windows > EVICT_FULL_MOST ? EVICT_FULL_MOST : windows;
}

/*
 * Restarts the database's log first: a deletion needs space in the log, and the full disk has no
 * space to lengthen it.
 */
int store_evict_some(struct store *store)
{
	int64_t id, end, i, n = evict_count(store);
	int r;

	store_db_run(&store->db, "PRAGMA wal_checkpoint(RESTART)");
	r = store_db_run(&store->db, "BEGIN IMMEDIATE");
	for (i = 0; i < n && !r; i++) {
		r = oldest_get(store, &id, &end);
		if (r)
			break;
		r = oldest_drop(store, id, end, "dropped: the disk was full",
				&store->stats.evicted_size);
	}
	if (!r || (r == -ENOENT && i > 0))
		r = store_db_run(&store->db, "COMMIT");
	if (r && !sqlite3_get_autocommit(store->db.handle))
		store_db_run(&store->db, "ROLLBACK");
	if (r)
		return r;
	/*
	 * Restart the log again: this moves the deletions to the database file, whose pages can
	 * then be reused.
	 */
	return store_db_run(&store->db, "PRAGMA wal_checkpoint(RESTART)");
}

uint64_t store_file_bytes(const char *path, const char *suffix)
{
	char name[4200];
	struct stat st;

	snprintf(name, sizeof(name), "%s%s", path, suffix);
	return stat(name, &st) == 0 ? (uint64_t)st.st_size : 0;
}

void store_count(struct store *store)
{
	int64_t windows = 0, id, oldest = INT64_MIN, newest = INT64_MIN;
	sqlite3_stmt *statement;
	uint64_t bytes = store_file_bytes(store->path, "") + store_file_bytes(store->path, "-wal");
	int r;

	store_db_number(&store->db, STATEMENT_WINDOW_COUNT, &windows);
	oldest_get(store, &id, &oldest);
	statement = store_db_statement(&store->db, STATEMENT_WINDOW_NEWEST, &r);
	if (!r && store_db_step(&store->db, statement) > 0) {
		newest = sqlite3_column_int64(statement, 1);
		sqlite3_reset(statement);
	}
	pthread_mutex_lock(&store->lock);
	store->stats.windows = (uint64_t)windows;
	store->stats.oldest_ns = oldest;
	store->stats.newest_ns = newest;
	store->stats.bytes = bytes;
	pthread_mutex_unlock(&store->lock);
}
