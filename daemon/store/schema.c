/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/db.h"

/*
 * The tables. A row of frames, files, stacks or processes is found by its hash. `sum` is a checksum
 * of the row's number and data, which shows damage. A blob is the last column of its table, so that
 * reading the other columns does not have to read past it.
 *
 * The index windows_session has all that is needed to tell whether a session has windows and when
 * the newest of them ended.
 *
 * window_tiers has a row for each window, with the facts that the writer needs to merge and evict
 * windows. length_ns says which tier the window is in: it is the length of that tier's windows; 0
 * for the first tier. It is -1 if a client started the window's session. row_limit is the maximum
 * number of rows of each kind that the window may have; 0 if the window has all rows that were
 * recorded.
 *
 * A summary is one window that was merged from several windows of the table `windows`, which stay
 * there. It has the id of the first of these windows; last_id is the id of the last one, `windows`
 * their number, `size` the length of the blob. lacks_ns: see struct store_entry. facts_sum is a
 * checksum of the columns that `sum` does not cover. Index summaries_session finds the summary of a
 * window without reading blobs.
 *
 * `files` has the ELF files of frames: build-id and segments.
 */
const char store_schema[] =
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
	" sum INTEGER NOT NULL, data BLOB NOT NULL);"
	"CREATE TABLE stacks (id INTEGER PRIMARY KEY, hash INTEGER NOT NULL UNIQUE,"
	" sum INTEGER NOT NULL, data BLOB NOT NULL);"
	"CREATE TABLE processes (id INTEGER PRIMARY KEY, hash INTEGER NOT NULL UNIQUE,"
	" sum INTEGER NOT NULL, data BLOB NOT NULL);"
	"CREATE TABLE gaps (id INTEGER PRIMARY KEY, start_real_ns INTEGER NOT NULL,"
	" end_real_ns INTEGER NOT NULL, reason TEXT NOT NULL);"
	"CREATE TABLE meta (key TEXT PRIMARY KEY, number INTEGER, text TEXT);"
	"CREATE TABLE sessions (id INTEGER PRIMARY KEY, run INTEGER NOT NULL,"
	" number INTEGER NOT NULL, sum INTEGER NOT NULL, data BLOB NOT NULL, name TEXT,"
	" since_real_ns INTEGER NOT NULL);"
	"CREATE INDEX windows_session ON windows"
	" (session, run, start_real_ns, end_real_ns) WHERE session >= 100;"
	"CREATE TABLE window_tiers (id INTEGER PRIMARY KEY, tier INTEGER NOT NULL,"
	" length_ns INTEGER NOT NULL, session INTEGER NOT NULL, start_real_ns INTEGER NOT NULL,"
	" end_real_ns INTEGER NOT NULL, size INTEGER NOT NULL, row_limit INTEGER NOT NULL);"
	"CREATE INDEX window_tiers_tier ON window_tiers (tier, id);"
	"CREATE TABLE summaries (id INTEGER PRIMARY KEY, run INTEGER NOT NULL,"
	" seq INTEGER NOT NULL, parts INTEGER NOT NULL, session INTEGER NOT NULL,"
	" probe TEXT NOT NULL, start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL,"
	" real_offset_ns INTEGER NOT NULL, boot_offset_ns INTEGER NOT NULL,"
	" start_real_ns INTEGER NOT NULL, end_real_ns INTEGER NOT NULL,"
	" n_rows INTEGER NOT NULL, n_threads INTEGER NOT NULL, n_opens INTEGER NOT NULL,"
	" bytes INTEGER NOT NULL, lost BLOB, last_id INTEGER NOT NULL,"
	" windows INTEGER NOT NULL, size INTEGER NOT NULL, lacks_ns INTEGER NOT NULL,"
	" facts_sum INTEGER NOT NULL, sum INTEGER NOT NULL, blob_sum INTEGER NOT NULL, blob BLOB NOT NULL);"
	"CREATE INDEX summaries_time ON summaries (start_real_ns);"
	"CREATE INDEX summaries_session ON summaries (session, id, last_id, size);"
	"CREATE TABLE files (id INTEGER PRIMARY KEY, hash INTEGER NOT NULL UNIQUE,"
	" sum INTEGER NOT NULL, data BLOB NOT NULL);";
