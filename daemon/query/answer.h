/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_ANSWER_H
#define STACKD_DAEMON_QUERY_ANSWER_H

/*
 * Used only in query: struct answer, and the functions that translate structs of the daemon into
 * structs of the wire protocol. An answer owns its memory (an arena) and holds the windows whose
 * stacks its reply refers to. It is made and used by one thread; query/query.h has the functions
 * for other folders.
 *
 * The source files of the folder form layers, listed here from the lowest to the highest; each
 * calls only files of lower layers. Sums: aggregate_set, aggregate_lacks < aggregate_index,
 * aggregate_iolat, aggregate_line < aggregate_groups < aggregate_waits < aggregate < absent,
 * answer_holders. Answers: answer_stacks < answer, answer_calls < snapshot_rows, answer_sessions,
 * stored_sessions, time_range < answer_iolat, snapshot_request < answer_rows < snapshot < ranges,
 * overview < follow, limits < status. The other files with queries (functions, metrics, sessions,
 * settled, windows) call answers and are called by none; the rest are helpers, which call no
 * answers.
 */

#include "common/arena.h"
#include "daemon/drain/call_stream.h"
#include "daemon/query/aggregate.h"
#include "daemon/query/query.h"
#include "daemon/store/timeline.h"
#include "proto/wire.h"

/*
 * The maximum number of function calls in one reply. If a reply had more calls, and each call had
 * the deepest possible stacks, the reply could exceed the maximum length of a message.
 */
enum { CALLS_A_REPLY = 16 };

struct answer_row_options {
	/* length in ns of the shortest wait that is always recorded with its stack */
	int64_t short_below_ns;
	bool by_thread;
	bool has_stacks; /* rows have stacks, and all waits of a row have the same ones */
	/* the property by which rows are grouped, if it is not stack, thread or process */
	enum group_by group;
	bool kernel_addresses; /* true if the client may see kernel addresses */
	bool build_ids;	       /* frames have the build-ids of their files */
	bool groups;	       /* rows have the names of their groups, if they have stacks */
	bool marks_own;	       /* these rows say, too, if they are of threads of stackd */
	/* of waits: the function of a group is that of aggregate_function(), not of its stacks */
	bool finds_functions;
	bool has_estimates; /* all figures are estimates: most samples were not recorded */
	struct process_table *processes; /* knows what culprits were called; may be NULL */
};

struct answer_stacks;
struct slices;

/*
 * The source of the rows of a snapshot. Rows are made when they are sent: all together, with
 * their stacks and names, they may need many times the memory of the groups.
 */
struct answer_source {
	struct aggregate_group **groups; /* groups of waits or samples, in the order of the rows */
	struct aggregate_io_group **io_groups; /* groups of I/O instead; owned by the answer */
	size_t n;			       /* number of rows */
	size_t n_released; /* the groups of these rows have given up their stacks */
	struct answer_row_options options;
	struct answer_stacks *stacks; /* the stacks of the rows that were made; in answer.arena */
};

struct answer {
	struct arena *arena; /* memory for the strings and arrays of the reply */
	/* the windows of the session in the range of the request; NULL: none */
	struct timeline *timeline;
	struct store *store;	     /* the store that `reader` reads; borrowed */
	struct store_reader *reader; /* reader of the store; NULL: not opened, or nothing to read */
	struct aggregate *aggregate;
	struct session *session; /* reference to the session that the answer is about; NULL: none */
	struct answer_source source;
	/* memory of the rows, or of the function calls, that the latest reply has */
	struct arena *step;
	/* used for a stream of function calls only: the calls in the latest reply */
	struct call taken[CALLS_A_REPLY];
	size_t n_taken;
	uint64_t position;	/* position in the stream of the function call that is sent next */
	int64_t real_offset_ns; /* see real_offset_renew(); for the times of calls */
	/* number of calls that this client has missed and that were not reported to it yet */
	uint64_t missed;
	/* true if the client that reads the stream may see kernel addresses */
	bool kernel_addresses;
	struct session **sessions; /* references to the sessions that a reply to Sessions lists */
	size_t n_sessions;
	struct slices *slices; /* the question of a snapshot; NULL: the answer is no snapshot */
	/* another answer follows, see query_overview_next() and query_snapshot_next() */
	bool has_next;
	size_t range; /* of an answer for one of several ranges: the index of the range */
	/* of an answer of an overview: its probe, and the time that the whole overview is about */
	enum probe_kind overview_kind;
	struct wire_range overview_range;
	union wire_reply reply; /* only the member that is named after the method is used */
};

