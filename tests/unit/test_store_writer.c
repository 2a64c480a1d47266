/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Holds the writer of the store to what it promises: windows stay for max_age, what was not synced
 * is not said to be, and a database in which a write finds damage is replaced.
 */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/store/store.h"
#include "tests/unit/sql.h"

#define LENGTH_NS (5 * NS_PER_S)
#define REAL_NS	  (INT64_C(1700000000) * NS_PER_S)

/* TRIES: how often, a millisecond apart, a test looks before it gives up. */
enum { WINDOWS = 20, KEPT = 16, TRIES = 30000 };

static char directory[32], path[64];
static _Atomic int64_t now_ns;	 /* the time of both clocks */
static _Atomic int64_t slept_ns; /* the host was suspended for so long */
static _Atomic bool fails;	 /* syncing the database fails */
static _Atomic int n_failed;	 /* how often it has failed */
static _Atomic int n_log_syncs;	 /* how often another file was synced: the log */

static int64_t now(clockid_t clock)
{
	return now_ns + (clock == CLOCK_REALTIME ? REAL_NS : 0) +
	       (clock == CLOCK_MONOTONIC ? 0 : slept_ns);
}

/* True if the file is the database itself, and not its log. */
static bool is_database(int fd)
{
	char link[40], name[128];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, name, sizeof(name));
	return n == (ssize_t)strlen(path) && !memcmp(name, path, strlen(path));
}

/* Only the database fails to be synced: windows can still be written to the log. */
static int sync_or_fail(long number, int fd)
{
	n_log_syncs += !is_database(fd);
	if (!fails || !is_database(fd))
		return (int)syscall(number, fd);
	n_failed++;
	errno = EIO;
	return -1;
}

/* SQLite calls these two in place of those of libc. */
int fsync(int fd);
int fsync(int fd)
{
	return sync_or_fail(SYS_fsync, fd);
}

int fdatasync(int fd);
int fdatasync(int fd)
{
	return sync_or_fail(SYS_fdatasync, fd);
}

static int set_up(void **state)
{
	strcpy(directory, "/tmp/test_writer.XXXXXX");
	now_ns = slept_ns = 0;
	fails = false;
	n_failed = 0;
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/db", directory);
	return 0;
}

static int tear_down(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", directory);
	return system(command);
}

/* Windows stay in the first tier for keep_ns. */
static struct store *store_begin_tiers(size_t n_tiers, int64_t keep_ns, int64_t max_age_ns,
				       int64_t sync_every_ns)
{
	struct store_options options = {
		.path = path,
		.max_size = 64 << 20,
		.max_age_ns = max_age_ns,
		.tiers = { { LENGTH_NS, keep_ns, 50 }, { 10 * LENGTH_NS, INT64_MAX / 4, 50 } },
		.n_tiers = n_tiers,
		.boot_id = "test",
		.sync_every_ns = sync_every_ns,
		.now = now,
	};
	struct store *store;

	assert_int_equal(store_start(&options, &store), 0);
	store_wait(store, 10 * NS_PER_S);
	return store;
}

static struct store *store_begin(int64_t max_age_ns, int64_t sync_every_ns)
{
	return store_begin_tiers(1, INT64_MAX / 4, max_age_ns, sync_every_ns);
}

static struct store_stats stats_of(struct store *store)
{
	struct store_stats stats;

	store_stats(store, &stats);
	return stats;
}

static int64_t end_of(size_t n)
{
	return REAL_NS + (int64_t)(n + 1) * LENGTH_NS;
}

/* Hands the store window number n. */
static void window_hand(struct store *store, size_t n)
{
	struct window *window = window_new();

	window->seq = n + 1;
	window->session = 1;
	window->start_ns = (int64_t)n * LENGTH_NS;
	window->end_ns = window->start_ns + LENGTH_NS;
	window->real_offset_ns = REAL_NS;
	window_seal(window);
	now_ns = window->end_ns;
	store_add(store, window);
	window_unref(window);
}

/* Hands the store window number n, and waits until it has been written and counted, or dropped. */
static struct store_stats window_write(struct store *store, size_t n)
{
	uint64_t before = stats_of(store).written + stats_of(store).dropped_write;
	struct store_stats stats;

	window_hand(store, n);
	do {
		usleep(1000);
		stats = stats_of(store);
	} while (stats.written + stats.dropped_write == before ||
		 (stats.written > before && stats.newest_ns != end_of(n)));
	return stats;
}

