/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_DB_H
#define STACKD_DAEMON_STORE_DB_H

/*
 * Opens a connection to the database, creates the tables, prepares each SQL statement
 * when it is first used, and translates errors of SQLite to errnos. A connection belongs to the
 * writer or to one reader; one thread at a time.
 */

#include <stdbool.h>
#include <stdint.h>

#include <sqlite3.h>

/*
 * The version of the database: raised with each change of the tables, or of the bytes of a row or a
 * window. A database of another version is neither read nor written.
 */
enum {
	STORE_SCHEMA = 10,
	/*
	 * A copy of what could be read of a damaged database. It is read only: new rows would get
	 * the numbers of lost ones, which others still refer to.
	 */
	STORE_SCHEMA_COPY = -STORE_SCHEMA,
};

enum store_statement {
	STATEMENT_BEGIN,
	STATEMENT_COMMIT,
	STATEMENT_ROLLBACK,
	STATEMENT_FRAME_FIND,
	STATEMENT_FRAME_ADD,
	STATEMENT_FRAME_HEAL,
	STATEMENT_FRAME_GET,
	STATEMENT_FILE_FIND,
	STATEMENT_FILE_ADD,
	STATEMENT_FILE_HEAL,
	STATEMENT_FILE_GET,
	STATEMENT_STACK_FIND,
	STATEMENT_STACK_ADD,
	STATEMENT_STACK_HEAL,
	STATEMENT_STACK_GET,
	STATEMENT_PROCESS_FIND,
	STATEMENT_PROCESS_ADD,
	STATEMENT_PROCESS_HEAL,
	STATEMENT_PROCESS_GET,
	STATEMENT_WINDOW_NEXT,
	STATEMENT_WINDOW_ADD,
	STATEMENT_WINDOW_BLOB,
	STATEMENT_WINDOW_BLOBS_AFTER,
	STATEMENT_WINDOW_DROP,
	STATEMENT_WINDOW_OLDEST,
	STATEMENT_WINDOW_NEWEST,
	STATEMENT_WINDOW_COUNT,
	STATEMENT_WINDOW_LIST,
	STATEMENT_WINDOW_LIST_SESSION,
	STATEMENT_WINDOW_FIRST,
	STATEMENT_WINDOW_AT,
	STATEMENT_RUN_ADD,
	STATEMENT_RUN_ALIVE,
	STATEMENT_RUN_END,
	STATEMENT_RUN_GET,
	STATEMENT_RUNS_TRIM,
	STATEMENT_SESSION_NEXT,
	STATEMENT_SESSION_ADD,
	STATEMENT_SESSION_FIND,
	STATEMENT_SESSION_LIST,
	STATEMENT_SESSION_LAST,
	STATEMENT_SESSION_END,
	STATEMENT_SESSIONS_TRIM,
	STATEMENT_GAP_ADD,
	STATEMENT_GAP_FIND,
	STATEMENT_GAPS_TRIM,
	STATEMENT_META_SET,
	STATEMENT_META_GET,
	STATEMENT_STACKS_LAST,
	STATEMENT_STACKS_AFTER,
	STATEMENT_STACK_DROP,
	STATEMENT_FRAMES_LAST,
	STATEMENT_FRAMES_AFTER,
	STATEMENT_FRAME_DROP,
	STATEMENT_FILES_LAST,
	STATEMENT_FILES_AFTER,
	STATEMENT_FILE_DROP,
	STATEMENT_PROCESSES_LAST,
	STATEMENT_PROCESSES_AFTER,
	STATEMENT_PROCESS_DROP,
	STATEMENT_TIER_ADD,
	STATEMENT_TIER_GET,
	STATEMENT_TIER_DROP,
	STATEMENT_TIER_MOVE,
	STATEMENT_TIER_OLDEST,
	STATEMENT_TIER_NEWEST,
	STATEMENT_TIER_WIDEST,
	STATEMENT_TIER_RESIZE,
	STATEMENT_TIER_GROUP,
	STATEMENT_TIER_SUMS,
	STATEMENT_TIER_LENGTHS,
	STATEMENT_SUMMARY_ADD,
	STATEMENT_SUMMARY_OF,
	STATEMENT_SUMMARY_DROP,
	STATEMENT_SUMMARY_LIST,
	STATEMENT_SUMMARY_BLOB,
	STATEMENT_SUMMARY_BLOBS_AFTER,
	STATEMENT_SUMMARY_SUMS,
	STATEMENT_SUMMARY_WINDOWS,
	STATEMENT_PAGES,
	STATEMENT_FREE_PAGES,
	STATEMENT_N,
};

