/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "build_config.h"
#include "common/base.h"
#include "common/write_error.h"
#include "daemon/store/internal.h"
#include "daemon/store/reader.h"

/*
 * The ends of the names that a database gets which was overwritten, is damaged, or has another
 * schema, whose number follows.
 */
#define OVERWRITTEN ".overwritten"
#define DAMAGED	    ".broken"
#define OTHER	    ".schema"

/* The size of a buffer for the name of a database that was moved out of the way. */
#define ASIDE_MAX (PATH_MAX + 48)

/* When opening the file failed, the writer tries again after this time. */
#define OPEN_AGAIN_NS (30 * NS_PER_S)

/* How often the writer looks whether a query has ended that reads files which were moved. */
#define MOVED_AGAIN_NS NS_PER_S

/*
 * Returns a hint for the message about the error `r`: what to change in the systemd unit. "" if the
 * unit is not the likely cause.
 */
static const char *permission_hint(int r)
{
	if ((r == -EROFS || r == -EACCES || r == -EPERM) && getenv("INVOCATION_ID"))
		return " (a directory besides the unit's own needs ReadWritePaths= in it)";
	return "";
}

/* Says why the database cannot be opened for writing. */
static const char *open_error_text(int r)
{
	return r == -EMEDIUMTYPE ? "another program made this database" : write_error_text(r);
}

/* Creates the directory of the database, but not the directories above it. */
static int directory_make(struct store *store)
{
	_cleanup_(freep) char *directory = strdup(store->path);
	char *slash = directory ? strrchr(directory, '/') : NULL;
	int r;

	if (!slash || slash == directory)
		return directory ? 0 : -ENOMEM;
	*slash = '\0';
	if (mkdir(directory, 0750) == 0 || errno == EEXIST)
		return 0;
	r = -errno;
	store_set_problem(store, STORE_PROBLEM_FILE, "%s: %s%s; windows stay in memory only",
			  directory, write_error_text(r), permission_hint(r));
	return r;
}

static void owner_read(int fd, char *out, size_t size)
{
	ssize_t n = pread(fd, out, size - 1, 0);

	out[n > 0 ? n : 0] = '\0';
	out[strcspn(out, "\n")] = '\0';
}

static int lock_take(struct store *store)
{
	char owner[32] = "";
	int fd, r;

	if (store->lock_fd >= 0)
		return 0;
	fd = open(store->lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (fd < 0) {
		r = -errno;
		store_set_problem(store, STORE_PROBLEM_FILE,
				  "%s: %s%s; windows stay in memory only", store->lock_path,
				  write_error_text(r), permission_hint(r));
		return r;
	}
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		r = -errno;
		owner_read(fd, owner, sizeof(owner));
		close(fd);
		store_set_problem(store, STORE_PROBLEM_FILE,
				  "%s: in use by another stackd (pid %s); windows stay in "
				  "memory only",
				  store->path, owner[0] ? owner : "unknown");
		return r;
	}
	if (ftruncate(fd, 0) < 0 || dprintf(fd, "%d\n", getpid()) < 0) {
		/* Ignore the failure: the pid in the lock file is only for messages. */
	}
	store->lock_fd = fd;
	return 0;
}

/* Creates the file, readable for its owner and group only; SQLite gives its log the same mode. */
static void database_make(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);

	closep(&fd);
}

/* True if the database has the row of this run of stackd: it is opened again. */
static bool run_is_known(struct store *store)
{
	struct store_reader *reader;
	struct store_run run;
	bool is_known;

	if (!store->run || store_reader_borrow(&store->db, &reader))
		return false;
	is_known = !store_reader_run(reader, (uint64_t)store->run, &run) &&
		   strcmp(run.boot_id, store->boot_id) == 0;
	store_reader_close(reader);
	return is_known;
}

static int run_begin(struct store *store)
{
	int r;

	/* Windows in memory have this number; with another one, queries would find them twice. */
	if (run_is_known(store))
		return 0;
	r = store_db_change(&store->db, STATEMENT_RUN_ADD, "tti", store->boot_id, STACKD_VERSION,
			    clock_ns(CLOCK_REALTIME));
	if (!r)
		store->run = sqlite3_last_insert_rowid(store->db.handle);
	return r;
}

