/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_SESSION_REQUEST_H
#define STACKD_DAEMON_QUERY_SESSION_REQUEST_H

/*
 * Reads what a client says about sessions: the name of a probe, and the request to start one, which
 * is also how the store keeps it. No state; any thread.
 */

#include <sys/types.h>

#include "common/probe_kind.h"
#include "proto/wire.h"
#include "proto/wire_error.h"

struct session_request;

/* Finds the probe of this name. Returns 0, or -ENOENT with *error. */
int query_kind(const char *name, enum probe_kind *out, struct wire_error *error);

/*
 * Checks a Start of this user and makes the request of it that sessions_start() takes; strings and
 * the filter are borrowed from wire. Returns 0, or -EINVAL or -ENOENT with *error.
 */
int query_request(uid_t uid, const struct wire_start_request *wire, struct session_request *out,
		  struct wire_error *error);

/* Fills *error for a session that is not known by this id or name. Returns -ENOENT. */
int query_unknown_session(const char *text, struct wire_error *error);

#endif
