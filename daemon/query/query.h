/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_QUERY_H
#define STACKD_DAEMON_QUERY_QUERY_H

/*
 * Stage 6: in comes one decoded request, out comes the answer as wire structs, made from windows
 * that are immutable. Called on a worker thread (it may wait for a cut); an answer is owned by
 * the caller and holds references to all it points to.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "proto/wire.h"
#include "proto/wire_error.h"

struct recorder; /* the running daemon: probes, drain, history */
struct answer;

/* Who asks, as the server knows it from the socket. */
struct query_peer {
	bool is_root; /* may see kernel addresses, and stop what others started */
	uid_t uid;
	bool is_stream; /* asks on and on: that nobody was seen is an answer without rows */
};

/*
 * Makes the answer to one method of io.stackd from the decoded request, a struct
 * wire_METHOD_request (NULL for a method without parameters). Returns 0 and *out, which the caller
 * owns; or a negative errno: with *error filled where the request itself is at fault (the caller
 * frees it, see wire_error_clear()), with error->code ERROR_NONE for a failure of the daemon.
 */
typedef int query_function(struct recorder *recorder, const struct query_peer *peer,
			   const void *params, struct answer **out, struct wire_error *error);

/* query_status(), query_snapshot() and so on. Follow has query_follow_new() instead. */
#define QUERY_DECLARE(method) query_function query_##method;
WIRE_METHODS(QUERY_DECLARE)

/* Returns the reply of an answer: the member of the method that the answer was made for. */
const union wire_reply *answer_reply(const struct answer *answer);

/*
 * The calls since the last time, as many as go into a reply, into the reply: 0 and how many,
 * or -ENOMEM. They are good until the next time.
 */
int answer_start_calls(struct answer *answer, size_t *n_out);

/* The session that was started, as it is now, for that reply. 0 or -ENOMEM. */
int answer_start_refresh(struct answer *answer);

/* Whether there are more, without a name yet perhaps. */
bool answer_start_has_calls(struct answer *answer);

/* Ends it, if it still runs. */
void answer_start_end(struct answer *answer);

/* The same of one that nobody was told of, and says so. */
void answer_start_give_up(struct answer *answer);

bool answer_start_runs(const struct answer *answer);

/* What a reply says was missed has been told. */
void answer_start_told(struct answer *answer);

/*
 * A stream of answers. Next: 1 with *out, 0 when there is nothing to say yet, or a negative errno
 * as above: with *error it ends there.
 */
struct query_follow;
int query_follow_new(struct recorder *recorder, const struct query_peer *peer,
		     const struct wire_follow_request *request, struct query_follow **out,
		     struct wire_error *error);
int query_follow_next(struct query_follow *follow, struct answer **out, struct wire_error *error);
struct query_follow *query_follow_free(struct query_follow *follow);

struct answer *answer_free(struct answer *answer);
void answer_freep(struct answer **answer);

#endif
