/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_TESTS_SQL_H
#define STACKD_TESTS_SQL_H

/* Reads and changes a database beside the store that a test has open. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h>

enum { SQL_BUSY_MS = 10000 };

static inline sqlite3 *sql_open(const char *path)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_busy_timeout(db, SQL_BUSY_MS);
	return db;
}

static inline void sql_run(const char *path, const char *sql)
{
	sqlite3 *db = sql_open(path);

	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

/* Returns the first number of the first row. */
static inline int64_t sql_number(const char *path, const char *sql)
{
	sqlite3 *db = sql_open(path);
	sqlite3_stmt *statement;
	int64_t number;

	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	number = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	sqlite3_close(db);
	return number;
}

#endif
