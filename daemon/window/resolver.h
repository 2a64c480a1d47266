/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_RESOLVER_H
#define STACKD_DAEMON_WINDOW_RESOLVER_H

/*
 * Names the frames of stacks. Drains queue stacks as they arrive, and each window after the stacks
 * that it refers to; the resolver works in that order, so that it passes a window on when its
 * stacks have their names. Owned by the recorder; has a thread of its own, so that reading symbol
 * tables never delays a drain.
 */

#include <stddef.h>
#include <stdint.h>

struct process_table;
struct resolver;
struct stack;
struct stack_table;
struct window;

/*
 * Takes the windows whose stacks have been named. referred_bytes: memory of the tables that all
 * windows together refer to. Called on the resolver's thread.
 */
struct window_sink {
	void (*add)(void *userdata, struct window *window, size_t referred_bytes);
	void *userdata;
};

/*
 * Starts the thread. All pointers are borrowed and must outlive the resolver. idle_functions ends
 * with NULL; a stack with one of these functions is idle. 0, or a negative errno.
 */
int resolver_new(struct process_table *processes, struct stack_table *stacks,
		 const struct window_sink *sink, char *const *idle_functions,
		 struct resolver **out);

/* Resolves what is queued, then ends the thread. */
struct resolver *resolver_free(struct resolver *resolver);

/*
 * Limits of the queue, so that a file that is slow to read cannot fill the memory. Stacks and
 * windows beyond them are rejected and counted.
 */
enum { RESOLVER_MAX_STACKS = 65536, RESOLVER_MAX_WINDOWS = 64 };

struct resolver_stats {
	size_t stacks; /* in the queue now */
	size_t windows;
	uint64_t stacks_dropped; /* rejected since the start; their ids stay unknown */
	uint64_t windows_dropped;
	int64_t named_ns; /* all stacks queued before have been named, CLOCK_MONOTONIC */
};

/*
 * Queues a stack to be named. Borrows it: its table keeps a stack until it is resolved. Never
 * blocks. 0, -ENOBUFS when the queue is full, or -ENOMEM: then the caller must drop the stack.
 */
int resolver_add_stack(struct resolver *resolver, struct stack *stack);

/*
 * Queues a window, with the caller's reference, and numbers it: *seq_out is higher than that of
 * every window before. 0; on -ENOBUFS and -ENOMEM the window is dropped.
 */
int resolver_add_window(struct resolver *resolver, struct window *window, uint64_t *seq_out);

void resolver_stats(struct resolver *resolver, struct resolver_stats *out);

/* 0, or the negative errno with which the last reading of the kernel's symbols failed. */
int resolver_kernel_status(const struct resolver *resolver);

#endif
