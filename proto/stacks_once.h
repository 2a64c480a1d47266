/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_PROTO_STACKS_ONCE_H
#define STACKD_PROTO_STACKS_ONCE_H

/*
 * Both sides of the parameter stacks_once of Snapshot: the one that answers leaves out stacks that
 * the call has had, and the one that asked puts them back. Each object belongs to one call and is
 * used by one thread at a time.
 */

#include "proto/wire.h"

struct arena;

/* True if the stack stands for one that the call has had. Each other has frames or flags. */
static inline bool stack_is_brief(const struct wire_stack *stack)
{
	return !stack->frames.n && !stack->flags.n;
}

/* Which stacks a call has sent. */
struct stacks_sent;

/* Returns NULL when out of memory. */
struct stacks_sent *stacks_sent_new(void);
struct stacks_sent *stacks_sent_free(struct stacks_sent *sent);

/* A row whose stacks have no frames if they were sent before. */
struct short_row {
	struct wire_row row;
	struct wire_stack kernel, user; /* what row.kernel and row.user point to */
};

/*
 * Sets *out to the row to send in place of `row`. A stack that is not known to have been sent with
 * these frames stays whole. *out borrows from `row` and must not be moved.
 */
void stacks_sent_shorten(const struct stacks_sent *sent, const struct wire_row *row,
			 struct short_row *out);

/* Notes the whole stacks of a row that was sent. */
void stacks_sent_note(struct stacks_sent *sent, const struct wire_row *row);

/* The whole stacks that a call has received. */
struct stacks_kept;

/* The stacks are copied into the arena. Returns NULL when out of memory. */
struct stacks_kept *stacks_kept_new(struct arena *arena);
struct stacks_kept *stacks_kept_free(struct stacks_kept *kept);
void stacks_kept_freep(struct stacks_kept **kept);

/*
 * Keeps the whole stacks of the rows of a reply, and replaces *rows by a copy in which all stacks
 * are whole. The copy is in `arena`, the stacks are in that of `kept`. Returns 0; -EBADMSG if a
 * stack without frames was not received before; or -ENOMEM.
 */
int stacks_kept_fill(struct stacks_kept *kept, struct arena *arena, struct wire_rows *rows);

#endif
