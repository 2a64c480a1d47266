/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_ANSWER_H
#define STACKD_DAEMON_QUERY_ANSWER_H

/*
 * Private to the query room: an answer, and the functions that translate the daemon's structs into
 * those of the wire. An answer owns its memory (an arena) and the windows whose stacks its reply
 * refers to. It is made and used by one thread; daemon/query/query.h is what others see of it.
 */

#include "common/arena.h"
#include "daemon/drain/call_stream.h"
#include "daemon/query/aggregate.h"
#include "daemon/query/query.h"
#include "daemon/store/timeline.h"
#include "proto/wire.h"

/* So few that a reply of calls with the deepest stacks does not exceed the longest message. */
enum { CALLS_A_REPLY = 16 };

struct answer {
	struct arena *arena;	     /* strings and arrays of the reply */
	struct timeline *timeline;   /* the windows of the session in the range; or NULL */
	struct store *store;	     /* borrowed; the store that the reader is of */
	struct store_reader *reader; /* NULL: not opened, or there is nothing to read */
	struct aggregate *aggregate;
	struct session *session; /* a reference, or NULL */
	/* A stream of calls: what the last of its replies was made of. */
	struct arena *step;
	struct call taken[CALLS_A_REPLY];
	size_t n_taken;
	uint64_t position;	   /* of the next call to send, in the stream of calls */
	uint64_t missed;	   /* calls missed and not reported yet */
	bool kernel_addresses;	   /* whether the streaming client may see them */
	struct session **sessions; /* references */
	size_t n_sessions;
	union wire_reply reply; /* the member of the method that it answers */
};

/* Returns an empty answer, NULL when out of memory. */
struct answer *answer_new(void);

struct store;

/*
 * Returns the answer's reader of the store, which is opened when it is first asked for; NULL when
 * there is nothing to read: the status says what is wrong with the store.
 */
struct store_reader *answer_reader(struct answer *answer, struct store *store);

/* Sets *out to the losses that are not zero. 0, or -ENOMEM with *out unchanged. */
int answer_losses(struct arena *arena, const uint64_t *lost, struct wire_losts *out);

struct openwait_stats;

/*
 * Says, for a sentence, which user stacks of open waits cannot be read and why. Empty if all can;
 * NULL when out of memory.
 */
const char *answer_unread(struct arena *arena, const struct openwait_stats *stats);

/* Sets *out to all kinds of probes and their state. 0 or -ENOMEM. */
int answer_probe_list(struct recorder *recorder, struct arena *arena, struct wire_probes *out);

/* Returns the i-th flag that a stack may have on the wire; NULL behind the last. */
const char *answer_stack_flag(size_t i);

struct session;

/* Sets *out to the present state of a session; borrows its filter. 0 or -ENOMEM. */
int answer_session(struct arena *arena, struct session *session, struct wire_session *out);

struct answer_row_options {
	int64_t min_wait_ns; /* the minimum of the session, for the row of waits below it */
	bool by_thread;
	bool kernel_addresses; /* whether the client may see them */
};

struct answer_stacks;

/* Frees what the last reply of a stream was made of. */
void answer_step_fini(struct answer *answer);

/* Sets *out to the calls, with their times unchanged. 0 or -ENOMEM. */
int answer_calls(struct arena *arena, const struct call *calls, size_t n, bool kernel_addresses,
		 struct wire_calls *out);

/* Sets *row to a row of this process (borrowed) without any of the optional fields. */
void answer_row_init(struct arena *arena, struct process *process, struct wire_row *row);

/* Sets *out to n buckets without the empty ones at the end. 0 or -ENOMEM. */
int answer_buckets(struct arena *arena, const uint64_t *buckets, size_t n, struct int_list *out);

/* Sets answer->reply.snapshot.rows to a row for each of n groups. 0 or -ENOMEM. */
int answer_rows(struct answer *answer, struct aggregate_group *const *groups, size_t n,
		struct answer_stacks *stacks);

#endif
