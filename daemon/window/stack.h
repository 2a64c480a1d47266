/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_STACK_H
#define STACKD_DAEMON_WINDOW_STACK_H

/*
 * Stacks and frames, each kept once: in come raw addresses with the id BPF gave them, out come
 * refcounted stacks whose frames the resolver names while the names are true. The table is owned
 * by the recorder; its functions may be called from any thread, a resolved stack is immutable.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/process/process.h"
#include "daemon/symbol/symbol.h"

struct frame {
	uint64_t file_id;
	uint64_t file_offset;
	uint64_t name_offset;
	char *name;   /* NULL: unknown */
	char *module; /* NULL: unknown */
	enum frame_kind kind;
	unsigned int refs; /* of stacks; guarded by the table */
};

/* Kept on disk: a bit that was used is never given another meaning; the same for frame_kind. */
enum stack_flags {
	STACK_IS_TRUNCATED = 1 << 0, /* deeper than what is taken */
	STACK_IS_FRAME_POINTERS =
		1 << 1,		     /* walked by frame pointers: may end early or skip callers */
	STACK_IS_LOST = 1 << 2,	     /* its frames never arrived */
	STACK_IS_AMBIGUOUS = 1 << 3, /* two stacks claimed this id */
	STACK_IS_FAULT = 1 << 4,     /* could not be read, or not to its end */
	STACK_IS_NEW_THREAD = 1 << 5,
	STACK_IS_NO_HOOK = 1 << 6, /* the hook that takes stacks did not run */
	STACK_IS_UNREAD = 1 << 7,  /* open wait: the user part is not read */
	/* Why a user stack ends before the thread's first function: */
	STACK_IS_NO_TABLE = 1 << 16,   /* the rows of a file were not loaded */
	STACK_IS_NO_MAPPING = 1 << 17, /* an address in nothing known to be mapped */
	STACK_IS_NO_ROW = 1 << 18,     /* no row says how to go on */
};

struct stack {
	uint64_t raw_id;
	uint64_t id; /* over the identity and offset of every frame: equal across processes */
	/*
	 * As id, but without the scheduler's own frames at the leaf, which the kernel leaves out of
	 * the stack of a thread that is still asleep: one place is one row, ended or not.
	 */
	uint64_t place_id;
	uint64_t functions_id;	 /* as id, with where a frame's function begins for where it is */
	struct process *process; /* NULL: a kernel stack */
	uint64_t mappings;	 /* of the process, as in record_stack */
	_Atomic unsigned int flags;
	_Atomic bool is_resolved; /* set last: then n_frames and frames[] are there to read */
	bool is_idle;		  /* a wait that nobody minds, by its functions */
	_Atomic unsigned int refs;
	int64_t seen_ns;
	size_t n_raw;
	size_t n_frames; /* after the tracer's own frames are dropped */
	struct frame **frames;
	uint64_t *ip; /* n_raw addresses; those of frames are the last n_frames */
};

/* What tells places apart; an id that two stacks claimed stands for no place but its own. */
static inline uint64_t stack_place(const struct stack *stack)
{
	if (!stack)
		return 0;
	return stack->flags & STACK_IS_AMBIGUOUS ? stack->raw_id : stack->place_id;
}

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
	size_t bytes;	    /* of stacks, frames and their names */
	uint64_t ambiguous; /* ids claimed by two stacks */
	uint64_t unknown;   /* ids whose frames never arrived */
	uint64_t full;	    /* stacks turned away at max_bytes; their ids are unknown */
};

/*
 * Above half of max_bytes only stacks that somebody references stay, at max_bytes new ones are
 * turned away.
 */
int stack_table_new(size_t max_bytes, struct stack_table **out);

/* Another limit, from the next stack on. */
void stack_table_set_max(struct stack_table *table, size_t max_bytes);

/*
 * Before new ones are turned away, relieve is called: it gives up references to old ones. On the
 * thread that puts. To be set before any stack is put.
 */
void stack_table_set_relief(struct stack_table *table, void (*relieve)(void *userdata),
			    void *userdata);
struct stack_table *stack_table_free(struct stack_table *table);

/*
 * Adds what the ring brought, or finds it again: *is_new_out tells whether it must be resolved.
 * Takes a reference to process (may be NULL). Returns the stack with a reference for the caller,
 * NULL when out of memory or room.
 */
struct stack *stack_table_put(struct stack_table *table, uint64_t raw_id, struct process *process,
			      const uint64_t *ip, size_t n, bool *is_new_out);

/*
 * Takes out a stack that was just put and is new, with the reference of who put it. Whoever was
 * given it meanwhile has a stack that was lost.
 */
void stack_table_drop(struct stack_table *table, struct stack *stack);

/*
 * The stack of an id, with a reference for the caller; for an id that is a reason, or whose
 * frames never arrived, a stack with one pseudo frame and a flag. NULL for STACK_NONE.
 */
struct stack *stack_table_get(struct stack_table *table, uint64_t raw_id, bool is_user);

/*
 * The one frame of this identity; symbol's strings are copied. Owned by the stack it goes to. NULL
 * when out of memory.
 */
struct frame *stack_table_frame(struct stack_table *table, const struct symbol *symbol);

/*
 * Drops stacks that nobody references and that were not seen for keep_ns, or when short of room.
 * Not those seen since cut_ns, CLOCK_MONOTONIC: the open window will want them, and they come only
 * once.
 */
void stack_table_sweep(struct stack_table *table, int64_t keep_ns, int64_t cut_ns);

void stack_table_stats(struct stack_table *table, struct stack_table_stats *out);

/* Of the unknown ids in the stats those that the calling thread asked for. */
uint64_t stack_unknown_here(void);

/* As in the stats: what to add to what windows hold. */
size_t stack_table_bytes(struct stack_table *table);

struct stack *stack_ref(struct stack *stack);
struct stack *stack_unref(struct stack *stack);

#endif