/* Returns an empty answer, or NULL when out of memory. */
struct answer *answer_new(void);

/* Frees the sums from which rows are made. The rest of the reply stays valid. */
void answer_aggregate_free(struct answer *answer);

struct store;

/*
 * Returns a reader of the store; the first call opens it. Returns NULL if there is nothing to read;
 * if something is wrong with the store, the status of the daemon says what.
 */
struct store_reader *answer_reader(struct answer *answer, struct store *store);

/*
 * Sets *out to the counters in lost[WINDOW_LOST_N] that are not 0. Returns 0, or -ENOMEM with *out
 * unchanged.
 */
int answer_losses(struct arena *arena, const uint64_t *lost, struct wire_losts *out);

/*
 * Sets *out to the numbers of folded rows and processes, or to NULL if nothing was folded. Returns
 * 0 or -ENOMEM.
 */
int answer_folded(struct arena *arena, const struct window_folded *folded,
		  const struct wire_folded **out);

/*
 * Sets *out to what stackd cost in the windows of an answer; to NULL if they do not say. Returns 0
 * or -ENOMEM.
 */
int answer_cost(struct arena *arena, const struct window_cost *cost, const struct wire_cost **out);

struct openwait_stats;

/*
 * Returns a phrase about waits that have not ended: it says which of their user stacks cannot be
 * read, and why. It is empty if all can be read. Returns NULL when out of memory.
 */
const char *answer_unread(struct arena *arena, const struct openwait_stats *stats);

/* Sets *out to a list of all kinds of probes with the state of each. Returns 0 or -ENOMEM. */
int answer_probe_list(struct recorder *recorder, struct arena *arena, struct wire_probes *out);

/* Returns the name of the i-th flag that a stack may have on the wire; NULL after the last one. */
const char *answer_stack_flag(size_t i);

struct session;

/*
 * Sets *out to the present state of a session; borrows the session's filter. Returns 0 or -ENOMEM.
 */
int answer_session(struct arena *arena, struct session *session, struct wire_session *out);

/* Frees the memory and the calls of the latest reply of a stream of calls. */
void answer_step_fini(struct answer *answer);

/*
 * Translates n function calls to wire structs and leaves their times as they are. Returns 0 or
 * -ENOMEM.
 */
int answer_calls(struct arena *arena, const struct call *calls, size_t n, bool kernel_addresses,
		 struct wire_calls *out);

/*
 * Returns the process of a group; reads it from disk if necessary, also while the windows of the
 * answer are loaded. NULL if the group has no process, or when out of memory.
 */
struct process *answer_process(struct answer *answer, const struct aggregate_process *process);

/*
 * Sets *row to a row of the process as it was at the time at_ns of CLOCK_MONOTONIC, without any of
 * the optional fields. If `process` is NULL, the row is of no process.
 */
void answer_row_init(struct arena *arena, struct process *process, int64_t at_ns,
		     struct wire_row *row);

/* Copies n buckets to *out, without the empty ones at the end. Returns 0 or -ENOMEM. */
int answer_buckets(struct arena *arena, const uint64_t *buckets, size_t n, struct int_list *out);

/*
 * Makes answer->source ready to make rows. The caller sets the groups and their number. Returns 0
 * or -ENOMEM.
 */
int answer_source_init(struct answer *answer, const struct answer_row_options *options);

/*
 * Makes all rows at once and sets answer->reply.snapshot.rows to them, because something needs the
 * stacks of all rows together. Returns 0 or -ENOMEM.
 */
int answer_rows_make(struct answer *answer);

#endif
