/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_WINDOW_ROW_H
#define STACKD_DAEMON_STORE_WINDOW_ROW_H

/*
 * Writes and reads the row of a window: binds the values of a store_entry and their checksum to a
 * statement, and reads an entry back, without its blob, if the checksum is right. Used by the
 * files of the store; one thread.
 */

#include <stdint.h>

#include <sqlite3.h>

#include "daemon/store/bytes.h"
#include "daemon/store/db.h"
#include "daemon/store/entry.h"

/*
 * Binds the values of STATEMENT_WINDOW_ADD except the blob and its checksum. Encodes the losses
 * into *lost, which the caller frees after running the statement.
 */
void store_row_bind(sqlite3_stmt *statement, const struct store_entry *entry, struct bytes *lost);

/*
 * Adds the row of an encoded window or summary, in the open transaction. Returns 0 or a negative
 * errno.
 */
int store_row_add(struct store_db *db, const struct store_entry *entry, const struct bytes *blob);

/*
 * Reads an entry from the statement's current row. Returns 0; -EBADMSG if the checksum is wrong;
 * -ENOTSUP if this stackd does not have the probe.
 */
int store_row_read(sqlite3_stmt *statement, struct store_entry *out);

/*
 * Finds the id and the end, in ns since the epoch, of the window that `which` selects, which is
 * STATEMENT_WINDOW_OLDEST or STATEMENT_WINDOW_NEWEST. Returns 0, -ENOENT (no windows) or another
 * errno.
 */
int store_row_end(struct store_db *db, enum store_statement which, int64_t *id_out,
		  int64_t *end_out);

/*
 * Does what store_row_read() does, for the row of a summary: reads the columns of
 * STATEMENT_SUMMARY_LIST.
 */
int store_summary_row_read(sqlite3_stmt *statement, struct store_entry *out);

#endif
