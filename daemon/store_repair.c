/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/store_row.h"
#include "daemon/store_state.h"
#include "proto/base.h"

/* Numbers tried for one table; a damaged page may make any number look like the last one. */
#define IDS_MAX 4000000

/* How the rows of a table show that they are whole. */
enum guard { GUARD_NONE, GUARD_INTERNED, GUARD_WINDOW };

static const struct table {
	const char *name;
	const char *columns;
	enum guard guard;
} tables[] = {
	{ "runs", "id, boot_id, version, start_real_ns, alive_real_ns, is_clean", GUARD_NONE },
	{ "frames", "id, hash, seen, sum, data", GUARD_INTERNED },
	{ "stacks", "id, hash, seen, sum, data", GUARD_INTERNED },
	{ "processes", "id, hash, seen, sum, data", GUARD_INTERNED },
	{ "gaps", "id, start_real_ns, end_real_ns, reason", GUARD_NONE },
	{ "windows",
	  "id, run, seq, parts, start_ns, end_ns, real_offset_ns, boot_offset_ns, n_rows, "
	  "n_threads, n_opens, bytes, session, lost, probe, sum, start_real_ns, end_real_ns, "
	  "blob_sum, blob",
	  GUARD_WINDOW },
};

/* From the damaged database into the new one, row by row: what is behind a bad page stays there. */
struct salvage {
	sqlite3 *old;
	struct store_db *new;
	sqlite3_stmt *get;
	sqlite3_stmt *put;
	uint64_t windows; /* saved */
	uint64_t lost;	  /* of which only a part could be read */
};

static bool row_is_whole(sqlite3_stmt *row, enum guard guard)
{
	int data = guard == GUARD_WINDOW ? 19 : 4, sum = guard == GUARD_WINDOW ? 18 : 3;
	struct store_entry entry;

	if (guard == GUARD_NONE)
		return true;
	if (guard == GUARD_WINDOW && store_row_read(row, &entry) == -EBADMSG)
		return false;
	return sqlite3_column_int64(row, sum) == store_sum(sqlite3_column_int64(row, 0),
							   sqlite3_column_blob(row, data),
							   (size_t)sqlite3_column_bytes(row, data));
}

static int row_copy(struct salvage *salvage, enum guard guard)
{
	int i, n = sqlite3_column_count(salvage->get);

	if (!row_is_whole(salvage->get, guard)) {
		salvage->lost += guard == GUARD_WINDOW;
		return 0;
	}
	sqlite3_reset(salvage->put);
	for (i = 0; i < n; i++)
		sqlite3_bind_value(salvage->put, i + 1, sqlite3_column_value(salvage->get, i));
	/* A hash that is there already is of a row saved before. */
	if (sqlite3_step(salvage->put) == SQLITE_DONE)
		salvage->windows += guard == GUARD_WINDOW;
	return sqlite3_errcode(salvage->new->handle) == SQLITE_FULL ? -ENOSPC : 0;
}

static bool bounds_get(struct salvage *salvage, const char *table, int64_t *first, int64_t *last)
{
	sqlite3_stmt *statement = NULL;
	char sql[128];
	bool found;

	snprintf(sql, sizeof(sql), "SELECT (SELECT min(id) FROM %s), (SELECT max(id) FROM %s)",
		 table, table);
	found = sqlite3_prepare_v2(salvage->old, sql, -1, &statement, NULL) == SQLITE_OK &&
		sqlite3_step(statement) == SQLITE_ROW &&
		sqlite3_column_type(statement, 1) == SQLITE_INTEGER;
	if (found) {
		*first = sqlite3_column_int64(statement, 0);
		*last = sqlite3_column_int64(statement, 1);
	}
	sqlite3_finalize(statement);
	return found;
}

static int statements_prepare(struct salvage *salvage, const struct table *table)
{
	char get[512], put[640];
	size_t n = 1, i;

	snprintf(get, sizeof(get), "SELECT %s FROM %s WHERE id = ?1", table->columns, table->name);
	for (i = 0; table->columns[i]; i++)
		n += table->columns[i] == ',';
	snprintf(put, sizeof(put), "INSERT OR IGNORE INTO %s (%s) VALUES (", table->name,
		 table->columns);
	for (i = 0; i < n; i++)
		strcat(put, i ? ", ?" : "?");
	strcat(put, ")");
	if (sqlite3_prepare_v2(salvage->old, get, -1, &salvage->get, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(salvage->new->handle, put, -1, &salvage->put, NULL) != SQLITE_OK)
		return -EUCLEAN;
	return 0;
}

static int table_copy(struct salvage *salvage, const struct table *table)
{
	int64_t first, last, id;
	int r = statements_prepare(salvage, table);

	if (!r && bounds_get(salvage, table->name, &first, &last)) {
		if (last > first + IDS_MAX)
			last = first + IDS_MAX;
		for (id = first; id <= last && !r; id++) {
			sqlite3_reset(salvage->get);
			sqlite3_bind_int64(salvage->get, 1, id);
			if (sqlite3_step(salvage->get) == SQLITE_ROW)
				r = row_copy(salvage, table->guard);
		}
	}
	sqlite3_finalize(salvage->get);
	sqlite3_finalize(salvage->put);
	salvage->get = salvage->put = NULL;
	return r;
}

static void tables_copy(struct salvage *salvage)
{
	size_t i;

	if (store_db_run(salvage->new, "BEGIN IMMEDIATE"))
		return;
	for (i = 0; i < ARRAY_SIZE(tables); i++)
		if (table_copy(salvage, &tables[i]) == -ENOSPC)
			break;
	if (store_db_run(salvage->new, "COMMIT"))
		salvage->windows = 0;
}

static int file_move(const char *path, const char *suffix, const char *to)
{
	char from[4200], name[4200];

	snprintf(from, sizeof(from), "%s%s", path, suffix);
	snprintf(name, sizeof(name), "%s%s%s", path, to, suffix);
	return rename(from, name) < 0 ? -errno : 0;
}

/* With its log, in which there may be windows; an older one that was moved aside goes. */
static int files_move(struct store *store)
{
	char shared[4200];
	int r = file_move(store->path, "", ".broken");

	if (r && r != -ENOENT)
		return r;
	snprintf(shared, sizeof(shared), "%s.broken-wal", store->path);
	unlink(shared);
	r = file_move(store->path, "-wal", ".broken");
	snprintf(shared, sizeof(shared), "%s-shm", store->path);
	unlink(shared);
	return r == -ENOENT ? 0 : r;
}

static void salvage_run(struct store *store, struct salvage *salvage)
{
	char path[4200];

	snprintf(path, sizeof(path), "%s.broken", store->path);
	if (sqlite3_open_v2(path, &salvage->old, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK)
		tables_copy(salvage);
	sqlite3_close(salvage->old);
}

int store_repair(struct store *store)
{
	struct salvage salvage = { .new = &store->db };
	int r;

	if (store->intern)
		store_intern_forget(store->intern);
	store_db_close(&store->db);
	r = files_move(store);
	if (!r)
		r = store_db_open(&store->db, store->path, true);
	if (r) {
		store_set_problem(store,
				  "%s: is damaged, and cannot be replaced: %s; windows stay in "
				  "memory only",
				  store->path, strerror(-r));
		return r;
	}
	salvage_run(store, &salvage);
	memset(store->merge_from, 0, sizeof(store->merge_from));
	store_set_notice(store,
			 "%s: was damaged; moved to %s.broken, %" PRIu64
			 " windows were saved, at least %" PRIu64 " are lost",
			 store->path, store->path, salvage.windows, salvage.lost);
	return 0;
}
