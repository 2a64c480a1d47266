/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base.h"
#include "daemon/store/internal.h"

enum {
	PAGE = 4096,
	EVICT_FULL = 64,   /* windows dropped when the disk is full, at the most */
	EVICT_SHARE = 8,   /* and no more than one in so many of those that there are, */
	EVICT_LEAST = 4,   /* but so many */
	EVICT_AT_ONCE = 4, /* windows dropped for one, at the least */
	TRIM_AT_ONCE = 16, /* windows dropped for one, between looks at what they referred to */
	TRIM_MOST = 64,	   /* the same, dropped for several */
	TRIM_SHARE = 8,	   /* and no more than one in so many, */
	TRIM_LEAST = 4,	   /* but so many */
	TOUCH_SHARE = 4,   /* of the windows there are, as many rows may be there in vain */
};

/* Of max_size: the log beside the database, and pages that are not quite full. */
#define RESERVE (6U << 20)

static int trim(struct store *store, enum store_statement which, int64_t before)
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

/* The oldest window's number and end; -ENOENT when there is none. */
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

/* As it is on disk: the most that a window there may have been written with. */
/* text may be NULL. */
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

static int level_note(struct store *store, size_t level)
{
	int r = meta_set(store, "touch", (int64_t)level, NULL);

	if (!r)
		store->touch_noted = (int)level;
	return r;
}

/* What is not on disk: one by an older version has windows of any. */
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

/* The most of any window from that one on. */
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
		/* Nothing goes for want of knowing better. */
		store->touched[STORE_TOUCH_LEVELS - 1] = INT64_MAX;
	}
}

/* Drops what no window left can refer to, nor the one that is about to be written. */
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
	/* A stack that was told of since then told of its frames as often as windows did then. */
	level = level_since(store, before);
	frames = before - ((int64_t)STORE_TOUCH_LEAST << level);
	memset(&store->touched[level + 1], 0,
	       (STORE_TOUCH_LEVELS - 1 - level) * sizeof(store->touched[0]));
	store_intern_forget_before(store->intern, before, frames);
	r = (int)level == store->touch_noted ? 0 : level_note(store, level);
	if (!r)
		r = trim(store, STATEMENT_STACKS_TRIM, before);
	if (!r)
		r = trim(store, STATEMENT_FRAMES_TRIM, frames);
	if (!r)
		r = trim(store, STATEMENT_PROCESSES_TRIM, before);
	if (!r)
		r = trim(store, STATEMENT_SESSIONS_TRIM, end);
	return r ? r : trim(store, STATEMENT_RUNS_TRIM, 0);
}

/* Where there are few windows, often: else all go for the sake of what nobody refers to. */
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

/* A few for each that is written: a clock that is wrong for a while must not cost all history. */
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
		/* Where processes come and go, most of the room is not the windows' own. */
		if (++n % TRIM_AT_ONCE == 0 && store->evicted)
			r = interned_trim(store);
		if (r)
			return r;
	}
	return r;
}

/* A database that was larger once gives pages back bit by bit. */
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

/* What takes the room may be a moment's file of somebody else: history does not go all at once. */
static int64_t evict_count(struct store *store)
{
	int64_t windows = 0;

	store_db_number(&store->db, STATEMENT_WINDOW_COUNT, &windows);
	windows /= EVICT_SHARE;
	return windows < EVICT_LEAST ? EVICT_LEAST : windows > EVICT_FULL ? EVICT_FULL : windows;
}

/* The log is started again first: on a full disk even a deletion has to be written somewhere. */
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
	/* Once more, so that the pages set free are there to be used. */
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
