/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_RESOLVER_H
#define STACKD_DAEMON_WINDOW_RESOLVER_H

/*
 * Gives stacks their names and then hands windows on: stacks come in as they arrive and the windows
 * that refer to them after them, in order. Owned by the recorder; has a thread of its own, so that
 * reading symbol tables never delays a drain.
 */

#include <stddef.h>
#include <stdint.h>

struct process_table;
struct resolver;
struct stack;
struct stack_table;
struct window;

/*
 * Takes windows whose stacks have their names; referred_bytes is what all windows together refer
 * to in tables. Called by the resolver's thread.
 */
struct window_sink {
	void (*add)(void *userdata, struct window *window, size_t referred_bytes);
	void *userdata;
};

/*
 * Borrows all it gets. processes: windows refer to those that are gone. idle_functions: NULL-ended;
 * a wait in one of them is idle. Starts the thread.
 */
int resolver_new(struct process_table *processes, struct stack_table *stacks,
		 const struct window_sink *sink, char *const *idle_functions,
		 struct resolver **out);

/* Works off what is queued, then stops. */
struct resolver *resolver_free(struct resolver *resolver);

/*
 * The queue is bounded, as a file that is slow to read must not cost memory without end. Beyond
 * its limits what is added is turned away and counted.
 */
enum { RESOLVER_MAX_STACKS = 65536, RESOLVER_MAX_WINDOWS = 64 };

struct resolver_stats {
	size_t stacks; /* in the queue now */
	size_t windows;
	uint64_t stacks_dropped; /* since the start; their ids stay unknown */
	uint64_t windows_dropped;
	int64_t named_ns; /* what came before has its names, CLOCK_MONOTONIC */
};

/*
 * Borrows the stack, which its table keeps until it is resolved. Never blocks. -ENOBUFS when the
 * queue is full, -ENOMEM: then the stack gets no names and is the caller's to drop.
 */
int resolver_add_stack(struct resolver *resolver, struct stack *stack);

/*
 * Takes the window and gives it its number, *seq_out: above all before it. On -ENOBUFS and -ENOMEM
 * it is dropped.
 */
int resolver_add_window(struct resolver *resolver, struct window *window, uint64_t *seq_out);

void resolver_stats(struct resolver *resolver, struct resolver_stats *out);

/* 0, or the negative errno of reading the kernel's symbols. */
int resolver_kernel_status(const struct resolver *resolver);

#endif
