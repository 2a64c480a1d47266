/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_QUERY_H
#define STACKD_DAEMON_QUERY_QUERY_H

/*
 * Answers the methods of the Varlink interface io.stackd. A query takes a decoded request and
 * returns an answer, whose reply is a struct of the wire made from recorded windows. The caller
 * owns the answer, which holds references to everything that its reply points to. Queries run on
 * worker threads, because they may wait for the end of the current window or for the disk.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "proto/wire.h"
#include "proto/wire_error.h"

struct recorder; /* the running daemon: sessions, history, store */
struct answer;

/* The client that sent the request, as the server knows it from the socket. */
struct query_peer {
	bool is_root; /* the client may see kernel addresses and stop sessions of other users */
	uid_t uid;
	/*
	 * the client follows a stream: if the filter matches no thread, the answer has no rows, but
	 * there is no error
	 */
	bool is_stream;
	/*
	 * set when the client has hung up: the query then returns -ECANCELED; NULL: the client
	 * cannot hang up
	 */
	const atomic_bool *is_gone;
	/*
	 * A query that returns -ERESTART has set this to when it is to be made again, in ns of
	 * CLOCK_MONOTONIC; 0 before that. NULL: the query cannot be put off.
	 */
	int64_t *again_ns;
};

/*
 * Makes the answer to one method of io.stackd. `params` is the decoded request, a struct
 * wire_METHOD_request; NULL for a method without parameters. Returns 0 and *out, which the caller
 * owns, or a negative errno: -ERESTART at most once, see query_peer.again_ns. If the request itself
 * is at fault, *error is filled and the caller
 * clears it with wire_error_clear(); if the daemon failed, error->code is ERROR_NONE.
 */
typedef int query_function(struct recorder *recorder, const struct query_peer *peer,
			   const void *params, struct answer **out, struct wire_error *error);

/*
 * Declares query_status(), query_snapshot() and so on. The method Follow has query_follow_new()
 * instead.
 */
#define QUERY_DECLARE(method) query_function query_##method;
WIRE_METHODS(QUERY_DECLARE)

/*
 * Replaces an answer of query_overview() by the next answer. Returns 1; 0 if there is no next one;
 * or a negative errno, after which the answer can only be freed.
 */
int query_overview_next(struct recorder *recorder, const struct query_peer *peer,
			const struct wire_overview_request *request, struct answer **answer);

/*
 * Replaces an answer of query_snapshot() by the next one: that of the slice before it, if the
 * request has each_ns, or that of the next range, if it has `ranges`. Returns 1, 0 if there is
 * none, or a negative errno, after which the answer can only be freed.
 */
int query_snapshot_next(struct recorder *recorder, const struct query_peer *peer,
			const struct wire_snapshot_request *request, struct answer **answer);

/* True if another answer of query_overview() or query_snapshot() follows this one. */
bool answer_has_next(const struct answer *answer);

/*
 * Returns the reply of an answer. The member of the union that is named after the method is set.
 * The rows of a snapshot are not in it, see answer_row().
 */
const union wire_reply *answer_reply(const struct answer *answer);

/* Returns the number of rows of a snapshot. */
size_t answer_n_rows(const struct answer *answer);

/*
 * Makes row number i of a snapshot. It is valid until answer_rows_sent() is called. Returns 0 or a
 * negative errno.
 */
int answer_row(struct answer *answer, size_t i, const struct wire_row **out);

/*
 * Frees the memory of all rows that were made. Rows before number n are not asked for again. After
 * the last row, also lets go of the database.
 */
void answer_rows_sent(struct answer *answer, size_t n);

/*
 * Puts the function calls that the session recorded since the last reply into the next reply, as
 * many as fit. Returns 0 and sets *n_out to their number, or returns -ENOMEM. The calls are valid
 * until the next call of answer_start_calls().
 */
int answer_start_calls(struct answer *answer, size_t *n_out);

/* Updates the state of the session in the reply. Returns 0 or -ENOMEM. */
int answer_start_refresh(struct answer *answer);

/*
 * True if the session has recorded function calls that were not put into a reply yet. Their stacks
 * may still lack the names of functions.
 */
bool answer_start_has_calls(struct answer *answer);

/* Ends the session that the request started, if it still runs. */
void answer_start_end(struct answer *answer);

/*
 * Ends the session that the request started, because the reply could not be delivered to the
 * client. Records this as the reason.
 */
void answer_start_give_up(struct answer *answer);

/* True while the session that this request (Start) has started still runs. */
bool answer_start_runs(const struct answer *answer);

/* Resets the number of missed calls to 0. Called after a reply with this number was sent. */
void answer_start_clear_missed(struct answer *answer);

/*
 * A stream of answers, one per interval, each about the time since the previous one.
 * query_follow_next() returns 1 and sets *out to the next answer. It returns 0 if the next answer
 * is not due yet, or if there is no new window. A negative errno means that the stream has ended;
 * *error is then filled as by other queries.
 */
struct query_follow;
int query_follow_new(struct recorder *recorder, const struct query_peer *peer,
		     const struct wire_follow_request *request, struct query_follow **out,
		     struct wire_error *error);

/* True if query_follow_next() has something to do: an answer is due, or the session has ended. */
bool query_follow_is_due(const struct query_follow *follow);
int query_follow_next(struct query_follow *follow, struct answer **out, struct wire_error *error);
struct query_follow *query_follow_free(struct query_follow *follow);

/* Frees an answer and everything that its reply points to; does nothing for NULL. Returns NULL. */
struct answer *answer_free(struct answer *answer);
void answer_freep(struct answer **answer);

#endif
