/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_SESSION_REQUEST_H
#define STACKD_DAEMON_QUERY_SESSION_REQUEST_H

/*
 * Checks what clients send about sessions: the name of a probe, and the request to start a session.
 * The store keeps this request with the session. No state; any thread.
 */

#include <sys/types.h>

#include "common/probe_kind.h"
#include "proto/wire.h"
#include "proto/wire_error.h"

struct session_request;

/* Sets *out to the kind of the probe with this name. Returns 0, or -ENOENT with *error. */
int query_kind(const char *name, enum probe_kind *out, struct wire_error *error);

/*
 * Checks the Start request of a user and translates it for sessions_start(). *out borrows the
 * strings and the filter of `wire`. Returns 0, or -EINVAL or -ENOENT with *error.
 */
int query_request(uid_t uid, const struct wire_start_request *wire, struct session_request *out,
		  struct wire_error *error);

/* Fills *error with a message that no session has the id or name `text`. Returns -ENOENT. */
int query_unknown_session(const char *text, struct wire_error *error);

#endif
