/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_SESSION_ROW_H
#define STACKD_DAEMON_STORE_SESSION_ROW_H

/*
 * The row of a session: in goes what is known of it, out come the columns of
 * STATEMENT_SESSION_ADD with a sum over them; and back, when the sum is right. Used by the store's
 * files; one thread.
 */

#include <sqlite3.h>

#include "daemon/store/db.h"
#include "daemon/store/store.h"

/* Writes the row. In a transaction, or as one. */
int store_session_write(struct store_db *db, const struct store_session *session);

/* 0 with strings of its own, but for ended_ns; -EBADMSG when it was changed, -ENOMEM. */
int store_session_read(sqlite3_stmt *statement, struct store_session *out);

/* A copy with strings of its own. 0 or -ENOMEM. */
int store_session_copy(const struct store_session *session, struct store_session *out);

#endif
