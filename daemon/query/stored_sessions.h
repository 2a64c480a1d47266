/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_STORED_SESSIONS_H
#define STACKD_DAEMON_QUERY_STORED_SESSIONS_H

/*
 * Clients' sessions in the store: notes each session as it begins, and finds those that this run no
 * longer keeps or that earlier runs recorded, so that they can be queried like any ended session.
 * Called on a worker thread.
 */

#include <stddef.h>

#include "daemon/query/answer.h"
#include "daemon/session/recorder.h"
#include "proto/wire.h"

/* The most stored sessions that are listed: the newest ones. */
enum { QUERY_STORED_MAX = 256 };

/* Makes new sessions get higher numbers than those in the store. */
void query_stored_skip_numbers(struct recorder *recorder);

/* Notes a session in the store, so that its windows can be queried later. Returns 0 or -ENOMEM. */
int query_stored_note(struct recorder *recorder, struct session *session,
		      const struct wire_start_request *request);

/*
 * Sets answer->session to the session with this id or name: one of this run, else the newest one in
 * the store. Returns 0, -ENOENT with *error, or -ENOMEM.
 */
int query_session_find(struct recorder *recorder, struct answer *answer, const char *text,
		       struct wire_error *error);

/*
 * Returns references to the newest sessions in the store that are not among own, the sessions that
 * this run keeps; oldest first. The array is the caller's. Returns 0 or -ENOMEM.
 */
int query_stored_list(struct recorder *recorder, struct answer *answer, struct session *const *own,
		      size_t n_own, struct session ***list_out, size_t *n_out);

/* Adds what the session's windows on disk lost to lost[WINDOW_LOST_N]. */
void query_stored_losses(struct answer *answer, const struct session_info *info, uint64_t *lost);

#endif
