/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_STACK_H
#define STACKD_DAEMON_WINDOW_STACK_H

/*
 * The table of stacks and frames, which keeps each distinct stack and each distinct frame once. A
 * stack is added as raw addresses, under the id that the BPF programs computed. Soon after, while
 * the process still has the same files mapped, the resolver adds frames with names to the stack.
 * Stacks are refcounted, and immutable once resolved. The table is owned by the recorder; any
 * thread may use it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/code_file.h"
#include "daemon/process/process.h"
#include "daemon/symbol/symbol.h"

struct frame {
	uint64_t file_id; /* hash that identifies the file; 0: unknown file */
	uint64_t file_offset;
	uint64_t name_offset;	/* offset of the address from the start of the function */
	char *name;		/* name of the function; NULL: unknown */
	char *module;		/* path or name of the file; NULL: unknown */
	struct code_file *code; /* the ELF file, if it has a build-id; a reference */
	enum frame_kind kind;
	unsigned int refs; /* number of stacks with this frame; guarded by the table's lock */
};

/*
 * These bits are stored on disk, so no bit may ever change its meaning: a new flag gets a new bit.
 * The same holds for the values of enum frame_kind.
 */
enum stack_flags {
	STACK_IS_TRUNCATED = 1 << 0, /* frames are missing: the stack had more than are kept */
	STACK_IS_FRAME_POINTERS =
		1 << 1, /* walked by frame pointers: the stack may end early or lack callers */
	STACK_IS_LOST = 1 << 2,	      /* the frames of the stack never arrived */
	STACK_IS_AMBIGUOUS = 1 << 3,  /* two different stacks have the same raw_id */
	STACK_IS_FAULT = 1 << 4,      /* the stack's memory could not be read, or only in part */
	STACK_IS_NEW_THREAD = 1 << 5, /* no stack: the thread had never run before */
	STACK_IS_NO_HOOK = 1 << 6,    /* no stack: the BPF program that takes stacks did not run */
	STACK_IS_UNREAD = 1 << 7,     /* no stack: not read yet, as the wait has not ended */
	/*
	 * A user stack may end before the thread's first function. The flags from here on say why.
	 */
	STACK_IS_NO_TABLE = 1 << 16, /* the unwind tables of a file in the stack were not loaded */
	STACK_IS_NO_MAPPING = 1 << 17, /* an address in the stack is in no known mapping */
	STACK_IS_NO_ROW = 1 << 18, /* the unwind tables have no entry for an address in the stack */
	/* with STACK_IS_TRUNCATED, _NO_TABLE or _NO_MAPPING: this is to keep within [budget] cpu */
	STACK_IS_SHED = 1 << 19,
	STACK_IS_COMPAT = 1 << 20, /* the thread runs 32-bit code, whose stacks are not walked */
	STACK_IS_FROZEN = 1 << 21, /* a kernel stack of a thread that waits to be thawed */
	/* a user stack of a thread that waits for what its program has made, such as a lock */
	STACK_IS_OF_PROGRAM = 1 << 22,
};

struct stack {
	uint64_t raw_id; /* id that the BPF programs computed; key in the stack table */
	uint64_t id;	 /* hash of the frames, see stack_id_of() */
	/*
	 * Hash of the frames without those of the scheduler at the leaf. If the kernel takes the
	 * stack of a thread that is asleep, it leaves these frames out. Therefore the same wait has
	 * the same place_id, whether the stack was taken during the wait or at its end.
	 */
	uint64_t place_id;
	uint64_t functions_id; /* hash of the functions, see stack_functions_id_of() */
	/* process of a user stack; NULL: this is a kernel stack, or one of several processes */
	struct process *process;
	uint64_t mappings; /* version of the process's memory mappings when the stack was taken */
	_Atomic unsigned int flags;
	_Atomic bool is_resolved; /* set last: when true, n_frames and frames[] may be read */
	bool is_user;		  /* a user stack that was recorded since the daemon started */
	/*
	 * a kernel stack that a sample took of a running thread: all of its frames are the
	 * thread's. Other kernel stacks have those of the hook that took them at the leaf.
	 */
	bool is_sample;
	/*
	 * true: each run of frames of generated (JIT) code was merged into one frame, so that the
	 * addresses in ip[] do not correspond to the entries of frames[]
	 */
	bool is_merged;
	bool lacks_symbols; /* the symbols of a file were not read when the stack was named */
	bool is_partial;    /* read from disk with only its first n_raw frames, see store_query */
	bool is_idle;	    /* true if the stack shows a thread that waits for work, see [idle] in
			       stackd.conf */
	/* kept by reason_find(): a reason plus 1; 0: not looked for yet */
	_Atomic unsigned char reason;
	_Atomic unsigned int refs;
	_Atomic unsigned int holds; /* number of those references that stack_hold() has marked */
	int64_t seen_ns; /* time at which stack_table_put() or stack_table_get() last returned this
			    stack */
	/*
	 * For stacks with frames of which the names may change: the version of the names that its
	 * frames have, see namer_renew(). 0: they do not change.
	 */
	_Atomic uint32_t names_version;
	uint32_t n_named; /* how many of the n_raw addresses have a name */
	size_t n_raw;
	size_t n_frames; /* number of entries in frames[]; frames of tracing code are left out */
	struct frame **frames;
	uint64_t *ip; /* n_raw addresses; the last n_frames of them belong to the entries of
			 frames[]. NULL: the addresses are not known */
};

/*
 * Returns the id by which rows of a window are grouped: rows whose stacks have the same id are
 * shown as one group. This is place_id, except if raw_id stands for two different stacks: raw_id is
 * returned then, which no other stack has, so that these two are not shown with others. 0 for NULL.
 */
