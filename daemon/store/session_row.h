/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_SESSION_ROW_H
#define STACKD_DAEMON_STORE_SESSION_ROW_H

/*
 * Writes the row of a client's session, with a checksum, to the database, and reads it back if the
 * checksum is right. Used by the files of the store; one thread.
 */

#include <sqlite3.h>

#include "daemon/store/db.h"
#include "daemon/store/store.h"

/*
 * Adds the row of a session, in the open transaction if there is one. Returns 0 or a negative
 * errno.
 */
int store_session_write(struct store_db *db, const struct store_session *session);

/*
 * Reads a session from the statement's current row. Leaves ended_ns unknown, as the row does not
 * have it. store_session_fini() frees *out. Returns 0; -EBADMSG if the row is damaged or memory is
 * short.
 */
int store_session_read(sqlite3_stmt *statement, struct store_session *out);

/* Copies the session and its strings. Returns 0 or -ENOMEM. */
int store_session_copy(const struct store_session *session, struct store_session *out);

#endif