/* A window is evicted when its end is older than max_age, and not before. */
static void test_windows_are_kept_for_max_age(void **state)
{
	struct store *store = store_begin(KEPT * LENGTH_NS, NS_PER_S);
	struct store_stats stats;
	uint64_t evicted = 0;
	int quiet = 0;

	for (size_t n = 0; n < WINDOWS; n++)
		window_write(store, n);
	/* The store evicts four windows a second. */
	now_ns += LENGTH_NS / 100;
	do {
		usleep(1000);
		stats = stats_of(store);
		now_ns += (int64_t)(stats.evicted_age - evicted) * NS_PER_S / 4;
		evicted = stats.evicted_age;
	} while (evicted < WINDOWS - KEPT);
	/* The writer looks for work once a second. */
	while (quiet < 1500) {
		usleep(1000);
		stats = stats_of(store);
		quiet = stats.is_working ? 0 : quiet + 1;
	}
	assert_int_equal(stats.evicted_age, WINDOWS - KEPT);
	assert_int_equal(stats.evicted_size, 0);
	assert_null(store_stop(store));
	assert_int_equal(sql_number(path, "SELECT count(*) FROM windows"), KEPT);
	assert_int_equal(sql_number(path, "SELECT min(seq) FROM windows"), WINDOWS - KEPT + 1);
}

/* The first tier, too, keeps none that is older than max_age; the time of a suspend counts. */
static void test_max_age_is_that_of_all_tiers(void **state)
{
	struct store *store = store_begin_tiers(2, INT64_MAX / 4, 50 * LENGTH_NS, NS_PER_S);
	struct store_stats stats = {};

	window_write(store, 0);
	window_write(store, 1);
	window_write(store, 10); /* begins the next window of the second tier */
	slept_ns = 100 * LENGTH_NS;
	while (!stats.evicted_age) {
		usleep(1000);
		stats = stats_of(store);
	}
	assert_null(store_stop(store));
	assert_int_equal(sql_number(path, "SELECT count(*) FROM windows"), 1);
	assert_int_equal(sql_number(path, "SELECT seq FROM windows"), 11);
}

/* A window that is alone in its time moves to the next tier as it is, and takes its bytes along. */
static void test_a_window_moves_with_its_bytes(void **state)
{
	struct store *store = store_begin_tiers(2, LENGTH_NS, INT64_MAX / 4, 1);
	struct store_stats stats;

	window_write(store, 0);
	window_write(store, 100);
	do {
		usleep(1000);
		stats = stats_of(store);
	} while (!stats.tiers[1].windows);
	assert_int_equal(stats.tiers[0].windows, 1);
	assert_true(stats.tiers[1].bytes > 0);
	assert_null(store_stop(store));
}

/* The time up to which windows are on disk for sure moves only when a sync has succeeded. */
static void test_what_was_not_synced_is_not_said_to_be(void **state)
{
	struct store *store = store_begin(INT64_MAX / 4, 1);

	window_write(store, 0);
	while (stats_of(store).synced_ns != end_of(0))
		usleep(1000);
	fails = true;
	window_write(store, 1);
	while (n_failed < 2)
		usleep(1000);
	assert_int_equal(stats_of(store).written, 2);
	assert_int_equal(stats_of(store).synced_ns, end_of(0));
	assert_int_equal(stats_of(store).synced_always_ns[PROBE_OFFCPU], end_of(0));
	fails = false;
	while (stats_of(store).synced_ns != end_of(1))
		usleep(1000);
	assert_null(store_stop(store));
}

/* Overwrites the first page of a table, and makes the writer read it again. */
static void table_damage(const char *name)
{
	static const uint8_t garbage[512] = { 0xff, 0xff, 0xff, 0xff };
	int64_t size, page;
	char sql[96];
	FILE *file;

	sql_run(path, "PRAGMA wal_checkpoint(TRUNCATE)");
	size = sql_number(path, "PRAGMA page_size");
	snprintf(sql, sizeof(sql), "SELECT rootpage FROM sqlite_master WHERE name = '%s'", name);
	page = sql_number(path, sql);
	file = fopen(path, "r+");
	assert_non_null(file);
	assert_int_equal(fseek(file, (long)((page - 1) * size), SEEK_SET), 0);
	assert_int_equal(fwrite(garbage, sizeof(garbage), 1, file), 1);
	fclose(file);
	sql_run(path,
		"INSERT INTO gaps (start_real_ns, end_real_ns, reason) VALUES (1, 2, 'test')");
}

