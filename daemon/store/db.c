/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/db.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "common/base.h"

enum {
	BUSY_MS = 2000,
	BUSY_STEP_MS = 5,     /* pause between two attempts in store_db_truncate_log() */
	MAX_LENGTH = 32 << 20 /* MAX_LENGTH: maximum size of a blob or SQL statement in bytes */
};

/*
 * The columns of the tables `windows` and `summaries` except the blob, in the order in which
 * window_row.c reads them.
 */
#define ENTRY                                                                             \
	"id, run, seq, parts, start_ns, end_ns, real_offset_ns, boot_offset_ns, n_rows, " \
	"n_threads, n_opens, bytes, session, lost, probe, sum"

#define SESSION "id, run, number, sum, data, name"

#define INTERNED(TABLE, table)                                                                    \
	[STATEMENT_##TABLE##_FIND] = "SELECT id, sum, data FROM " table " WHERE hash = ?1",       \
	[STATEMENT_##TABLE##_ADD] = "INSERT INTO " table " (hash, sum, data) VALUES (?1, 0, ?2)", \
	[STATEMENT_##TABLE##_HEAL] = "UPDATE " table " SET sum = ?2, data = ?3 WHERE id = ?1",    \
	[STATEMENT_##TABLE##_GET] = "SELECT data, sum FROM " table " WHERE id = ?1"

#define COLLECTED(ROW, ROWS, rows, columns)                                       \
	[STATEMENT_##ROWS##_LAST] = "SELECT ifnull(max(id), 0) FROM " rows,       \
	[STATEMENT_##ROWS##_AFTER] =                                              \
		"SELECT id, length(data)" columns " FROM " rows " WHERE id > ?1 " \
		"AND id <= ?2 ORDER BY id LIMIT ?3",                              \
	[STATEMENT_##ROW##_DROP] = "DELETE FROM " rows " WHERE id = ?1"

/* The tier of a window, or of the windows of a summary. */
#define TIER_OF(table) "(SELECT tier FROM window_tiers WHERE window_tiers.id = " table ".id)"

#define TIER "id, tier, session, start_real_ns, end_real_ns, size, row_limit"

static const char *const sql[STATEMENT_N] = {
	[STATEMENT_BEGIN] = "BEGIN IMMEDIATE",
	[STATEMENT_COMMIT] = "COMMIT",
	[STATEMENT_ROLLBACK] = "ROLLBACK",
	INTERNED(FRAME, "frames"),
	INTERNED(FILE, "files"),
	INTERNED(STACK, "stacks"),
	INTERNED(PROCESS, "processes"),
	[STATEMENT_WINDOW_NEXT] = "SELECT ifnull(max(id), 0) + 1 FROM windows",
	[STATEMENT_WINDOW_ADD] =
		"INSERT INTO windows (" ENTRY ", start_real_ns, end_real_ns, blob_sum, blob) "
		"VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, "
		"?17, ?18, ?19, ?20)",
	[STATEMENT_WINDOW_BLOB] = "SELECT blob, blob_sum FROM windows WHERE id = ?1",
	[STATEMENT_WINDOW_BLOBS_AFTER] =
		"SELECT id, blob_sum, blob, " TIER_OF("windows") " FROM windows WHERE id > ?1 "
								 "ORDER BY id LIMIT ?2",
	[STATEMENT_WINDOW_DROP] = "DELETE FROM windows WHERE id = ?1",
	[STATEMENT_WINDOW_OLDEST] = "SELECT id, end_real_ns FROM windows ORDER BY id LIMIT 1",
	[STATEMENT_WINDOW_NEWEST] = "SELECT id, end_real_ns FROM windows ORDER BY id DESC LIMIT 1",
	[STATEMENT_WINDOW_COUNT] = "SELECT count(*) FROM windows",
	[STATEMENT_WINDOW_LIST] = "SELECT " ENTRY " FROM windows WHERE start_real_ns > ?1 "
				  "AND start_real_ns < ?2 AND end_real_ns > ?3 "
				  "AND (?5 IS NULL OR (probe = ?5 AND session < ?6)) "
				  "ORDER BY start_real_ns DESC LIMIT ?4",
	[STATEMENT_WINDOW_LIST_SESSION] =
		"SELECT " ENTRY " FROM windows WHERE session = ?5 AND session >= 100 AND run = ?6 "
		"AND start_real_ns > ?1 AND start_real_ns < ?2 AND end_real_ns > ?3 "
		"ORDER BY start_real_ns DESC LIMIT ?4",
	[STATEMENT_WINDOW_FIRST] = "SELECT start_real_ns FROM windows WHERE probe = ?1 "
				   "AND session < ?2 ORDER BY start_real_ns LIMIT 1",
	[STATEMENT_WINDOW_AT] = "SELECT " ENTRY " FROM windows WHERE id = ?1",
	[STATEMENT_RUN_ADD] = "INSERT INTO runs (boot_id, version, start_real_ns, alive_real_ns) "
			      "VALUES (?1, ?2, ?3, ?3)",
	[STATEMENT_RUN_ALIVE] = "UPDATE runs SET alive_real_ns = ?2 WHERE id = ?1",
	[STATEMENT_RUN_END] = "UPDATE runs SET alive_real_ns = ?2, is_clean = 1 WHERE id = ?1",
	[STATEMENT_RUN_GET] = "SELECT boot_id, is_clean FROM runs WHERE id = ?1",
	[STATEMENT_RUNS_TRIM] = "DELETE FROM runs WHERE id < "
				"(SELECT run FROM windows ORDER BY id LIMIT 1) - 1",
	[STATEMENT_SESSION_NEXT] = "SELECT ifnull(max(id), 0) + 1 FROM sessions",
	[STATEMENT_SESSION_ADD] = "INSERT INTO sessions (" SESSION ", since_real_ns) "
				  "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
	[STATEMENT_SESSION_FIND] = "SELECT " SESSION " FROM sessions WHERE number = ?1 "
				   "OR name = ?2 ORDER BY id DESC LIMIT 1",
	[STATEMENT_SESSION_LIST] = "SELECT " SESSION " FROM sessions ORDER BY id DESC",
	[STATEMENT_SESSION_LAST] = "SELECT ifnull(max(number), 0) FROM sessions",
	[STATEMENT_SESSION_END] = "SELECT max(end_real_ns) FROM windows WHERE session = ?1 "
				  "AND session >= 100 AND run = ?2",
	[STATEMENT_SESSIONS_TRIM] =
		"DELETE FROM sessions WHERE since_real_ns < ?1 AND NOT EXISTS (SELECT 1 FROM windows "
		"WHERE session = sessions.number AND session >= 100 AND run = sessions.run)",
	[STATEMENT_GAP_ADD] =
		"INSERT INTO gaps (start_real_ns, end_real_ns, reason) VALUES (?1, ?2, ?3)",
	[STATEMENT_GAP_FIND] =
		"SELECT reason, start_real_ns, end_real_ns FROM gaps WHERE start_real_ns < ?2 "
		"AND end_real_ns > ?1 ORDER BY "
		"min(end_real_ns, ?2) - max(start_real_ns, ?1) DESC LIMIT 1",
	[STATEMENT_GAPS_TRIM] = "DELETE FROM gaps WHERE id <= (SELECT max(id) FROM gaps) - ?1",
	[STATEMENT_META_SET] =
		"INSERT OR REPLACE INTO meta (key, number, text) VALUES (?1, ?2, ?3)",
	[STATEMENT_META_GET] = "SELECT number, text FROM meta WHERE key = ?1",
	COLLECTED(STACK, STACKS, "stacks", ", data"),
	COLLECTED(FRAME, FRAMES, "frames", ", data"),
	COLLECTED(FILE, FILES, "files", ""),
	COLLECTED(PROCESS, PROCESSES, "processes", ""),
	[STATEMENT_TIER_ADD] =
		"INSERT OR REPLACE INTO window_tiers (id, tier, length_ns, session, start_real_ns, "
		"end_real_ns, size, row_limit) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
	[STATEMENT_TIER_GET] = "SELECT " TIER " FROM window_tiers WHERE id = ?1",
	[STATEMENT_TIER_DROP] = "DELETE FROM window_tiers WHERE id = ?1",
	[STATEMENT_TIER_MOVE] = "UPDATE window_tiers SET tier = ?2, length_ns = ?3 WHERE id = ?1",
	[STATEMENT_TIER_OLDEST] =
		"SELECT " TIER " FROM window_tiers WHERE tier = ?1 ORDER BY id LIMIT 1",
	[STATEMENT_TIER_NEWEST] =
		"SELECT " TIER " FROM window_tiers WHERE tier = ?1 ORDER BY id DESC LIMIT 1",
	[STATEMENT_TIER_WIDEST] =
		"SELECT " TIER " FROM window_tiers WHERE tier = ?1 AND id > ?2 AND session < 100 "
		"AND (row_limit = 0 OR row_limit > ?3) ORDER BY id LIMIT 1",
	[STATEMENT_TIER_RESIZE] = "UPDATE window_tiers SET size = ?2, row_limit = ?3 WHERE id = ?1",
	[STATEMENT_TIER_GROUP] =
		"SELECT " ENTRY " FROM windows WHERE id IN (SELECT id FROM window_tiers "
		"WHERE tier = ?1 AND session = ?2 AND id >= ?3 ORDER BY id LIMIT ?4) ORDER BY id",
	[STATEMENT_TIER_SUMS] =
		"SELECT tier, count(*), sum(size), max(row_limit) FROM window_tiers GROUP BY tier",
	[STATEMENT_TIER_LENGTHS] =
		"SELECT length_ns, count(*), sum(size), min(start_real_ns), max(end_real_ns) "
		"FROM window_tiers GROUP BY length_ns",
	[STATEMENT_SUMMARY_ADD] =
		"INSERT INTO summaries (" ENTRY ", start_real_ns, end_real_ns, blob_sum, blob, "
		"last_id, windows, size, lacks_ns, facts_sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, "
		"?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25)",
	[STATEMENT_SUMMARY_OF] = "SELECT id, last_id, size FROM summaries WHERE session = ?1 "
				 "AND id <= ?2 ORDER BY id DESC LIMIT 1",
	[STATEMENT_SUMMARY_DROP] = "DELETE FROM summaries WHERE id = ?1",
	[STATEMENT_SUMMARY_LIST] =
		"SELECT " ENTRY ", last_id, windows, lacks_ns, facts_sum FROM summaries "
		"WHERE start_real_ns > ?1 AND start_real_ns < ?2 AND probe = ?3 ORDER BY id",
	[STATEMENT_SUMMARY_BLOB] = "SELECT blob, blob_sum FROM summaries WHERE id = ?1",
	[STATEMENT_SUMMARY_BLOBS_AFTER] =
		"SELECT id, blob_sum, blob, " TIER_OF("summaries") " FROM summaries WHERE id > ?1 "
								   "ORDER BY id LIMIT ?2",
	[STATEMENT_SUMMARY_SUMS] =
		"SELECT tier, sum(summaries.size) FROM summaries JOIN window_tiers "
		"ON window_tiers.id = summaries.id GROUP BY tier",
	[STATEMENT_SUMMARY_WINDOWS] =
		"SELECT ifnull(sum(size), 0) FROM window_tiers WHERE session = ?1 AND id >= ?2 "
		"AND id <= ?3",
	[STATEMENT_PAGES] = "PRAGMA page_count",
	[STATEMENT_FREE_PAGES] = "PRAGMA freelist_count",
};

int store_db_errno(struct store_db *db, int code)
{
	/* SQLite notes the errno of a failed commit only when the statement is reset. */
	int error = errno;

	switch (code & 0xff) {
	case SQLITE_OK:
	case SQLITE_ROW:
	case SQLITE_DONE:
		return 0;
	case SQLITE_FULL:
		return error == ENOSPC || !db->is_limited ? -ENOSPC : -EFBIG;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_FORMAT:
	/*
	 * SQLite also returns these codes if the tables are not those that the database's schema
	 * version promises.
	 */
	case SQLITE_ERROR:
	case SQLITE_MISMATCH:
	case SQLITE_CONSTRAINT:
		return -EUCLEAN;
	case SQLITE_READONLY:
		return -EROFS;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_CANTOPEN:
	case SQLITE_PERM:
		return error ? -error : -EACCES;
	default:
		if (!error && db->handle)
			error = sqlite3_system_errno(db->handle);
		return error == ENOSPC || error == EFBIG ? -error : -EIO;
	}
}

int store_db_run(struct store_db *db, const char *text)
{
	errno = 0;
	return store_db_errno(db, sqlite3_exec(db->handle, text, NULL, NULL, NULL));
}

/* Decides in store_db_truncate_log() whether to go on waiting for another connection. */
struct busy {
	bool (*may_wait)(void *userdata);
	void *userdata;
};

static int on_busy(void *data, int n)
{
	const struct busy *busy = data;

	if (n >= BUSY_MS / BUSY_STEP_MS || !busy->may_wait(busy->userdata))
		return 0;
	usleep(BUSY_STEP_MS * 1000);
	return 1;
}

int store_db_truncate_log(struct store_db *db, bool (*may_wait)(void *userdata), void *userdata)
{
	struct busy busy = { may_wait, userdata };
	int code;

	sqlite3_busy_handler(db->handle, on_busy, &busy);
	/* PRAGMA wal_checkpoint succeeds where readers are in the way, and says so in a row. */
	errno = 0;
	code = sqlite3_wal_checkpoint_v2(db->handle, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
	sqlite3_busy_timeout(db->handle, BUSY_MS);
	return store_db_errno(db, code);
}

int store_db_sync_log(struct store_db *db)
{
	sqlite3_file *log = NULL;
	int code = sqlite3_file_control(db->handle, NULL, SQLITE_FCNTL_JOURNAL_POINTER, &log);

	errno = 0;
	if (code == SQLITE_OK && log && log->pMethods)
		code = log->pMethods->xSync(log, SQLITE_SYNC_NORMAL);
	return store_db_errno(db, code);
}

static uint32_t big_endian(const uint8_t *from)
{
	return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

int store_db_mark_read(struct store_db *db, struct store_db_mark *out)
{
	/* Where SQLite's file format has them. */
	enum { CHANGES = 24, IDENTITY = 68, HEADER = 72 };
	sqlite3_file *file = NULL;
	uint8_t head[HEADER];
	int code;

	/* By SQLite's descriptor: closing another one would give up the locks of this process. */
	errno = 0;
	code = sqlite3_file_control(db->handle, NULL, SQLITE_FCNTL_FILE_POINTER, &file);
	if (code == SQLITE_OK && file && file->pMethods)
		code = file->pMethods->xRead(file, head, sizeof(head), 0);
	/* Zeros are in the place of what is missing. */
	if (code != SQLITE_OK && code != SQLITE_IOERR_SHORT_READ)
		return store_db_errno(db, code);
	*out = (struct store_db_mark){
		.is_database = memcmp(head, "SQLite format 3", 16) == 0,
		.identity = big_endian(head + IDENTITY),
		.changes = big_endian(head + CHANGES),
	};
	return 0;
}

/* Sets *out to the number that a pragma gives. */
static int pragma_read(struct store_db *db, const char *pragma, int *out)
{
	sqlite3_stmt *statement = NULL;
	int code;

	errno = 0;
	code = sqlite3_prepare_v2(db->handle, pragma, -1, &statement, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_step(statement);
	if (code == SQLITE_ROW)
		*out = sqlite3_column_int(statement, 0);
	sqlite3_finalize(statement);
	return store_db_errno(db, code);
}

static int schema_read(struct store_db *db)
{
	return pragma_read(db, "PRAGMA user_version", &db->schema);
}

/* Gives a database an identity that has none. */
static int identity_set(struct store_db *db)
{
	char pragma[64];
	uint32_t number;
	int identity, r = pragma_read(db, "PRAGMA application_id", &identity);

	if (r || identity)
		return r;
	sqlite3_randomness(sizeof(number), &number);
	snprintf(pragma, sizeof(pragma), "PRAGMA application_id = %d", (int)(number >> 1 | 1));
	return store_db_run(db, pragma);
}

/* Writes the tables and the schema version in the open transaction, and commits it. */
static int schema_write(struct store_db *db)
{
	char version[64];
	int r;

	snprintf(version, sizeof(version), "PRAGMA user_version = %d", STORE_SCHEMA);
	r = store_db_run(db, store_schema);
	if (r)
		return r;
	r = store_db_run(db, version);
	if (r)
		return r;
	return store_db_run(db, "COMMIT");
}

/* Creates the tables of a new database. */
static int schema_create(struct store_db *db)
{
	int r = store_db_run(db, "BEGIN IMMEDIATE");

	if (r)
		return r;
	r = schema_write(db);
	if (r)
		store_db_run(db, "ROLLBACK");
	return r;
}

/*
 * Keeps the database within the process's limit on the size of a file. Without this, pages beyond
 * the limit could get into the log, which could then never be emptied.
 */
static int size_limit(struct store_db *db)
{
	struct rlimit limit;
	struct stat st;
	char pragma[64];

	if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur / STORE_PAGE > INT32_MAX)
		return 0;
	db->is_limited = true;
	/* SQLite does not make a database smaller, and could not copy the log to this one. */
	if (stat(sqlite3_db_filename(db->handle, NULL), &st) == 0 &&
	    (rlim_t)st.st_size > limit.rlim_cur)
		return -EFBIG;
	snprintf(pragma, sizeof(pragma), "PRAGMA max_page_count = %d",
		 (int)(limit.rlim_cur / STORE_PAGE));
	return store_db_run(db, pragma);
}

/*
 * Says why a database whose schema is another one is not used: -EPROTONOSUPPORT if it is a
 * stackd's, -EMEDIUMTYPE if another program made it.
 */
static int other_schema(struct store_db *db)
{
	int n = 0;
	int r = pragma_read(db,
			    "SELECT count(*) FROM sqlite_master WHERE type = 'table' "
			    "AND name IN ('runs', 'windows')",
			    &n);

	if (r)
		return r;
	return n == 2 ? -EPROTONOSUPPORT : -EMEDIUMTYPE;
}

/*
 * Sets up the writer's connection. With synchronous = NORMAL, a commit reaches the page cache but
 * not yet the disk: it survives kill -9. The writer makes a checkpoint every 30 s, for which SQLite
 * syncs the log: a power cut loses at most 30 s.
 */
static int writer_setup(struct store_db *db)
{
	/*
	 * Read the schema version before writing anything: the database of another stackd must not
	 * be changed. A new one has version 0.
	 */
	int r = schema_read(db);

	if (r)
		return r;
	if (db->schema && db->schema != STORE_SCHEMA)
		return other_schema(db);
	r = store_db_run(db, "PRAGMA page_size = 4096; PRAGMA auto_vacuum = INCREMENTAL;");
	if (r)
		return r;
	/* In a new database, before there is a log, so that the file has it from the start. */
	r = identity_set(db);
	if (r)
		return r;
	r = store_db_run(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
			     "PRAGMA wal_autocheckpoint = 1000;"
			     "PRAGMA journal_size_limit = 4194304;");
	if (r)
		return r;
	r = size_limit(db);
	if (r || db->schema)
		return r;
	return schema_create(db);
}

static int connect(struct store_db *db, const char *path, int flags)
{
	int r;

	errno = 0;
	r = store_db_errno(db,
			   sqlite3_open_v2(path, &db->handle, flags | SQLITE_OPEN_NOMUTEX, NULL));
	if (r)
		return r;
	sqlite3_busy_timeout(db->handle, BUSY_MS);
	sqlite3_limit(db->handle, SQLITE_LIMIT_LENGTH, MAX_LENGTH);
	return store_db_run(db, "PRAGMA cache_size = -2048; PRAGMA cell_size_check = ON;"
				"PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 0");
}

/*
 * Opens a database as a file that never changes. Used for a directory in which stackd may not
 * create files: SQLite would have to create one there to share the database with a writer. Such a
 * database has no writer, or is a copy.
 */
static int connect_immutable(struct store_db *db, const char *path)
{
	char uri[3 * 4096 + 64] = "file:", *at = uri + strlen(uri);

	for (; *path && at < uri + sizeof(uri) - 32; path++) {
		if (strchr("?#%", *path))
			at += sprintf(at, "%%%02x", (unsigned char)*path);
		else
			*at++ = *path;
	}
	strcpy(at, "?immutable=1");
	return connect(db, uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
}

/*
 * Opens the database for reading. If SQLite cannot share it with a writer, opens it as a file that
 * never changes.
 */
static int reader_open(struct store_db *db, const char *path)
{
	int r = connect(db, path, SQLITE_OPEN_READONLY);

	if (!r)
		r = schema_read(db);
	if (r && r != -EUCLEAN && r != -ENOMEM && access(path, R_OK) == 0) {
		store_db_close(db);
		r = connect_immutable(db, path);
		if (!r)
			r = schema_read(db);
	}
	if (r || db->schema == STORE_SCHEMA || db->schema == STORE_SCHEMA_COPY)
		return r;
	return db->schema ? -EPROTONOSUPPORT : -ENODATA;
}

int store_db_open(struct store_db *db, const char *path, bool is_writer)
{
	int r;

	*db = (struct store_db){};
	if (is_writer) {
		r = connect(db, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
		if (!r)
			r = writer_setup(db);
	} else {
		r = reader_open(db, path);
	}
	if (r)
		store_db_close(db);
	return r;
}

void store_db_close(struct store_db *db)
{
	int schema = db->schema;
	size_t i;

	for (i = 0; i < STATEMENT_N; i++)
		sqlite3_finalize(db->statements[i]);
	sqlite3_close(db->handle);
	*db = (struct store_db){ .schema = schema };
}

/* Returns a prepared statement, reset and with no values bound; NULL, and an errno in *r. */
static sqlite3_stmt *statement_get(struct store_db *db, enum store_statement which, int *r)
{
	sqlite3_stmt **statement = &db->statements[which];

	*r = 0;
	errno = 0;
	if (!*statement)
		*r = store_db_errno(db,
				    sqlite3_prepare_v3(db->handle, sql[which], -1,
						       SQLITE_PREPARE_PERSISTENT, statement, NULL));
	if (*r)
		return NULL;
	sqlite3_reset(*statement);
	sqlite3_clear_bindings(*statement);
	return *statement;
}

static int values_bind(struct store_db *db, sqlite3_stmt *statement, const char *types, va_list ap)
{
	int i, code = SQLITE_OK;
	const void *blob;

	for (i = 1; *types && code == SQLITE_OK; types++, i++) {
		switch (*types) {
		case 'i':
			code = sqlite3_bind_int64(statement, i, va_arg(ap, int64_t));
			break;
		case 't':
			code = sqlite3_bind_text(statement, i, va_arg(ap, const char *), -1,
						 SQLITE_STATIC);
			break;
		case 'b':
			blob = va_arg(ap, const void *);
			code = sqlite3_bind_blob64(statement, i, blob, va_arg(ap, size_t),
						   SQLITE_STATIC);
			break;
		}
	}
	return store_db_errno(db, code);
}

static int query_begin(struct store_db *db, enum store_statement which, sqlite3_stmt **out,
		       const char *types, va_list ap)
{
	int r;

	*out = statement_get(db, which, &r);
	return r ? r : values_bind(db, *out, types, ap);
}

int store_db_query(struct store_db *db, enum store_statement which, sqlite3_stmt **out,
		   const char *types, ...)
{
	va_list ap;
	int r;

	va_start(ap, types);
	r = query_begin(db, which, out, types, ap);
	va_end(ap);
	return r;
}

int store_db_first(struct store_db *db, enum store_statement which, sqlite3_stmt **out,
		   const char *types, ...)
{
	va_list ap;
	int r;

	va_start(ap, types);
	r = query_begin(db, which, out, types, ap);
	va_end(ap);
	if (r)
		return r;
	r = store_db_row(db, *out);
	if (r < 0)
		return r;
	return r ? 0 : -ENOENT;
}

int store_db_change(struct store_db *db, enum store_statement which, const char *types, ...)
{
	sqlite3_stmt *statement;
	va_list ap;
	int r;

	va_start(ap, types);
	r = query_begin(db, which, &statement, types, ap);
	va_end(ap);
	return r ? r : store_db_exec(db, statement);
}

int store_db_row(struct store_db *db, sqlite3_stmt *statement)
{
	int code, r;

	errno = 0;
	code = sqlite3_step(statement);
	if (code == SQLITE_ROW)
		return 1;
	r = store_db_errno(db, code);
	sqlite3_reset(statement);
	return r;
}

int store_db_exec(struct store_db *db, sqlite3_stmt *statement)
{
	int r = store_db_row(db, statement);

	if (r > 0)
		sqlite3_reset(statement);
	return r > 0 ? 0 : r;
}

int store_db_number(struct store_db *db, enum store_statement which, int64_t *out)
{
	sqlite3_stmt *statement;
	int r = store_db_first(db, which, &statement, "");

	if (r)
		return r;
	*out = sqlite3_column_int64(statement, 0);
	sqlite3_reset(statement);
	return 0;
}

int store_db_used_bytes(struct store_db *db, int64_t *out)
{
	int64_t pages, free_pages;
	int r = store_db_number(db, STATEMENT_PAGES, &pages);

	if (r)
		return r;
	r = store_db_number(db, STATEMENT_FREE_PAGES, &free_pages);
	if (r)
		return r;
	*out = (pages - free_pages) * STORE_PAGE;
	return 0;
}
