/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_ANSWER_STACKS_H
#define STACKD_DAEMON_QUERY_ANSWER_STACKS_H

/*
 * Private to the files that make snapshots and lists of calls: translates stacks into wire structs,
 * each stack once even if several rows have it, and adds the source lines of frames
 * (answer_lines.c). The memory is that of the arena; each answer is made by one thread.
 */

#include "common/hash_table.h"
#include "daemon/query/answer.h"

/* A stack and the wire struct that was made of it. */
struct answer_stack_entry {
	const struct stack *stack;
	struct wire_stack wire;
	UT_hash_handle hh;
};

/*
 * The stacks of the rows that an answer has made. The caller sets the members `arena` and
 * `options`, and leaves `entries` NULL.
 */
struct answer_stacks {
	struct arena *arena;
	const struct answer_row_options *options;
	struct store_reader *reader; /* reads the frames of stacks on disk; may be NULL */
	/* a hash table; the memory of its entries is in the arena */
	struct answer_stack_entry *entries;
	/* the file whose build-id was written last, and its text; NULL: none so far */
	const struct code_file *code;
	const char *build_id;
};

/* Frees the hash table, but not the wire structs, which live as long as the arena. Called before
 * the arena is freed. */
void answer_stacks_fini(struct answer_stacks *stacks);

/*
 * Sets *out to the wire struct of a stack; leaves *out unchanged if `stack` is NULL. Returns 0 or
 * -ENOMEM.
 */
int answer_stack(struct answer_stacks *stacks, struct stack *stack, const struct wire_stack **out);

/*
 * Does what answer_stack() does for a stack that begins with frame number `from`; *out is NULL if
 * `stack` is.
 */
int answer_callers(struct answer_stacks *stacks, struct stack *stack, uint32_t from,
		   const struct wire_stack **out);

/*
 * Sets *out to a stack with a single frame, whose name says that the row is the sum of the waits
 * shorter than the minimum length. Returns 0 or -ENOMEM.
 */
int answer_short_stack(struct answer_stacks *stacks, const struct wire_stack **out);

/*
 * Adds source lines and inlined functions to the frames of all stacks, and notes to the answer that
 * say which lines are missing. Returns 0 or -ENOMEM.
 */
int answer_lines(struct recorder *recorder, struct answer *answer, struct answer_stacks *stacks);

#endif
