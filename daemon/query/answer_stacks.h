/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_ANSWER_STACKS_H
#define STACKD_DAEMON_QUERY_ANSWER_STACKS_H

/*
 * Private to the files that make snapshots and calls of an answer: stacks as wire structs, each
 * made once however many rows have it, and the source lines of their frames (answer_lines.c).
 * Memory is the arena's; each answer is made by one thread.
 */

#include "daemon/base/hash_table.h"
#include "daemon/query/answer.h"

/* A stack and the wire struct that was made of it. */
struct answer_stack_entry {
	const struct stack *stack;
	struct wire_stack wire;
	UT_hash_handle hh;
};

/* All stacks of one answer. Begins with arena and options set, and no entries. */
struct answer_stacks {
	struct arena *arena;
	const struct answer_row_options *options;
	struct answer_stack_entry *entries; /* a hash table; its entries are the arena's */
};

/* Frees the hash table; the wire structs live on with the arena. */
void answer_stacks_fini(struct answer_stacks *stacks);

/* Sets *out to the wire struct of a stack; leaves it alone for NULL. 0 or -ENOMEM. */
int answer_stack(struct answer_stacks *stacks, const struct stack *stack,
		 const struct wire_stack **out);

/* Makes a stack of one frame that names the waits under the minimum. 0 or -ENOMEM. */
int answer_short_stack(struct answer_stacks *stacks, const struct wire_stack **out);

/*
 * Adds source lines and inlined functions to the frames of all stacks, and a note to the answer
 * about those that have none. 0 or -ENOMEM.
 */
int answer_lines(struct recorder *recorder, struct answer *answer, struct answer_stacks *stacks);

#endif
