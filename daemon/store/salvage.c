/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base.h"
#include "common/write_error.h"
#include "daemon/base/log.h"
#include "daemon/store/internal.h"
#include "daemon/store/window_row.h"

/*
 * The maximum number of row numbers that are tried in one table: if the table is damaged, its last
 * row number may be wrong and huge.
 */
#define IDS_MAX 4000000

/* Copying a table stops after this many consecutive row numbers without a readable row. */
#define MISSES_MAX 20000

/*
 * New rows get numbers that are higher by this much than the highest saved one. Saved windows may
 * refer to lost rows, whose numbers must not be used again.
 */
#define NUMBERS_SKIPPED "100000000"

/*
 * The largest size of a database in bytes: twice the highest max_size that [store] allows. A larger
 * size in a file's header is due to damage.
 */
#define LENGTH_MAX (INT64_C(2) << 40)

/*
 * The kinds of checksum that the rows of a table can have. A row with a wrong checksum is damaged.
 */
enum guard { GUARD_NONE, GUARD_INTERNED, GUARD_WINDOW };

static const struct table {
	const char *name;
	const char *columns;
	enum guard guard;
} tables[] = {
	{ "runs", "id, boot_id, version, start_real_ns, alive_real_ns, is_clean", GUARD_NONE },
	{ "frames", "id, hash, seen, sum, data", GUARD_INTERNED },
	{ "files", "id, hash, seen, sum, data", GUARD_INTERNED },
	{ "stacks", "id, hash, seen, sum, data", GUARD_INTERNED },
	{ "processes", "id, hash, seen, sum, data", GUARD_INTERNED },
	{ "sessions", "id, run, number, sum, data, name, since_real_ns", GUARD_INTERNED },
	{ "gaps", "id, start_real_ns, end_real_ns, reason", GUARD_NONE },
	{ "windows",
	  "id, run, seq, parts, start_ns, end_ns, real_offset_ns, boot_offset_ns, n_rows, "
	  "n_threads, n_opens, bytes, session, lost, probe, sum, start_real_ns, end_real_ns, "
	  "blob_sum, blob",
	  GUARD_WINDOW },
};

/* State of copying the damaged database to a new one, row by row; unreadable rows are left out. */
struct salvage {
	sqlite3 *old; /* the damaged database */
	struct store_db *new;
	/* a statement on the database `old`: reads a row of the table that is being copied */
	sqlite3_stmt *get;
	/* a statement on the database `new`: inserts the row that `get` has read */
	sqlite3_stmt *put;
	uint64_t windows; /* number of windows copied */
	uint64_t lost;	  /* number of windows left out because of a wrong checksum */
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
	int i, r, n = sqlite3_column_count(salvage->get);

	if (!row_is_whole(salvage->get, guard)) {
		salvage->lost += guard == GUARD_WINDOW;
		return 0;
	}
	sqlite3_reset(salvage->put);
	for (i = 0; i < n; i++)
		sqlite3_bind_value(salvage->put, i + 1, sqlite3_column_value(salvage->get, i));
	errno = 0;
	/* INSERT OR IGNORE skips a row whose id or hash was copied before, without an error. */
	if (sqlite3_step(salvage->put) == SQLITE_DONE)
		salvage->windows += guard == GUARD_WINDOW;
	r = store_db_errno(salvage->new, sqlite3_errcode(salvage->new->handle));
	return store_is_full(r) ? r : 0;
}

/*
 * Returns the smallest row number of a table if `which` is "min", the largest if `which` is "max";
 * `fallback` on error.
 */
