/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_WINDOW_ROW_H
#define STACKD_DAEMON_STORE_WINDOW_ROW_H

/*
 * The columns of a window's row that describe it, without its blob: binds an entry to them with a
 * checksum, and reads an entry back if the checksum is right. Used by the store's files; one
 * thread.
 */

#include <sqlite3.h>

#include "daemon/store/bytes.h"
#include "daemon/store/entry.h"

/*
 * Binds the columns of STATEMENT_WINDOW_ADD except the blob and its checksum. Fills *lost, which
 * has to live until the statement has been run.
 */
void store_row_bind(sqlite3_stmt *statement, const struct store_entry *entry, struct bytes *lost);

/* Returns 0, -EBADMSG if the checksum is wrong, or -ENOTSUP for a probe this version lacks. */
int store_row_read(sqlite3_stmt *statement, struct store_entry *out);

#endif
