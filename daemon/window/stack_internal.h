/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_STACK_INTERNAL_H
#define STACKD_DAEMON_WINDOW_STACK_INTERNAL_H

/*
 * Private header of the files that implement stack.h. stack.c has the stacks, stack_frames.c their
 * frames. Functions are called with stack_table.lock held.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/shared.h"
#include "daemon/base/hash_table.h"
#include "daemon/window/stack.h"

enum { REASONS = STACK_ID_FIRST, LOST_KERNEL = REASONS, LOST_USER, PSEUDOS };

struct frame_key {
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
	UT_hash_handle hh;	  /* handle in stack_table.stacks; the key is stack.raw_id */
};

struct stack_table {
	pthread_mutex_t lock;
	struct stack_entry *stacks;
	struct stack_entry *sweep_next; /* next stack of the sweep in progress, or NULL */
	struct stack_entry *dropped;	/* list of stacks that were removed from the table but are
					   still referenced */
	struct frame_entry *frames;
	/*
	 * Stacks with a single made-up frame, which says why there is no stack. The index is an
	 * enum stack_reason, LOST_KERNEL or LOST_USER.
	 */
	struct stack pseudo[PSEUDOS];
	size_t bytes;
	size_t max_bytes;
	void (*relieve)(void *userdata);
	void *relieve_data;
	int64_t relieve_after_ns; /* earliest time at which relieve() may be called again */
	uint64_t ambiguous;
	uint64_t unknown;
	uint64_t full;
};

/*
 * Drops the reference that a stack has to one of its frames. Frees the frame if no other stack has
 * it.
 */
void stack_frame_release(struct stack_table *table, struct frame *frame);

#endif
