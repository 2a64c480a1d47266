/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_ANSWER_H
#define STACKD_DAEMON_QUERY_ANSWER_H

/*
 * An answer while it is made: the arena its strings and arrays come from and the windows whose
 * stacks it borrows. Used by the query files only; see daemon/query/query.h for what others see.
 */

#include "common/arena.h"
#include "daemon/drain/call_stream.h"
#include "daemon/query/aggregate.h"
#include "daemon/query/query.h"
#include "daemon/store/timeline.h"
#include "proto/wire.h"

/* With all their frames they are less than a reply may be long. */
enum { CALLS_A_REPLY = 16 };

struct answer {
	struct arena *arena;
	struct timeline *timeline;   /* of the session in the range, or NULL */
	struct store *store;	     /* borrowed; whose reader it is */
	struct store_reader *reader; /* NULL: not opened, or there is nothing to read */
	struct aggregate *aggregate;
	struct session *session;	  /* a reference, or NULL */
	struct arena *step;		  /* of a stream: what one reply is made of, */
	struct call taken[CALLS_A_REPLY]; /* with the stacks that it borrows */
	size_t n_taken;
	uint64_t position;	   /* in the session's calls */
	uint64_t missed;	   /* of them, and not told of yet */
	bool kernel_addresses;	   /* of whom streams them */
	struct session **sessions; /* references */
	size_t n_sessions;
	union wire_reply reply;
};

struct answer *answer_new(void);

struct store;

/*
 * Returns the answer's reader of the store, which is opened when it is first asked for; NULL when
 * there is nothing to read: the status says what is wrong with the store.
 */
struct store_reader *answer_reader(struct answer *answer, struct store *store);

/* The probe of this name; -ENOENT with *error. */
int query_kind(const char *name, enum probe_kind *out, struct wire_error *error);

struct session_request;

/* What a client asks for as a session is made of it; borrows. -EINVAL or -ENOENT with *error. */
int query_request(uid_t uid, const struct wire_start_request *wire, struct session_request *out,
		  struct wire_error *error);

/* Fills *error, returns -ENOENT. */
int query_unknown_session(const char *text, struct wire_error *error);

/* The losses that are not zero, as wire structs; *out untouched when out of memory. */
int answer_losses(struct arena *arena, const uint64_t *lost, struct wire_losts *out);

struct openwait_stats;

/* User stacks of open waits that cannot be had, and why; empty: all can. NULL: out of memory. */
const char *answer_unread(struct arena *arena, const struct openwait_stats *stats);

/* The probes as wire structs. 0 or -ENOMEM. */
int answer_probe_list(struct recorder *recorder, struct arena *arena, struct wire_probes *out);

/* The flags a stack may have on the wire, NULL behind the last: for who gives them words. */
const char *answer_stack_flag(size_t i);

struct session;

/* A session as it is now; borrows its filter. 0 or -ENOMEM. */
int answer_session(struct arena *arena, struct session *session, struct wire_session *out);

struct answer_row_options {
	int64_t min_wait_ns;
	bool by_thread;
	bool kernel_addresses;	   /* whether the peer may see them */
	struct recorder *lines_of; /* source lines are wanted: who has what they need; else NULL */
};

/* Lets go of what the last reply of a stream was made of. */
void answer_step_fini(struct answer *answer);

/* Calls as wire structs, with their times as they are. 0 or -ENOMEM. */
int answer_calls(struct arena *arena, const struct call *calls, size_t n, bool kernel_addresses,
		 struct wire_calls *out);

void answer_process(const struct process_info *info, struct arena *arena, struct wire_process *out);

/* Rows for the groups [0, n) into answer->reply.snapshot; stacks are made once and shared. 0,
 * -ENOMEM. */
int answer_rows(struct answer *answer, struct aggregate_group *const *groups, size_t n,
		const struct answer_row_options *options);

#endif
