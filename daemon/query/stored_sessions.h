/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_STORED_SESSIONS_H
#define STACKD_DAEMON_QUERY_STORED_SESSIONS_H

/*
 * Sessions that clients started, as the store knows them: in goes one as it begins, out come those
 * that are forgotten or of earlier runs, to be asked about like any that has ended. Called on a
 * worker thread.
 */

#include <stddef.h>

#include "daemon/query/answer.h"
#include "daemon/session/recorder.h"
#include "proto/wire.h"

/* No more are listed that the run does not know any more, the newest ones. */
enum { QUERY_PAST_MAX = 256 };

/* Numbers of earlier runs are not given again, as far as they are known. */
void query_past_skip(struct recorder *recorder);

/* Writes down who it is, so that its windows on disk can be asked for later. 0 or -ENOMEM. */
int query_past_note(struct recorder *recorder, struct session *session,
		    const struct wire_start_request *request);

/*
 * The session of this id or name into answer->session: one that runs, or one that has ended, the
 * newest first. 0, or -ENOENT with *error.
 */
int query_past_find(struct recorder *recorder, struct answer *answer, const char *text,
		    struct wire_error *error);

/* References to the newest ones on disk that are not among this run's own, oldest first. */
int query_past_list(struct recorder *recorder, struct answer *answer, struct session *const *own,
		    size_t n_own, struct session ***list_out, size_t *n_out);

/* What its windows on disk lost, into lost[WINDOW_LOST_N]. */
void query_past_losses(struct answer *answer, const struct session_info *info, uint64_t *lost);

#endif
