/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_STACK_H
#define STACKD_DAEMON_WINDOW_STACK_H

/*
 * The table of stacks and frames, which keeps equal stacks and equal frames only once. A stack is
 * added as raw addresses with the id that the BPF programs computed; soon after, while the process
 * still has the same files mapped, the resolver adds its frames, with names. Stacks are refcounted,
 * and immutable once resolved. The table is owned by the recorder; any thread may use it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/process/process.h"
#include "daemon/symbol/symbol.h"

struct frame {
	uint64_t file_id; /* hash that identifies the file; 0: the file is unknown */
	uint64_t file_offset;
	uint64_t name_offset; /* offset of the address from the start of the function */
	char *name;	      /* name of the function; NULL: unknown */
	char *module;	      /* path or name of the file; NULL: unknown */
	enum frame_kind kind;
	unsigned int refs; /* number of stacks that have the frame; guarded by the table's lock */
};

/*
 * These bits are stored on disk, so no bit may ever change its meaning: a new flag gets a new bit.
 * The same holds for the values of enum frame_kind.
 */
enum stack_flags {
	STACK_IS_TRUNCATED = 1 << 0, /* the stack has more frames than were kept */
	STACK_IS_FRAME_POINTERS =
		1 << 1,		      /* walked by frame pointers: may end early or skip callers */
	STACK_IS_LOST = 1 << 2,	      /* the frames of the stack never arrived */
	STACK_IS_AMBIGUOUS = 1 << 3,  /* two different stacks have the same raw_id */
	STACK_IS_FAULT = 1 << 4,      /* the stack's memory could not be read, or not to its end */
	STACK_IS_NEW_THREAD = 1 << 5, /* the thread has not run yet */
	STACK_IS_NO_HOOK = 1 << 6,    /* the BPF program that takes stacks did not run */
	STACK_IS_UNREAD = 1 << 7,     /* the stack of an open wait, which was not read */
	/* The reason why a user stack ends before the thread's first function: */
	STACK_IS_NO_TABLE = 1 << 16,   /* the unwind rows of a file were not loaded */
	STACK_IS_NO_MAPPING = 1 << 17, /* an address is in no known mapping */
	STACK_IS_NO_ROW = 1 << 18,     /* no unwind row covers an address */
};

struct stack {
	uint64_t raw_id; /* id that the BPF programs computed; the key in the table */
	uint64_t id;	 /* hash of the frames, see stack_id_of() */
	/*
	 * Hash of the frames without the scheduler's own frames at the leaf. The kernel leaves
	 * those out of the stack of a thread that is still asleep, so place_id is the same before
	 * and after the end of a wait.
	 */
	uint64_t place_id;
	uint64_t functions_id;	 /* hash of the functions, see stack_functions_id_of() */
	struct process *process; /* the process of a user stack; NULL: this is a kernel stack */
	uint64_t mappings;	 /* version of the process's mappings when the stack was taken */
	_Atomic unsigned int flags;
	_Atomic bool is_resolved; /* set last; once it is true, n_frames and frames[] may be read */
	bool is_idle;		  /* the thread waits for work, see [idle] in the settings */
	_Atomic unsigned int refs;
	int64_t seen_ns; /* time of the last stack_table_put() or stack_table_get() */
	size_t n_raw;
	size_t n_frames; /* number of frames[], which do not include the tracing code */
	struct frame **frames;
	uint64_t *ip; /* n_raw addresses; the last n_frames of these belong to frames[] */
};

/*
 * Returns the id by which rows are grouped by stack; 0 for NULL. Each stack with an ambiguous id is
 * a group of its own.
 */
static inline uint64_t stack_place(const struct stack *stack)
{
	if (!stack)
		return 0;
	return stack->flags & STACK_IS_AMBIGUOUS ? stack->raw_id : stack->place_id;
}

/* Returns the id by which rows are grouped by the functions of a stack; 0 for NULL. */
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
	uint64_t ambiguous; /* number of ids that two different stacks have */
	uint64_t unknown;   /* requests for a stack whose frames never arrived */
	uint64_t full; /* stacks rejected because the table had max_bytes; their ids are unknown */
};

/*
 * Makes an empty table for up to max_bytes. Above half of max_bytes, stack_table_sweep() drops
 * unreferenced stacks regardless of their age; at max_bytes, new stacks are rejected. 0, or
 * -ENOMEM.
 */
int stack_table_new(size_t max_bytes, struct stack_table **out);

/* Changes max_bytes. The new limit holds from the next stack on. */
void stack_table_set_max(struct stack_table *table, size_t max_bytes);

/*
 * Sets `relieve`, a function that gives up references to old stacks to make room. It is called when
 * the table is full, before a stack is rejected, on the thread that puts the stack. Must be set
 * before any stack is put.
 */
void stack_table_set_relief(struct stack_table *table, void (*relieve)(void *userdata),
			    void *userdata);
struct stack_table *stack_table_free(struct stack_table *table);

/*
 * Adds a stack that arrived through the ring, or finds the stack if the table has it already. Sets
 * *is_new_out to true if the stack was added: the caller must then have it resolved. Takes a
 * reference to process, which is NULL for a kernel stack. Returns the stack with a reference for
 * the caller; NULL when out of memory or over max_bytes.
 */
struct stack *stack_table_put(struct stack_table *table, uint64_t raw_id, struct process *process,
			      const uint64_t *ip, size_t n, bool *is_new_out);

/*
 * Removes a new stack from the table because it cannot be resolved, and drops the caller's
 * reference. If other references exist, the stack stays for them, marked as lost.
 */
void stack_table_drop(struct stack_table *table, struct stack *stack);

/*
 * Returns the stack with this id, with a reference for the caller. If the id stands for a reason
 * (enum stack_reason), or if the frames of the stack never arrived, returns a stack with one pseudo
 * frame and a flag. NULL for STACK_NONE.
 */
struct stack *stack_table_get(struct stack_table *table, uint64_t raw_id, bool is_user);

/*
 * Finds the frame of a symbol, or adds it with copies of the symbol's strings. The caller must put
 * the frame into a stack, which owns it from then on. NULL when out of memory.
 */
struct frame *stack_table_frame(struct stack_table *table, const struct symbol *symbol);

/*
 * Drops unreferenced stacks that were not seen for keep_ns; above half of max_bytes, unreferenced
 * stacks of any age. Keeps stacks seen since cut_ns (CLOCK_MONOTONIC, the last cut): the open
 * window will refer to them, and the BPF programs send each stack once per window.
 */
void stack_table_sweep(struct stack_table *table, int64_t keep_ns, int64_t cut_ns);

void stack_table_stats(struct stack_table *table, struct stack_table_stats *out);

/* Returns how often the calling thread asked for a stack whose frames never arrived. */
uint64_t stack_unknown_here(void);

/* Returns stack_table_stats.bytes at less cost than stack_table_stats(). */
size_t stack_table_bytes(struct stack_table *table);

struct stack *stack_ref(struct stack *stack);
struct stack *stack_unref(struct stack *stack);

#endif