/* The window whose write finds damage is written to a new database, and the old one is kept. */
static void test_a_write_that_finds_damage_begins_a_new_file(void **state)
{
	char old[sizeof(path) + 16];
	struct store *store = store_begin(INT64_MAX / 4, 1);
	struct store_stats stats;

	window_write(store, 0);
	while (stats_of(store).synced_ns != end_of(0))
		usleep(1000);
	table_damage("windows");
	stats = window_write(store, 1);
	assert_int_equal(stats.dropped_write, 0);
	assert_int_equal(stats.written, 2);
	assert_true(strlen(stats.notices[STORE_NOTICE_DAMAGED].text) > 0);
	assert_int_equal(stats.newest_ns, end_of(1));
	stats = window_write(store, 2);
	assert_int_equal(stats.written, 3);
	assert_string_equal(stats.problems[STORE_PROBLEM_FILE], "");
	assert_null(store_stop(store));
	assert_int_equal(sql_number(path, "SELECT count(*) FROM windows"), 2);
	assert_int_equal(sql_number(path, "SELECT max(run) FROM windows"), 1);
	snprintf(old, sizeof(old), "%s.broken", path);
	assert_int_equal(access(old, R_OK), 0);
}

/* A window that is joined from several counts as so many, written or not. */
static void test_each_part_of_a_window_counts(void **state)
{
	const uint32_t parts[] = { 3, 1, 5 };
	struct store_stats stats;
	struct store *store;
	size_t n;

	snprintf(path, sizeof(path), "%s/none/none/db", directory);
	store = store_begin(INT64_MAX / 4, NS_PER_S);
	for (n = 0; n < ARRAY_SIZE(parts); n++) {
		struct window *window = window_new();

		window->session = 1;
		window->merged_from = parts[n];
		window->start_ns = (int64_t)n * LENGTH_NS;
		window->end_ns = window->start_ns + LENGTH_NS;
		window_seal(window);
		store_add(store, window);
		window_unref(window);
	}
	for (n = 0; n < TRIES && stats_of(store).dropped_write < 3 + 1 + 5; n++)
		usleep(1000);
	stats = stats_of(store);
	assert_int_equal(stats.dropped_write, 3 + 1 + 5);
	assert_int_equal(stats.written, 0);
	store_stop(store);
}

/*
 * While another connection has locked the database, windows wait; those that the queue turns away
 * are lost for the reason that is true.
 */
static void test_windows_wait_for_a_lock(void **state)
{
	struct store *store = store_begin(INT64_MAX / 4, NS_PER_S);
	sqlite3 *other;
	size_t n;

	window_write(store, 0);
	other = sql_open(path);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	window_hand(store, 1);
	while (!stats_of(store).problems[STORE_PROBLEM_FILE][0])
		usleep(1000);
	assert_non_null(strstr(stats_of(store).problems[STORE_PROBLEM_FILE], "locked by"));
	for (n = 2; n < STORE_QUEUE_MAX + 4; n++)
		window_hand(store, n);
	assert_int_equal(stats_of(store).dropped_queue, 2);
	assert_int_equal(sqlite3_close(other), SQLITE_OK);
	while (stats_of(store).written < STORE_QUEUE_MAX + 2)
		usleep(1000);
	assert_int_equal(stats_of(store).dropped_write, 0);
	assert_string_equal(stats_of(store).problems[STORE_PROBLEM_FILE], "");
	assert_null(store_stop(store));
	assert_int_equal(sql_number(path, "SELECT count(*) FROM windows"), STORE_QUEUE_MAX + 2);
	assert_int_equal(sql_number(path, "SELECT count(*) FROM gaps WHERE reason LIKE "
					  "'not written: another program had locked%'"),
			 1);
}

