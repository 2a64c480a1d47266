/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/db.h"

#include <errno.h>
#include <stdio.h>

#include "common/base.h"

/*
 * From schema i to i + 1. A step is never changed once it has been in a release: add one, and
 * raise STORE_SCHEMA.
 *
 * What is interned has a hash to be found by, the number of the window it was last seen in
 * (about) to be forgotten by, and a sum over its number and data: a row that was changed by
 * anybody but us shows. Blobs are last, so that listings need not pass over them.
 */
static const char *const steps[STORE_SCHEMA] = {
	"CREATE TABLE runs ("
	" id INTEGER PRIMARY KEY, boot_id TEXT NOT NULL, version TEXT NOT NULL,"
	" start_real_ns INTEGER NOT NULL, alive_real_ns INTEGER NOT NULL,"
	" is_clean INTEGER NOT NULL DEFAULT 0);"
	"CREATE TABLE windows ("
	" id INTEGER PRIMARY KEY, run INTEGER NOT NULL, seq INTEGER NOT NULL,"
	" parts INTEGER NOT NULL, session INTEGER NOT NULL, probe TEXT NOT NULL,"
	" start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL,"
	" real_offset_ns INTEGER NOT NULL, boot_offset_ns INTEGER NOT NULL,"
	" start_real_ns INTEGER NOT NULL, end_real_ns INTEGER NOT NULL,"
	" n_rows INTEGER NOT NULL, n_threads INTEGER NOT NULL, n_opens INTEGER NOT NULL,"
	" bytes INTEGER NOT NULL, lost BLOB, sum INTEGER NOT NULL,"
	" blob_sum INTEGER NOT NULL, blob BLOB NOT NULL);"
	"CREATE INDEX windows_time ON windows (start_real_ns);"
	"CREATE TABLE frames (id INTEGER PRIMARY KEY, hash INTEGER NOT NULL UNIQUE,"
	" seen INTEGER NOT NULL, sum INTEGER NOT NULL, data BLOB NOT NULL);"
	"CREATE TABLE stacks (id INTEGER PRIMARY KEY, hash INTEGER NOT NULL UNIQUE,"
	" seen INTEGER NOT NULL, sum INTEGER NOT NULL, data BLOB NOT NULL);"
	"CREATE TABLE processes (id INTEGER PRIMARY KEY, hash INTEGER NOT NULL UNIQUE,"
	" seen INTEGER NOT NULL, sum INTEGER NOT NULL, data BLOB NOT NULL);"
	"CREATE TABLE gaps (id INTEGER PRIMARY KEY, start_real_ns INTEGER NOT NULL,"
	" end_real_ns INTEGER NOT NULL, reason TEXT NOT NULL);"
	"CREATE TABLE meta (key TEXT PRIMARY KEY, number INTEGER, text TEXT);",
	/* The index has all that is asked about a session's windows but the windows. */
	"CREATE TABLE sessions (id INTEGER PRIMARY KEY, run INTEGER NOT NULL,"
	" number INTEGER NOT NULL, sum INTEGER NOT NULL, data BLOB NOT NULL, name TEXT,"
	" since_real_ns INTEGER NOT NULL);"
	"CREATE INDEX windows_session ON windows"
	" (session, run, start_real_ns, end_real_ns) WHERE session >= 100;",
	/* It was told less often when a row was last seen: none may go too early. */
	"UPDATE frames SET seen = (SELECT ifnull(max(id), 0) FROM windows);"
	"UPDATE stacks SET seen = (SELECT ifnull(max(id), 0) FROM windows);"
	"UPDATE processes SET seen = (SELECT ifnull(max(id), 0) FROM windows);",
};

static int schema_step(struct store_db *db, int from)
{
	char version[64];
	int r = store_db_run(db, "BEGIN IMMEDIATE");

	if (r)
		return r;
	snprintf(version, sizeof(version), "PRAGMA user_version = %d", from + 1);
	r = store_db_run(db, steps[from]);
	if (!r)
		r = store_db_run(db, version);
	if (!r)
		r = store_db_run(db, "COMMIT");
	if (r)
		store_db_run(db, "ROLLBACK");
	return r;
}

int store_schema_update(struct store_db *db)
{
	int r = 0;

	while (db->schema < STORE_SCHEMA && !r) {
		r = schema_step(db, db->schema);
		if (!r)
			db->schema++;
	}
	return r;
}
