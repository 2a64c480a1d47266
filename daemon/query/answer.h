/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_ANSWER_H
#define STACKD_DAEMON_QUERY_ANSWER_H

/*
 * Private to the query room: an answer, and the functions that translate the daemon's structs into
 * those of the wire. An answer owns its memory (an arena) and holds the windows whose stacks its
 * reply refers to. It is made and used by one thread; daemon/query/query.h has the functions for
 * other rooms.
 */

#include "common/arena.h"
#include "daemon/drain/call_stream.h"
#include "daemon/query/aggregate.h"
#include "daemon/query/query.h"
#include "daemon/store/timeline.h"
#include "proto/wire.h"

/*
 * The maximum number of calls in one reply. With more of them, the deepest stacks could make a
 * reply longer than the longest message.
 */
enum { CALLS_A_REPLY = 16 };

struct answer {
	struct arena *arena; /* memory for the strings and arrays of the reply */
	/* the windows of the session in the range of the request; or NULL */
	struct timeline *timeline;
	struct store *store;	     /* the store that `reader` reads; borrowed */
	struct store_reader *reader; /* NULL if it was not opened, or if there is nothing to read */
	struct aggregate *aggregate;
	struct session *session; /* a reference to the session that the answer is about, or NULL */
	/*
	 * Used for a stream of calls only: `step` is the memory of the last reply, and `taken` has
	 * the calls in that reply.
	 */
	struct arena *step;
	struct call taken[CALLS_A_REPLY];
	size_t n_taken;
	uint64_t position; /* position of the next call to send in the session's stream of calls */
	/* number of missed calls that have not been reported to the client yet */
	uint64_t missed;
	bool kernel_addresses;	   /* true if the client of the stream may see kernel addresses */
	struct session **sessions; /* references to the sessions that a reply to Sessions lists */
	size_t n_sessions;
	union wire_reply reply; /* the member named after the method is the one that is used */
};

/* Returns an empty answer, or NULL when out of memory. */
struct answer *answer_new(void);

struct store;

/*
 * Returns the reader of the store, which the first call opens. Returns NULL if there is nothing to
 * read; the status of the daemon says what is wrong with the store.
 */
struct store_reader *answer_reader(struct answer *answer, struct store *store);

/*
 * Sets *out to the counters in lost[WINDOW_LOST_N] that are not 0. Returns 0, or -ENOMEM with *out
 * unchanged.
 */
int answer_losses(struct arena *arena, const uint64_t *lost, struct wire_losts *out);

struct openwait_stats;

/*
 * Returns a phrase that names the user stacks of open waits that cannot be read, and the reason. It
 * is empty if all can be read. Returns NULL when out of memory.
 */
const char *answer_unread(struct arena *arena, const struct openwait_stats *stats);

/* Sets *out to a list of all kinds of probes with the state of each. Returns 0 or -ENOMEM. */
int answer_probe_list(struct recorder *recorder, struct arena *arena, struct wire_probes *out);

/* Returns the name of the i-th flag that a stack may have on the wire; NULL after the last one. */
const char *answer_stack_flag(size_t i);

struct session;

/* Sets *out to the present state of a session, whose filter is borrowed. Returns 0 or -ENOMEM. */
int answer_session(struct arena *arena, struct session *session, struct wire_session *out);

struct answer_row_options {
	/* minimum length of the waits that this session records with a stack */
	int64_t min_wait_ns;
	bool by_thread;
	bool kernel_addresses; /* true if the client may see kernel addresses */
};

struct answer_stacks;

/* Frees the memory and the calls of the last reply of a stream. */
void answer_step_fini(struct answer *answer);

/* Sets *out to n calls as wire structs, with their times unchanged. Returns 0 or -ENOMEM. */
int answer_calls(struct arena *arena, const struct call *calls, size_t n, bool kernel_addresses,
		 struct wire_calls *out);

/* Sets *row to a row that names this process and has none of the optional fields. */
void answer_row_init(struct arena *arena, struct process *process, struct wire_row *row);

/* Copies n buckets to *out, without the empty ones at the end. Returns 0 or -ENOMEM. */
int answer_buckets(struct arena *arena, const uint64_t *buckets, size_t n, struct int_list *out);

/* Sets answer->reply.snapshot.rows to n rows, one for each group. Returns 0 or -ENOMEM. */
int answer_rows(struct answer *answer, struct aggregate_group *const *groups, size_t n,
		struct answer_stacks *stacks);

#endif