/* A file that was moved and a lock are two problems, of which each ends by itself. */
static void test_two_problems(void **state)
{
	struct store *store = store_begin(INT64_MAX / 4, NS_PER_S);
	sqlite3 *reader, *locker;
	char log[PATH_MAX], moved[PATH_MAX];

	snprintf(log, sizeof(log), "%.4000s-wal", path);
	snprintf(moved, sizeof(moved), "%.4000s-moved", path);
	window_write(store, 0);
	reader = sql_open(path);
	locker = sql_open(path);
	assert_int_equal(
		sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM windows", NULL, NULL, NULL),
		SQLITE_OK);
	/* The log now has what the reader does not read, so it cannot be copied. */
	window_write(store, 1);
	assert_int_equal(sqlite3_exec(locker, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(rename(log, moved), 0);
	window_hand(store, 2);
	while (!strstr(stats_of(store).problems[STORE_PROBLEM_FILE], "locked by"))
		usleep(1000);
	assert_non_null(strstr(stats_of(store).problems[STORE_PROBLEM_MOVED], "was moved"));
	assert_int_equal(sqlite3_close(locker), SQLITE_OK);
	while (stats_of(store).written < 3)
		usleep(1000);
	assert_string_equal(stats_of(store).problems[STORE_PROBLEM_FILE], "");
	assert_non_null(strstr(stats_of(store).problems[STORE_PROBLEM_MOVED], "was moved"));
	assert_int_equal(rename(moved, log), 0);
	window_write(store, 3);
	assert_string_equal(stats_of(store).problems[STORE_PROBLEM_MOVED], "");
	assert_int_equal(sqlite3_close(reader), SQLITE_OK);
	assert_null(store_stop(store));
}

/* A window that a reader keeps from being written to the end is a gap that says so. */
static void test_a_window_that_waits_at_the_stop(void **state)
{
	struct store *store = store_begin(INT64_MAX / 4, NS_PER_S);
	sqlite3 *other;

	window_write(store, 0);
	sql_run(path, "PRAGMA wal_autocheckpoint = 0; CREATE TABLE filler (x)");
	other = sql_open(path);
	assert_int_equal(
		sqlite3_exec(other, "BEGIN; SELECT count(*) FROM windows", NULL, NULL, NULL),
		SQLITE_OK);
	/* More than max_size leaves to the log, in pages that are less than it. */
	sql_run(path, "PRAGMA wal_autocheckpoint = 0;"
		      "INSERT INTO filler VALUES (zeroblob(22 << 20));"
		      "UPDATE filler SET x = randomblob(22 << 20);"
		      "UPDATE filler SET x = randomblob(22 << 20)");
	window_hand(store, 1);
	while (!strstr(stats_of(store).problems[STORE_PROBLEM_FILE], "its log is full"))
		usleep(1000);
	assert_null(store_stop(store));
	assert_int_equal(sqlite3_close(other), SQLITE_OK);
	assert_int_equal(sql_number(path, "SELECT count(*) FROM windows"), 1);
	assert_int_equal(sql_number(path, "SELECT count(*) FROM gaps WHERE reason LIKE "
					  "'not written: another program read%'"),
			 1);
}

/* Neither is a window lost if the database is locked when the store is started. */
static void test_windows_wait_for_the_file(void **state)
{
	struct store *store = store_begin(INT64_MAX / 4, NS_PER_S);
	sqlite3 *other;

	window_write(store, 0);
	assert_null(store_stop(store));
	other = sql_open(path);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	store = store_begin(INT64_MAX / 4, NS_PER_S);
	window_hand(store, 1);
	while (stats_of(store).queued)
		usleep(1000);
	assert_int_equal(sqlite3_close(other), SQLITE_OK);
	while (stats_of(store).written + stats_of(store).dropped_write < 1)
		usleep(1000);
	assert_int_equal(stats_of(store).written, 1);
	assert_null(store_stop(store));
}

/* A reader keeps the log from being copied to the database. It has to be synced all the same. */
static void test_a_reader_does_not_keep_the_log_from_being_synced(void **state)
{
	struct store *store = store_begin(INT64_MAX / 4, 1);
	sqlite3 *other;
	int before;

	window_write(store, 0);
	while (stats_of(store).synced_ns != end_of(0))
		usleep(1000);
	other = sql_open(path);
	assert_int_equal(
		sqlite3_exec(other, "BEGIN; SELECT count(*) FROM windows", NULL, NULL, NULL),
		SQLITE_OK);
	before = n_log_syncs;
	window_write(store, 1);
	while (stats_of(store).synced_ns != end_of(1))
		usleep(1000);
	assert_true(n_log_syncs > before);
	assert_int_equal(sqlite3_close(other), SQLITE_OK);
	assert_null(store_stop(store));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_windows_are_kept_for_max_age, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_max_age_is_that_of_all_tiers, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_a_window_moves_with_its_bytes, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_what_was_not_synced_is_not_said_to_be, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_a_write_that_finds_damage_begins_a_new_file,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_each_part_of_a_window_counts, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_windows_wait_for_a_lock, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_two_problems, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_window_that_waits_at_the_stop, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_windows_wait_for_the_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_reader_does_not_keep_the_log_from_being_synced, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