/*
 * Checks the structure of the whole database with its indexes. Without this check, SQLite would
 * find a damaged page only when it reads the page, and would never find an index entry that leads
 * to a wrong row. Returns 0, -EUCLEAN if the database is damaged, or another errno.
 */
static int file_check(struct store *store)
{
	sqlite3_stmt *statement = NULL;
	const unsigned char *text;
	int code, r;

	errno = 0;
	code = sqlite3_prepare_v2(store->db.handle, "PRAGMA integrity_check(1)", -1, &statement,
				  NULL);
	r = store_db_errno(&store->db, code);
	if (!r) {
		r = store_db_row(&store->db, statement);
		text = r > 0 ? sqlite3_column_text(statement, 0) : NULL;
		r = r < 0 ? r : text && strcmp((const char *)text, "ok") == 0 ? 0 : -EUCLEAN;
	}
	sqlite3_finalize(statement);
	return r;
}

/* The ends of the names of the store's files, as in struct store. */
static const char *const suffixes[STORE_FILES] = { "", "-wal", "-shm", ".lock" };

/* Finds which file is at the path of the store's file number i. Zeros: none. */
static struct store_file_id file_identify(const struct store *store, size_t i)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s%s", store->path, suffixes[i]);
	if (stat(path, &st) < 0)
		return (struct store_file_id){};
	return (struct store_file_id){ st.st_dev, st.st_ino };
}

/* Notes which files are open. */
static void files_note(struct store *store)
{
	for (size_t i = 0; i < STORE_FILES; i++)
		store->files[i] = file_identify(store, i);
	if (store_db_mark_read(&store->db, &store->mark))
		store->mark = (struct store_db_mark){};
}

/*
 * Moves the database to its path with `end` or, if that is taken, with ".last" behind it, which
 * replaces a former one: the first one has the longest past, the last one the newest. Writes the
 * new name to `to`. Returns 0 or a negative errno.
 */
static int database_move(const struct store *store, const char *end, char to[ASIDE_MAX])
{
	int r;

	snprintf(to, ASIDE_MAX, "%s%s", store->path, end);
	r = renameat2(AT_FDCWD, store->path, AT_FDCWD, to, RENAME_NOREPLACE);
	if (r < 0 && errno == EEXIST) {
		snprintf(to, ASIDE_MAX, "%s%s.last", store->path, end);
		r = rename(store->path, to);
	}
	return r < 0 ? -errno : 0;
}

/* Moves the log of a database that was moved to `to` after it: it may have windows, too. */
static int log_move(const struct store *store, const char *to)
{
	char from[PATH_MAX], log[ASIDE_MAX + sizeof("-wal")];

	snprintf(from, sizeof(from), "%s-shm", store->path);
	unlink(from);
	snprintf(from, sizeof(from), "%s-wal", store->path);
	snprintf(log, sizeof(log), "%s-wal", to);
	return rename(from, log) < 0 && errno != ENOENT ? -errno : 0;
}

/*
 * Moves a closed database, of which `what` says why it is not used, and its log to the name `to`
 * for it, see database_move(). Returns 0 or a negative errno.
 */
static int database_leave(struct store *store, const char *what, const char *end,
			  char to[ASIDE_MAX])
{
	int r = database_move(store, end, to);

	if (!r)
		r = log_move(store, to);
	if (r)
		store_set_problem(store, STORE_PROBLEM_FILE,
				  "%s: %s, and cannot be moved to %s: %s; windows stay in memory "
				  "only",
				  store->path, what, to, write_error_text(r));
	return r;
}

/* Moves a damaged database out of the way, as database_leave() does. */
static int damaged_leave(struct store *store)
{
	char to[ASIDE_MAX];
	int r = database_leave(store, "is damaged", DAMAGED, to);

	if (r)
		return r;
	store_set_notice(store, STORE_NOTICE_DAMAGED,
			 "%s: was damaged, and moved to %s; later windows are in a new file. "
			 "stackd(8) says how to copy what can be read of it",
			 store->path, to);
	return 0;
}