/* Size of a page of the database in bytes. */
enum { STORE_PAGE = 4096 };

struct store_db {
	sqlite3 *handle;
	sqlite3_stmt *statements[STATEMENT_N];
	int schema;	 /* schema version of the open file */
	bool is_limited; /* the process has a limit on the size of a file */
};

/*
 * Opens the database at `path`; a writer also creates the file and the tables that are missing.
 * Returns 0; -EUCLEAN: the file is damaged; -EPROTONOSUPPORT: its schema is not
 * STORE_SCHEMA, and db->schema has its version; -ENODATA: a reader found a file without tables; or
 * another errno. After a failure `db` is closed.
 */
int store_db_open(struct store_db *db, const char *path, bool is_writer);
void store_db_close(struct store_db *db);

/*
 * Facts of the header of a database's file, which change only when the log is copied to the file. A
 * file that another one was copied over, or that was emptied, has other ones.
 */
struct store_db_mark {
	bool is_database;
	uint32_t identity; /* a random number */
	uint32_t changes;  /* counts up */
};

/*
 * Reads the mark from the file that is open, without SQLite's cache and its log. Returns 0 or a
 * negative errno.
 */
int store_db_mark_read(struct store_db *db, struct store_db_mark *out);

/* Runs SQL and discards its results. Returns 0 or a negative errno. */
int store_db_run(struct store_db *db, const char *sql);

/*
 * Copies the write-ahead log to the database and truncates it. While another connection is in the
 * way, asks may_wait() every few milliseconds whether to go on waiting, which it does for 2 s at
 * most. Returns 0, -EBUSY (the log stays, as a connection still reads or writes) or another errno.
 */
int store_db_truncate_log(struct store_db *db, bool (*may_wait)(void *userdata), void *userdata);

/* Syncs the write-ahead log: what was committed survives a power cut. Returns 0 or an errno. */
int store_db_sync_log(struct store_db *db);

/* Defined in schema.c: the SQL that makes the tables of a new database. */
extern const char store_schema[];

/*
 * Sets *out to a prepared statement, for store_db_row(). `types` has a letter for each value that
 * is bound to it, beginning with ?1: i: an int64_t (a number of another type needs a cast); t: a
 * const char *, NULL: none; b: a const void * and its size, a size_t; -: none. The values must live
 * as long as rows are read. Returns 0 or a negative errno.
 */
int store_db_query(struct store_db *db, enum store_statement which, sqlite3_stmt **out,
		   const char *types, ...);

/*
 * Does the same, and steps to the first row; the caller resets the statement when it has read it.
 * Returns 0; -ENOENT if there is no row; or another errno.
 */
int store_db_first(struct store_db *db, enum store_statement which, sqlite3_stmt **out,
		   const char *types, ...);

/* Binds values as store_db_query() does, and runs the statement. Returns 0 or a negative errno. */
int store_db_change(struct store_db *db, enum store_statement which, const char *types, ...);

/*
 * Steps the statement once. Returns 1 if it has a row; otherwise resets the statement and returns 0
 * (no more rows) or a negative errno.
 */
int store_db_row(struct store_db *db, sqlite3_stmt *statement);

/* Runs a statement to which values were bound, and of which no rows are needed. Returns 0 or a
 * negative errno. */
int store_db_exec(struct store_db *db, sqlite3_stmt *statement);

/*
 * Runs a statement and sets *out to the first column of its first row. Returns 0; -ENOENT if there
 * is no row; or another errno.
 */
int store_db_number(struct store_db *db, enum store_statement which, int64_t *out);

/*
 * Sets *out to the size in bytes of all pages of the database that are in use. Returns 0 or a
 * negative errno.
 */
int store_db_used_bytes(struct store_db *db, int64_t *out);

/*
 * Returns the negative errno for a result code of SQLite; 0 if the code is not an error. The caller
 * has set errno to 0 before it called SQLite.
 */
int store_db_errno(struct store_db *db, int code);

#endif
