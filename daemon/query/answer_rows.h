/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_ANSWER_ROWS_H
#define STACKD_DAEMON_QUERY_ANSWER_ROWS_H

/*
 * What the files share that make rows: stacks as wire structs, each once (answer.c), of calls
 * told one by one too (answer_calls.c), and the source lines of their frames (answer_lines.c). One
 * thread; memory is the arena's.
 */

#include "daemon/base/hash_table.h"
#include "daemon/drain/drain.h"
#include "daemon/query/answer.h"

/* A stack that was made into wire structs already. */
struct stack_memo {
	const struct stack *stack;
	struct wire_stack wire;
	UT_hash_handle hh;
};

struct row_context {
	struct arena *arena;
	const struct answer_row_options *options;
	struct stack_memo *memos;
};

/* Makes one, or finds it again; *out is untouched for NULL. 0 or -ENOMEM. */
int answer_stack(struct row_context *context, const struct stack *stack,
		 const struct wire_stack **out);

/* What only sessions of calls have, absent for others; the rest of *out is filled. */
void answer_session_calls(struct session *session, const struct drain_stats *stats,
			  struct wire_session *out);

/* Gives the frames of all memos their lines, and says in the answer's notes what has none. */
int answer_lines(struct answer *answer, struct row_context *context);

#endif