/* Moves a database of another schema version out of the way, as database_leave() does. */
static int other_leave(struct store *store)
{
	const int schema = store->db.schema;
	const char *what = schema == STORE_SCHEMA_COPY
				   ? "is a copy of a damaged one, for --serve-only"
				   : "was written by another version of stackd";
	char end[32], to[ASIDE_MAX];
	int r;

	snprintf(end, sizeof(end), OTHER "%d", schema);
	r = database_leave(store, what, end, to);
	if (r)
		return r;
	store_set_notice(store, STORE_NOTICE_MOVED,
			 "%s: %s (schema %d, this one has %d), and moved to %s; later windows are "
			 "in a new file",
			 store->path, what, schema, STORE_SCHEMA, to);
	return 0;
}

/* Opens the database, which is made if there is none. Returns 0 or a negative errno. */
static int database_try(struct store *store)
{
	int r;

	database_make(store->path);
	r = store_db_open(&store->db, store->path, true);
	return r ? r : file_check(store);
}

static int database_open(struct store *store)
{
	int r = database_try(store);

	if (r == -EUCLEAN || r == -EPROTONOSUPPORT) {
		store_db_close(&store->db);
		r = r == -EUCLEAN ? damaged_leave(store) : other_leave(store);
		if (r)
			return r;
		r = database_try(store);
	}
	if (!r)
		return 0;
	store_set_problem(store, STORE_PROBLEM_FILE, "%s: %s%s; windows stay in memory only",
			  store->path, open_error_text(r), permission_hint(r));
	store_db_close(&store->db);
	return r;
}

/* Prepares the open database for writing: the names of stacks, the row of this run, the tiers. */
static int database_begin(struct store *store)
{
	int r = store_intern_new(&store->db, &store->intern);

	if (r)
		return r;
	r = run_begin(store);
	if (r)
		return r;
	return store_tiers_open(store);
}

int store_file_open(struct store *store)
{
	int64_t last_session;
	int r;

	r = directory_make(store);
	if (r)
		return r;
	r = lock_take(store);
	if (r)
		return r;
	r = database_open(store);
	if (r)
		return r;
	r = database_begin(store);
	if (r) {
		store_set_problem(store, STORE_PROBLEM_FILE, "%s: %s; windows stay in memory only",
				  store->path, write_error_text(r));
		store_file_close(store);
		return r;
	}
	if (store_db_number(&store->db, STATEMENT_SESSION_LAST, &last_session))
		last_session = 0;
	files_note(store);
	store_set_problem(store, STORE_PROBLEM_FILE, NULL);
	pthread_mutex_lock(&store->lock);
	store->stats.is_writing = true;
	store->stats.last_session = (uint64_t)last_session;
	store->stats.run = (uint64_t)store->run;
	pthread_mutex_unlock(&store->lock);
	store_count(store);
	return 0;
}

void store_file_close(struct store *store)
{
	pthread_mutex_lock(&store->lock);
	store->stats.is_writing = false;
	pthread_mutex_unlock(&store->lock);
	store_collect_cancel(store);
	store->intern = store_intern_free(store->intern);
	store_db_close(&store->db);
	closep(&store->lock_fd);
	store->lock_fd = -1;
}

int store_file_try(struct store *store)
{
	int r = store_file_open(store);

	store->open_next_ns = r == -EBUSY ? 0 : clock_ns(CLOCK_MONOTONIC) + OPEN_AGAIN_NS;
	return r;
}

int store_file_renew(struct store *store)
{
	int r;

	store_file_close(store);
	r = damaged_leave(store);
	return r ? r : store_file_open(store);
}

/*
 * Removes the log of a database that is gone from its path, and the index of the log. A query may
 * still use them; a new database at the path would share them with it.
 */
static void log_unlink(const struct store *store)
{
	char path[PATH_MAX];
	struct stat st;

	/* Another database that was put there may have a log of its own. */
	if (stat(store->path, &st) == 0 && st.st_size > 0)
		return;
	for (size_t i = 1; i <= 2; i++)
		if (snprintf(path, sizeof(path), "%s%s", store->path, suffixes[i]) <
		    (int)sizeof(path))
			unlink(path);
}

