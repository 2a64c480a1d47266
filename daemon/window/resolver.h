/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_RESOLVER_H
#define STACKD_DAEMON_WINDOW_RESOLVER_H

/*
 * Finds the names of the frames of stacks. Drains queue each stack when it arrives, and each window
 * after the stacks that the window refers to. The resolver works in the order of the queue, so that
 * all stacks of a window have their names when the window is passed on. Owned by the recorder; has
 * a thread of its own, so that reading symbol tables never delays a drain.
 */

#include <stddef.h>
#include <stdint.h>

struct process_table;
struct resolver;
struct stack;
struct stack_table;
struct window;

/*
 * The receiver of windows whose stacks have been named. add() is called on the resolver's thread
 * and takes over the reference to the window. referred_bytes is the memory of all the stacks and
 * exited processes that windows refer to.
 */
struct window_sink {
	void (*add)(void *userdata, struct window *window, size_t referred_bytes);
	void *userdata;
};

/*
 * Starts the resolver and its thread. All pointers are borrowed and must outlive the resolver.
 * idle_functions is a list of names that ends with NULL; a stack with one of these functions is
 * marked as idle. 0, or a negative errno.
 */
int resolver_new(struct process_table *processes, struct stack_table *stacks,
		 const struct window_sink *sink, char *const *idle_functions,
		 struct resolver **out);

/* Resolves the stacks and passes on the windows that are still queued, then ends the thread. */
struct resolver *resolver_free(struct resolver *resolver);

/*
 * Limits of the queue, so that a file that is slow to read cannot fill the memory. Stacks and
 * windows beyond them are rejected and counted.
 */
enum { RESOLVER_MAX_STACKS = 65536, RESOLVER_MAX_WINDOWS = 64 };

struct resolver_stats {
	size_t stacks;		  /* stacks in the queue now */
	size_t windows;		  /* windows in the queue now */
	uint64_t stacks_dropped;  /* stacks rejected since the start; their ids stay unknown */
	uint64_t windows_dropped; /* windows rejected since the start */
	int64_t named_ns; /* all stacks queued before this time have names; CLOCK_MONOTONIC */
};

/*
 * Queues a stack to be named. Takes no reference: the stack table keeps every stack until it is
 * resolved. Never blocks. 0; -ENOBUFS when the queue is full; -ENOMEM. After an error the caller
 * must drop the stack.
 */
int resolver_add_stack(struct resolver *resolver, struct stack *stack);

/*
 * Queues a window, takes over the caller's reference, and gives the window a number, *seq_out, that
 * is higher than the number of every earlier window. 0, -ENOBUFS when the queue is full, or
 * -ENOMEM; on an error the window is dropped.
 */
int resolver_add_window(struct resolver *resolver, struct window *window, uint64_t *seq_out);

void resolver_stats(struct resolver *resolver, struct resolver_stats *out);

/*
 * Returns 0, or the negative errno with which the last attempt to read the kernel's symbols failed.
 */
int resolver_kernel_status(const struct resolver *resolver);

#endif
