/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_RESOLVER_H
#define STACKD_DAEMON_WINDOW_RESOLVER_H

/*
 * Finds the names of the functions in stacks. The drain of each session queues a stack when it
 * arrives, and a window after all stacks that the window refers to. The resolver works in the order
 * of the queue, so the stacks of a window have their names when it passes the window on. Owned by
 * the recorder; has a thread of its own, so that reading symbol tables never delays a drain.
 */

#include <stddef.h>
#include <stdint.h>

struct process_table;
struct resolver;
struct stack;
struct stack_table;
struct window;

/*
 * The receiver of windows. The resolver's thread calls add() for each window when all stacks of the
 * window have names; add() takes over the reference to the window. referred_bytes is the memory of
 * all stacks and exited processes that windows refer to.
 */
struct window_sink {
	void (*add)(void *userdata, struct window *window, size_t referred_bytes);
	void *userdata;
};

/*
 * Starts the resolver and its thread. All pointers are borrowed and must outlive the resolver.
 * idle_functions is a list of function names that ends with NULL: a user stack is marked as idle if
 * its leaf is one of them, a kernel stack if any of its functions is. 0, or a negative errno.
 */
int resolver_new(struct process_table *processes, struct stack_table *stacks,
		 const struct window_sink *sink, char *const *idle_functions,
		 struct resolver **out);

/*
 * Names all stacks in the queue, passes on all windows in it, and ends the thread. The resolver
 * takes no more of them, but still has its stats. Does nothing if there is no resolver, or at a
 * second call.
 */
void resolver_end(struct resolver *resolver);

/* Does what resolver_end() does, and frees the resolver. */
struct resolver *resolver_free(struct resolver *resolver);

/*
 * Maximum numbers of queued stacks and windows. If a slow file delays the resolver, further ones
 * are rejected and counted, so that the queue cannot fill the memory.
 */
enum { RESOLVER_MAX_STACKS = 65536, RESOLVER_MAX_WINDOWS = 64 };

struct resolver_stats {
	size_t stacks;		  /* number of stacks in the queue now */
	size_t windows;		  /* number of windows in the queue now */
	uint64_t stacks_dropped;  /* number of stacks that did not fit into the queue, since stackd
				     started */
	uint64_t windows_dropped; /* number of windows that did not fit, since stackd started */
	int64_t named_ns;	  /* stacks queued before this time have names; CLOCK_MONOTONIC */
};

/*
 * Queues a stack, so that its functions get names. The caller calls resolver_wake() after the last
 * stack of a batch. The queue needs no reference to the stack: the stack table keeps every stack
 * until it is resolved. Never blocks. 0; -ENOBUFS when the queue is full; -ESHUTDOWN after
 * resolver_end(); -ENOMEM. After an error the caller must call stack_table_drop().
 */
int resolver_add_stack(struct resolver *resolver, struct stack *stack);

/* Wakes the resolver's thread if it sleeps and the queue is not empty. */
void resolver_wake(struct resolver *resolver);

/*
 * Queues a window and takes over the caller's reference. Stores in window->seq and *seq_out a
 * number that is higher than that of every earlier window. Returns what resolver_add_stack() does;
 * on an error the reference is dropped.
 */
int resolver_add_window(struct resolver *resolver, struct window *window, uint64_t *seq_out);

void resolver_stats(struct resolver *resolver, struct resolver_stats *out);

/* Returns 0 if the kernel's symbols could be read at the last attempt, else a negative errno. */
int resolver_kernel_status(const struct resolver *resolver);

#endif