/* Returns the number of the first file at whose path is another file than the open one, or none. */
static size_t file_moved(const struct store *store)
{
	struct store_file_id now;
	size_t i;

	for (i = 0; i < STORE_FILES; i++) {
		now = file_identify(store, i);
		if (now.dev != store->files[i].dev || now.inode != store->files[i].inode)
			break;
	}
	return i;
}

static bool waits_never(void *userdata)
{
	return false;
}

/*
 * SQLite leaves the log of a file that was moved as it is, and a new database would delete it: the
 * newest windows have to be copied from it to the file first. Returns 0, or a negative errno if
 * they were not copied; -EAGAIN if that is still to be tried, as a query reads the database.
 */
static int log_rescue(struct store *store, size_t moved)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);
	char who[LOCK_OWNER_TEXT];
	int r;

	if (now < store->moved_next_ns)
		return -EAGAIN;
	r = store_db_truncate_log(&store->db, waits_never, NULL);
	/* Without the database, there is nothing to which the log could be copied. */
	if (r != -EBUSY || !moved)
		return r;
	store->moved_next_ns = now + MOVED_AGAIN_NS;
	store_lock_owner(store, STORE_LOCK_READ, who);
	store_set_problem(
		store, STORE_PROBLEM_MOVED,
		"%s%s: was moved, removed or replaced; windows go to the old file as long "
		"as %s reads the database",
		store->path, suffixes[moved], who);
	return -EAGAIN;
}

/*
 * True if the open file was emptied, or another one copied over it: it is no database any more, has
 * the identity of another one, or is an earlier state of this one.
 */
static bool file_is_overwritten(struct store *store)
{
	const struct store_db_mark was = store->mark;

	if (store_db_mark_read(&store->db, &store->mark) || !was.is_database)
		return false;
	return !store->mark.is_database || store->mark.changes < was.changes ||
	       store->mark.identity != was.identity;
}

/* Closes the database without touching its file and log, so that another one can be opened. */
static void file_leave(struct store *store)
{
	/* Closing it would delete the log at the path, which may be that of another database. */
	sqlite3_db_config(store->db.handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	store_file_close(store);
	store->open_next_ns = 0;
}

/*
 * Moves a file that was overwritten out of the way, to a name that is free: its log is that of the
 * database before, and queries that have the file open would share the index of the log with those
 * of a new database. Where it cannot be moved, it and its log stay as they are, and it is opened as
 * after a start.
 */
static void overwritten_leave(struct store *store)
{
	char path[ASIDE_MAX];
	int r;

	file_leave(store);
	r = database_move(store, OVERWRITTEN, path);
	if (r) {
		store_set_notice(store, STORE_NOTICE_MOVED,
				 "%s: was overwritten while stackd used it, and cannot be moved to "
				 "%s: %s",
				 store->path, path, write_error_text(r));
		return;
	}
	log_unlink(store);
	store_set_notice(store, STORE_NOTICE_MOVED,
			 "%s: was overwritten while stackd used it; what was put there is in %s, "
			 "its windows of before are gone, later ones are in a new file",
			 store->path, path);
}

void store_file_follow(struct store *store)
{
	size_t moved = store->db.handle ? file_moved(store) : STORE_FILES;
	int r = moved < STORE_FILES ? log_rescue(store, moved) : 0;

	if (r == -EAGAIN)
		return;
	store->moved_next_ns = 0;
	store_set_problem(store, STORE_PROBLEM_MOVED, NULL);
	if (moved == STORE_FILES) {
		if (store->db.handle && file_is_overwritten(store))
			overwritten_leave(store);
		return;
	}
	file_leave(store);
	log_unlink(store);
	store_set_notice(store, STORE_NOTICE_MOVED,
			 "%s%s: was moved, removed or replaced while stackd used it; %s%s",
			 store->path, suffixes[moved],
			 moved ? "it is made again"
			       : "its windows are gone, later ones are in the file at the path",
			 r ? "; the last ones before may be lost, as a query was reading" : "");
}