static inline uint64_t stack_place(const struct stack *stack)
{
	if (!stack)
		return 0;
	return stack->flags & STACK_IS_AMBIGUOUS ? stack->raw_id : stack->place_id;
}

/*
 * Returns an id of the functions in the stack, by which rows of a window can be grouped. 0 for
 * NULL.
 */
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
	size_t bytes;	       /* memory of stacks, frames and names, in bytes */
	size_t referred_bytes; /* see stack_table_referred_bytes() */
	uint64_t ambiguous;    /* number of ids that stand for two different stacks */
	uint64_t unknown;      /* number of requests for a stack whose frames never arrived */
	uint64_t full;	       /* number of stacks rejected because the table was full */
};

/*
 * Makes an empty table that may take up to max_bytes. At max_bytes, new stacks are rejected. 0, or
 * -ENOMEM.
 */
int stack_table_new(size_t max_bytes, struct stack_table **out);

/* Changes max_bytes, the size at which the table rejects new stacks. Frees nothing at once. */
void stack_table_set_max(struct stack_table *table, size_t max_bytes);

/*
 * Sets `relieve`, a function that drops old windows and, with them, their references to stacks. It
 * is called when the table is full, before a new stack is rejected, on the thread that adds the
 * stack. Must be set before any stack is added.
 */
void stack_table_set_relief(struct stack_table *table, void (*relieve)(void *userdata),
			    void *userdata);
struct stack_table *stack_table_free(struct stack_table *table);

/*
 * Adds a stack that arrived through the ring buffer, or finds it if the table has it already. Sets
 * *is_new_out to true if the stack was added: the caller must then have it resolved. Takes a
 * reference of its own to process, which is NULL for a kernel stack. Returns the stack with a
 * reference for the caller; NULL when out of memory or over max_bytes.
 */
struct stack *stack_table_put(struct stack_table *table, uint64_t raw_id, struct process *process,
			      const uint64_t *ip, size_t n, bool *is_new_out);

/*
 * Removes a new stack from the table because it cannot be resolved, and drops the caller's
 * reference. If there are other references, the stack lives on for them, marked as lost.
 */
void stack_table_drop(struct stack_table *table, struct stack *stack);

/*
 * Returns the stack with this id, and a reference to it for the caller. If the id is an enum
 * stack_reason, or if no frames have arrived for it, returns a stack with a single made-up frame,
 * which says why there is no stack. NULL for STACK_NONE.
 */
struct stack *stack_table_get(struct stack_table *table, uint64_t raw_id, bool is_user);

/*
 * Makes a stack without frames that has the addresses and the process of `stack`, and the flags of
 * its walk, to be named anew. The caller has to pass it to stack_table_replace() or to
 * stack_table_discard(). NULL when out of memory or over max_bytes.
 */
struct stack *stack_table_again(struct stack_table *table, const struct stack *stack);

/*
 * Puts `again`, which has its frames now, in the place of `stack`: stack_table_get() finds it from
 * now on. Windows that refer to `stack` keep it. Returns a reference for the caller. If the table
 * has another stack there by now, frees `again` and returns NULL.
 */
struct stack *stack_table_replace(struct stack_table *table, struct stack *stack,
				  struct stack *again);
void stack_table_discard(struct stack_table *table, struct stack *again);

/*
 * Returns the stack that stack_table_replace() has put in the place of this one, with a reference
 * for the caller; NULL if there is none.
 */
struct stack *stack_table_successor(struct stack_table *table, const struct stack *stack);

/*
 * Finds the frame that has this symbol, or adds one with copies of the symbol's strings. The caller
 * must put the frame into a stack, which owns it from then on. NULL when out of memory.
 */
struct frame *stack_table_frame(struct stack_table *table, const struct symbol *symbol);

/*
 * Adds a reference to a frame of the table. The caller must put the frame into a stack, or drop the
 * reference by stack_table_drop_frame().
 */
void stack_table_ref_frame(struct stack_table *table, struct frame *frame);
void stack_table_drop_frame(struct stack_table *table, struct frame *frame);

/*
 * Returns a stack with the same frames and flags as `stack`, a user stack with names, and a
 * reference to it for the caller. All stacks with these frames and flags share this one, whatever
 * their process is. It has no addresses and no process. NULL if the stack cannot be shared or when
 * out of memory.
 */
struct stack *stack_table_share(struct stack_table *table, struct stack *stack);

/*
 * Frees stacks without references: those that were not used for keep_ns, those of processes that
 * have exited, and others if such stacks take more than 1/32 of max_bytes. Keeps stacks used
 * since cut_ns, the start of the open window (CLOCK_MONOTONIC): that window may refer to them, and
 * the BPF programs send each stack only once per window.
 */
void stack_table_sweep(struct stack_table *table, int64_t keep_ns, int64_t cut_ns);

void stack_table_stats(struct stack_table *table, struct stack_table_stats *out);

/* Returns how many times the calling thread asked for a stack whose frames never arrived. */
uint64_t stack_unknown_here(void);

/*
 * Returns the memory of all frames, and of the stacks to which windows referred when the last sweep
 * looked at them, in bytes.
 */
size_t stack_table_referred_bytes(struct stack_table *table);

/*
 * Marks one of the caller's references as one that keeps the stack only until its window is built.
 * Such references do not count in stack_table_referred_bytes(). stack_release_hold() drops such a
 * reference.
 */
void stack_hold(struct stack *stack);
void stack_release_hold(struct stack *stack);

struct stack *stack_ref(struct stack *stack);
struct stack *stack_unref(struct stack *stack);

#endif
