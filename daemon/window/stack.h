/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_STACK_H
#define STACKD_DAEMON_WINDOW_STACK_H

/*
 * The table of stacks and frames, each of which is kept once. Stacks are added as raw addresses
 * with the id that the BPF programs gave them; the resolver adds their frames, with names, soon
 * after, while the process still has the same files mapped. Stacks are refcounted, and immutable
 * once resolved. The table is owned by the recorder; any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/process/process.h"
#include "daemon/symbol/symbol.h"

struct frame {
	uint64_t file_id; /* a hash of the file's identity; 0: unknown */
	uint64_t file_offset;
	uint64_t name_offset; /* offset from the start of the function */
	char *name;	      /* NULL: unknown */
	char *module;	      /* NULL: unknown */
	enum frame_kind kind;
	unsigned int refs; /* the number of stacks that have it; guarded by the table's lock */
};

/* On disk these bits, as enum frame_kind, keep their meaning for ever: new ones get new bits. */
enum stack_flags {
	STACK_IS_TRUNCATED = 1 << 0, /* deeper than STACK_DEPTH */
	STACK_IS_FRAME_POINTERS =
		1 << 1,		      /* walked by frame pointers: may end early or skip callers */
	STACK_IS_LOST = 1 << 2,	      /* its frames never arrived */
	STACK_IS_AMBIGUOUS = 1 << 3,  /* two stacks claimed this id */
	STACK_IS_FAULT = 1 << 4,      /* its memory could not be read, or not to its end */
	STACK_IS_NEW_THREAD = 1 << 5, /* the thread has not run yet */
	STACK_IS_NO_HOOK = 1 << 6,    /* the program that takes stacks did not run */
	STACK_IS_UNREAD = 1 << 7,     /* an open wait whose user stack was not read */
	/* The reason why a user stack ends before the thread's first function: */
	STACK_IS_NO_TABLE = 1 << 16,   /* the unwind rows of a file were not loaded */
	STACK_IS_NO_MAPPING = 1 << 17, /* an address is in no known mapping */
	STACK_IS_NO_ROW = 1 << 18,     /* no unwind row covers an address */
};

struct stack {
	uint64_t raw_id; /* as the BPF programs hash it; the key in the table */
	uint64_t id;	 /* see stack_id_of() */
	/*
	 * The id without the scheduler's own frames at the leaf. The kernel leaves these out of the
	 * stack of a thread that is still asleep, so a wait has one place_id, ended or not.
	 */
	uint64_t place_id;
	uint64_t functions_id;	 /* see stack_functions_id_of() */
	struct process *process; /* NULL: a kernel stack */
	uint64_t mappings;	 /* version of the process's mappings, as in struct record_stack */
	_Atomic unsigned int flags;
	_Atomic bool is_resolved; /* set last: from then on n_frames and frames[] may be read */
	bool is_idle; /* its functions show a wait for work, see [idle] in the settings */
	_Atomic unsigned int refs;
	int64_t seen_ns; /* when it was last put or got */
	size_t n_raw;
	size_t n_frames; /* without the frames of tracing itself */
	struct frame **frames;
	uint64_t *ip; /* n_raw addresses; the last n_frames of them are those of frames[] */
};

/* The id by which rows are grouped: stacks with an ambiguous id are a group of their own each. */
static inline uint64_t stack_place(const struct stack *stack)
{
	if (!stack)
		return 0;
	return stack->flags & STACK_IS_AMBIGUOUS ? stack->raw_id : stack->place_id;
}

/* The id by which rows are grouped by function. 0 for NULL. */
static inline uint64_t stack_functions(const struct stack *stack)
{
	if (!stack)
		return 0;
	return stack->flags & STACK_IS_AMBIGUOUS ? stack->raw_id : stack->functions_id;
}

struct stack_table;

struct stack_table_stats {
	size_t stacks;
	size_t frames;
	size_t bytes;	    /* memory of stacks, frames and their names */
	uint64_t ambiguous; /* ids that two different stacks have */
	uint64_t unknown;   /* ids whose frames never arrived */
	uint64_t full;	    /* stacks rejected at max_bytes; their ids are unknown */
};

/*
 * Makes an empty table. Above half of max_bytes, a sweep leaves only stacks that are referenced; at
 * max_bytes new stacks are rejected. 0, or -ENOMEM.
 */
int stack_table_new(size_t max_bytes, struct stack_table **out);

/* Changes the limit, from the next stack on. */
void stack_table_set_max(struct stack_table *table, size_t max_bytes);

/*
 * Sets a function that is called before a stack is rejected, on the thread that puts it, to give up
 * references to old stacks. Must be set before any stack is put.
 */
void stack_table_set_relief(struct stack_table *table, void (*relieve)(void *userdata),
			    void *userdata);
struct stack_table *stack_table_free(struct stack_table *table);

/*
 * Adds a stack that the ring brought, or finds it again. *is_new_out: it was added, and must be
 * resolved. Takes a reference to process, which is NULL for a kernel stack. Returns the stack with
 * a reference for the caller; NULL when out of memory or over max_bytes.
 */
struct stack *stack_table_put(struct stack_table *table, uint64_t raw_id, struct process *process,
			      const uint64_t *ip, size_t n, bool *is_new_out);

/*
 * Takes a new stack out of the table again, with the caller's reference, because it cannot be
 * resolved. For those who got it meanwhile it becomes a stack that was lost.
 */
void stack_table_drop(struct stack_table *table, struct stack *stack);

/*
 * Returns the stack of an id, with a reference for the caller. For an id that is a reason (see enum
 * stack_reason), or whose frames never arrived, that is a stack with one pseudo frame and a flag.
 * NULL for STACK_NONE.
 */
struct stack *stack_table_get(struct stack_table *table, uint64_t raw_id, bool is_user);

/*
 * Finds the frame of a symbol or adds it, copying its strings. The caller must add it to a stack,
 * which owns it from then on. NULL when out of memory.
 */
struct frame *stack_table_frame(struct stack_table *table, const struct symbol *symbol);

/*
 * Drops stacks without references that have not been seen for keep_ns, or at any age above half of
 * max_bytes. Keeps those seen since cut_ns, CLOCK_MONOTONIC: the open window will want them, and
 * programs send a stack once per window.
 */
void stack_table_sweep(struct stack_table *table, int64_t keep_ns, int64_t cut_ns);

void stack_table_stats(struct stack_table *table, struct stack_table_stats *out);

/* The number of unknown ids, as in the stats, that the calling thread has asked for. */
uint64_t stack_unknown_here(void);

/* The bytes of the stats, at less cost. */
size_t stack_table_bytes(struct stack_table *table);

struct stack *stack_ref(struct stack *stack);
struct stack *stack_unref(struct stack *stack);

#endif
