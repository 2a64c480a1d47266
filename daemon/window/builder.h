/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_BUILDER_H
#define STACKD_DAEMON_WINDOW_BUILDER_H

/*
 * Builds the windows of a session: collects the data that the session's drain reads (at each cut
 * the rows of the BPF programs' map; for some kinds also threads, and records of the ring) and
 * makes one struct window of it. Each kind has its own operations, build_NAME; builder_ops.h says
 * what a new kind has to implement. A builder is owned by the drain and used on the drain's thread
 * only.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/probe_kind.h"

struct io_slot;
struct process_table;
struct record_head;
struct stack_table;
struct thread;
struct window;
struct window_builder;
struct window_builder_ops;

/* All pointers are borrowed and must outlive the builder. */
struct window_builder_options {
	enum probe_kind kind; /* kind of the windows that are built */
	struct process_table *processes;
	struct stack_table *stacks;
	uint64_t period_ns;  /* oncpu: time that one sample stands for; 0 for other kinds */
	int64_t min_wait_ns; /* offcpu: open waits shorter than this get no row */
	const struct io_slot *io_slots; /* iolat: open operations of each thread, which BPF programs
					   change at any time; NULL for other kinds */
	size_t n_io_slots;
};

/* Makes a builder with the operations of one kind. 0, or -ENOMEM. */
int window_builder_new(const struct window_builder_ops *ops,
		       const struct window_builder_options *options, struct window_builder **out);
struct window_builder *window_builder_free(struct window_builder *builder);

/*
 * Return the size of a key and of a value of the BPF programs' window map, in bytes. These are the
 * sizes that window_builder_add() reads.
 */
size_t window_builder_key_size(const struct window_builder *builder);
size_t window_builder_value_size(const struct window_builder *builder);

/* Takes a record of the ring. Does nothing if windows of this kind need no records. */
void window_builder_add_record(struct window_builder *builder, const struct record_head *record);

/*
 * Called at each cut in this order: begin() with the bounds of the window that ends and the epoch
 * of the next window; add_thread() for each thread and add() for each row that was read; finish(),
 * which returns the window. The caller owns the window. If finish() returns NULL (out of memory),
 * the rows are kept for the next window. Rows for which add() finds no memory are counted as lost.
 */
void window_builder_begin(struct window_builder *builder, int64_t start_ns, int64_t end_ns,
			  uint32_t epoch);
void window_builder_add_thread(struct window_builder *builder, const struct thread *thread);
void window_builder_add(struct window_builder *builder, const void *key, const void *value);
struct window *window_builder_finish(struct window_builder *builder);

#endif
