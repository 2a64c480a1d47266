/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_WINDOW_ROW_H
#define STACKD_DAEMON_STORE_WINDOW_ROW_H

/*
 * The row of a window less its blob: in goes an entry, out come the columns it is listed by, with
 * a sum over them; and back, when the sum is right. Used by the store's files; one thread.
 */

#include <sqlite3.h>

#include "daemon/store/bytes.h"
#include "daemon/store/entry.h"

/*
 * Binds the columns of STATEMENT_WINDOW_ADD but for the blob and its sum. lost is filled, and has
 * to live until the statement has been run.
 */
void store_row_bind(sqlite3_stmt *statement, const struct store_entry *entry, struct bytes *lost);

/* 0; -EBADMSG when the sum is not that of the columns, -ENOTSUP for a probe not known here. */
int store_row_read(sqlite3_stmt *statement, struct store_entry *out);

#endif
