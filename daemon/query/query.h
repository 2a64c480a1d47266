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
 * Each returns 0 and *out, owned by the caller; or a negative errno with *error filled when the
 * request itself is at fault (->what and ->message are malloc'ed and the
 * caller's to free), or with error->code ERROR_NONE for an internal failure.
 */
int query_snapshot(struct recorder *recorder, const struct query_peer *peer,
		   const struct wire_snapshot_request *request, struct answer **out,
		   struct wire_error *error);
int query_windows(struct recorder *recorder, const struct wire_windows_request *request,
		  struct answer **out, struct wire_error *error);
int query_start(struct recorder *recorder, const struct query_peer *peer,
		const struct wire_start_request *request, struct answer **out,
		struct wire_error *error);
int query_stop(struct recorder *recorder, const struct query_peer *peer,
	       const struct wire_stop_request *request, struct answer **out,
	       struct wire_error *error);
int query_functions(struct recorder *recorder, const struct wire_functions_request *request,
		    struct answer **out, struct wire_error *error);
int query_status(struct recorder *recorder, struct answer **out);
int query_probes(struct recorder *recorder, struct answer **out);
int query_sessions(struct recorder *recorder, struct answer **out);

/* The answer's struct; which one is known from the call that made it. Borrowed. */
const struct wire_snapshot_reply *answer_snapshot(const struct answer *answer);
const struct wire_windows_reply *answer_windows(const struct answer *answer);
const struct wire_status_reply *answer_status(const struct answer *answer);
const struct wire_probes_reply *answer_probes(const struct answer *answer);
const struct wire_sessions_reply *answer_sessions(const struct answer *answer);

const struct wire_start_reply *answer_start(const struct answer *answer);
const struct wire_stop_reply *answer_stop(const struct answer *answer);
const struct wire_functions_reply *answer_functions(const struct answer *answer);

/*
 * The calls since the last time, as many as go into a reply, into answer_start(): 0 and how many,
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
