/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_WINDOW_ROW_H
#define STACKD_DAEMON_STORE_WINDOW_ROW_H

/*
 * Writes and reads the row of a window without its blob: binds the columns of a store_entry to a
 * statement, with a checksum, and reads an entry back if the checksum is right. Used by the store's
 * files; one thread.
 */

#include <sqlite3.h>

#include "daemon/store/bytes.h"
#include "daemon/store/entry.h"

/*
 * Binds the columns of STATEMENT_WINDOW_ADD except the blob and its checksum. Encodes the losses
 * into *lost, which the caller frees after the statement has been run.
 */
void store_row_bind(sqlite3_stmt *statement, const struct store_entry *entry, struct bytes *lost);

/* Reads an entry. -EBADMSG: the checksum is wrong. -ENOTSUP: this version lacks its probe. */
int store_row_read(sqlite3_stmt *statement, struct store_entry *out);

#endif
