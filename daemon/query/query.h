/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_QUERY_H
#define STACKD_DAEMON_QUERY_QUERY_H

/*
 * Stage 6: answers the methods of io.stackd. A query takes a decoded request and returns an answer,
 * whose reply is a struct of the wire made from recorded windows. The caller owns the answer, which
 * holds references to all that its reply points to. Called on worker threads, since a query may
 * wait for the end of an open window or for the disk.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "proto/wire.h"
#include "proto/wire_error.h"

struct recorder; /* the running daemon: sessions, history, store */
struct answer;

/* The client that asks, as the server knows it from the socket. */
struct query_peer {
	bool is_root; /* may see kernel addresses, and stop sessions of other users */
	uid_t uid;
	bool is_stream; /* asks again and again: if no thread was seen, the answer has no rows */
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
 * Puts the calls of a started session since the last time into its reply, as many as fit. Returns 0
 * and their number, or -ENOMEM. They are valid until it is called again.
 */
int answer_start_calls(struct answer *answer, size_t *n_out);

/* Puts the present state of the started session into that reply. 0 or -ENOMEM. */
int answer_start_refresh(struct answer *answer);

/* True if there are more calls; the functions of their stacks may not have names yet. */
bool answer_start_has_calls(struct answer *answer);

/* Ends the started session, if it still runs. */
void answer_start_end(struct answer *answer);

/* Ends a started session whose reply could not be delivered, and notes that as the reason. */
void answer_start_give_up(struct answer *answer);

/* True while the started session runs. */
bool answer_start_runs(const struct answer *answer);

/* The reply with the number of missed calls has been sent: begins to count from 0 again. */
void answer_start_clear_missed(struct answer *answer);

/*
 * A stream of answers, one per interval, that follow each other in time. query_follow_next()
 * returns 1 with *out, 0 if the next answer is not due or has no new window yet, or a negative
 * errno as a query does; *error ends the stream.
 */
struct query_follow;
int query_follow_new(struct recorder *recorder, const struct query_peer *peer,
		     const struct wire_follow_request *request, struct query_follow **out,
		     struct wire_error *error);
int query_follow_next(struct query_follow *follow, struct answer **out, struct wire_error *error);
struct query_follow *query_follow_free(struct query_follow *follow);

/* Frees an answer and what its reply points to; does nothing for NULL. Returns NULL. */
struct answer *answer_free(struct answer *answer);
void answer_freep(struct answer **answer);

#endif
