/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_STACK_INTERNAL_H
#define STACKD_DAEMON_WINDOW_STACK_INTERNAL_H

/*
 * Private header of the files that implement stack.h, each of which calls only those before it:
 * stack_frames.c has the frames, stack.c the stacks, and stack_share.c finds or adds shared stacks.
 * Functions are called with stack_table.lock held.
 */

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/shared.h"
#include "common/hash_table.h"
#include "daemon/window/stack.h"

/*
 * Stacks and frames come and go all the time, and uthash never makes a table smaller. With each
 * entry that is added, some chain may reach the length that doubles the buckets, so with the short
 * chains of hash_table.h the tables would grow for hours: after minutes they had 5 to 10 buckets
 * for each entry, 6 MiB in all.
 */
#undef HASH_BKT_CAPACITY_THRESH
#define HASH_BKT_CAPACITY_THRESH 10U

/* Indexes of the table's made-up stacks, behind those of enum stack_reason. */
enum { REASONS = STACK_ID_FIRST, LOST_KERNEL = REASONS, LOST_USER, PSEUDOS };

struct frame_key {
	/*
	 * frame.file_id, combined with frame.code->hash: a file may have the build-id of another
	 * one, whose frames must not get its segments
	 */
	uint64_t file_id;
	uint64_t file_offset;
	uint64_t kind;
	uint64_t name;	 /* hash of the function's name; 0: no name yet */
	uint64_t module; /* hash of the file's path (one file may have two paths); 0: no path */
};

struct frame_entry {
	struct frame frame;
	struct frame_key key;
	UT_hash_handle hh; /* handle in the hash table stack_table.frames */
};

struct stack_entry {
	struct stack stack;
	struct stack_entry *next; /* next entry in the list stack_table.dropped */
	size_t n_raw, n_frames;	  /* room in stack.ip and in stack.frames */
	/* handle in stack_table.stacks or stack_table.shared; the key is stack.raw_id */
	UT_hash_handle hh;
};

struct stack_table {
	pthread_mutex_t lock;
	struct stack_entry *stacks;
	struct stack_entry *sweep_next; /* next stack of the sweep in progress, or NULL */
	struct stack_entry *dropped;	/* list of stacks that were removed from the table but are
					   still referenced: those that were lost, and those that
					   were replaced, which count in `bytes` */
	struct frame_entry *frames;
	struct stack_entry *shared; /* see stack_table_share() */
	/*
	 * Stacks with a single made-up frame, which says why there is no stack. The index is an
	 * enum stack_reason, LOST_KERNEL or LOST_USER.
	 */
	struct stack pseudo[PSEUDOS];
	size_t bytes;
	size_t frame_bytes;    /* part of `bytes` that frames and names take */
	size_t referred_bytes; /* see stack_table_referred_bytes() */
	size_t max_bytes;
	void (*relieve)(void *userdata);
	void *relieve_data;
	int64_t relieve_after_ns; /* relieve() frees memory; it is not called before this time */
	uint64_t ambiguous;
	uint64_t unknown;
	uint64_t full;
};

/*
 * Makes a stack with room for n_raw addresses and n_frames frames; NULL when out of memory. The
 * arrays are part of the entry, so free() frees them, too.
 */
struct stack_entry *stack_entry_new(uint64_t raw_id, size_t n_raw, size_t n_frames);
/* Returns the memory that an entry takes which stack_entry_new() made, in bytes. */
size_t stack_entry_bytes(const struct stack_entry *entry);

/*
 * Drops the reference that a stack has to one of its frames. Frees the frame if no other stack has
 * it.
 */
void stack_frame_release(struct stack_table *table, struct frame *frame);

#endif
