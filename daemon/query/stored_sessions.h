/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_STORED_SESSIONS_H
#define STACKD_DAEMON_QUERY_STORED_SESSIONS_H

/*
 * Keeps clients' sessions in the store: records each session when it begins, and finds sessions
 * that stackd no longer has in memory or that earlier runs of stackd recorded, so that they can be
 * queried like any ended session. Called on worker threads.
 */

#include <stddef.h>

#include "daemon/query/answer.h"
#include "daemon/session/recorder.h"
#include "proto/wire.h"

/* The maximum number of stored sessions in a list; older sessions are left out. */
enum { QUERY_STORED_MAX = 256 };

/* Ensures that new sessions get higher numbers than all sessions in the store. */
void query_stored_skip_numbers(struct recorder *recorder);

/*
 * Records a session in the store, so that its windows can be queried later. Returns 0 or -ENOMEM.
 */
int query_stored_note(struct recorder *recorder, struct session *session,
		      const struct wire_start_request *request);

/*
 * Sets answer->session to the session with this id or name: a session of this run of stackd if
 * there is one, otherwise the newest one in the store. Returns 0, -ENOENT with *error, or -ENOMEM.
 */
int query_session_find(struct recorder *recorder, struct answer *answer, const char *text,
		       struct wire_error *error);

/*
 * Sets *list_out to references to the newest sessions in the store, oldest first. It leaves out the
 * sessions in `own`, which this run of stackd still has in memory. The caller frees the array.
 * Returns 0 or -ENOMEM.
 */
int query_stored_list(struct recorder *recorder, struct answer *answer, struct session *const *own,
		      size_t n_own, struct session ***list_out, size_t *n_out);

/* Adds the losses of the session's windows on disk to lost[WINDOW_LOST_N]. */
void query_stored_losses(struct answer *answer, const struct session_info *info, uint64_t *lost);

#endif