static int64_t bound_get(struct salvage *salvage, const char *table, const char *which,
			 int64_t fallback)
{
	sqlite3_stmt *statement = NULL;
	int64_t bound = fallback;
	char sql[96];

	snprintf(sql, sizeof(sql), "SELECT %s(id) FROM %s", which, table);
	if (sqlite3_prepare_v2(salvage->old, sql, -1, &statement, NULL) == SQLITE_OK &&
	    sqlite3_step(statement) == SQLITE_ROW &&
	    sqlite3_column_type(statement, 0) == SQLITE_INTEGER)
		bound = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return bound;
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

static int rows_copy(struct salvage *salvage, const struct table *table)
{
	int64_t first = bound_get(salvage, table->name, "min", 1), id;
	int64_t last = bound_get(salvage, table->name, "max", first + IDS_MAX), misses = 0;
	int r = 0;

	if (last > first + IDS_MAX)
		last = first + IDS_MAX;
	for (id = first; id <= last && !r && misses < MISSES_MAX; id++) {
		sqlite3_reset(salvage->get);
		sqlite3_bind_int64(salvage->get, 1, id);
		if (sqlite3_step(salvage->get) == SQLITE_ROW) {
			r = row_copy(salvage, table->guard);
			misses = 0;
		} else {
			misses++;
		}
	}
	return r;
}

static int table_copy(struct salvage *salvage, const struct table *table)
{
	int r = statements_prepare(salvage, table);

	if (!r)
		r = rows_copy(salvage, table);
	sqlite3_finalize(salvage->get);
	sqlite3_finalize(salvage->put);
	salvage->get = salvage->put = NULL;
	return r;
}

/*
 * Adds a row with a very high number to each table, so that no later row gets the number of a lost
 * row. Otherwise a saved stack could show a frame that was written later.
 */
static int numbers_skip(struct store_db *db)
{
#define SKIP(table)                                                                               \
	"INSERT INTO " table " (id, hash, seen, sum, data)"                                       \
	" SELECT ifnull(max(id), 0) + " NUMBERS_SKIPPED ", ifnull(max(id), 0) + " NUMBERS_SKIPPED \
	", 9223372036854775807, 0, x'' FROM " table ";"
	return store_db_run(
		db,
		SKIP("frames") SKIP("files") SKIP("stacks") SKIP(
			"processes") "INSERT INTO runs (id, boot_id, version, start_real_ns, alive_real_ns)"
				     " SELECT ifnull(max(id), 0) + " NUMBERS_SKIPPED
				     ", '', '', 0, 0"
				     " FROM runs");
#undef SKIP
}

static void tables_copy(struct salvage *salvage)
{
	size_t i;

	if (store_db_run(salvage->new, "BEGIN IMMEDIATE"))
		return;
	for (i = 0; i < ARRAY_SIZE(tables); i++)
		if (store_is_full(table_copy(salvage, &tables[i])))
			break;
	if (numbers_skip(salvage->new) || store_db_run(salvage->new, "COMMIT"))
		salvage->windows = 0;
}

static int file_move(const char *path, const char *suffix, const char *to)
{
	char from[4200], name[4200];

	snprintf(from, sizeof(from), "%s%s", path, suffix);
	snprintf(name, sizeof(name), "%s%s%s", path, to, suffix);
	return rename(from, name) < 0 ? -errno : 0;
}

/*
 * Renames the database to FILE.broken, together with its log, which may have windows, too. Replaces
 * the FILE.broken of an earlier repair.
 */
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

/*
 * Appends zeros to a database file that is shorter than its header says. SQLite does not read any
 * part of a file that is too short; with the zeros, only the missing pages are unreadable.
 */
static void file_lengthen(const char *path)
{
	uint8_t pages[4];
	int64_t wanted;
	struct stat st;
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && pread(fd, pages, sizeof(pages), 28) == sizeof(pages)) {
		wanted = ((int64_t)pages[0] << 24 | pages[1] << 16 | pages[2] << 8 | pages[3]) *
			 STORE_PAGE;
		if (st.st_size < wanted && wanted <= LENGTH_MAX && ftruncate(fd, wanted) < 0)
			log_err(-errno, "%s: cannot lengthen the file", path);
	}
	close(fd);
}

static void salvage_run(struct store *store, struct salvage *salvage)
{
	char path[4200];

	snprintf(path, sizeof(path), "%s.broken", store->path);
	file_lengthen(path);
	if (sqlite3_open_v2(path, &salvage->old, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK)
		tables_copy(salvage);
	sqlite3_close(salvage->old);
}

int store_salvage(struct store *store)
{
	struct salvage salvage = { .new = &store->db };
	int r;

	store_collect_cancel(store);
	if (store->intern)
		store_intern_forget(store->intern);
	store_db_close(&store->db);
	r = files_move(store);
	if (!r)
		r = store_db_open(&store->db, store->path, true);
	if (r) {
		store_set_problem(store, STORE_PROBLEM_FILE,
				  "%s: is damaged, and cannot be replaced: %s; windows stay in "
				  "memory only",
				  store->path, write_error_text(r));
		return r;
	}
	salvage_run(store, &salvage);
	r = store_tiers_open(store);
	store_file_opened(store);
	store_set_notice(store, STORE_NOTICE_DAMAGED,
			 "%s: was damaged; moved to %s.broken, %" PRIu64
			 " windows were saved, at least %" PRIu64 " are lost",
			 store->path, store->path, salvage.windows, salvage.lost);
	return r;
}
