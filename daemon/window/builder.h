/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_BUILDER_H
#define STACKD_DAEMON_WINDOW_BUILDER_H

/*
 * Builds the windows of a session from the data that the session's drain reads: the entries of a
 * BPF map at the end of each window and, for some kinds of probes, threads and records of the ring
 * buffer. Each kind has a struct window_builder_ops of its own, named build_NAME; builder_ops.h
 * describes what a new kind has to implement. Owned by the drain and used on the drain's thread
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
	enum probe_kind kind; /* kind of probe whose windows are built */
	struct process_table *processes;
	struct stack_table *stacks;
	uint64_t period_ns;  /* oncpu: CPU time that one sample stands for; else 0 */
	bool counts_spawns;  /* offcpu: windows have the processes that began and ended */
	int64_t min_wait_ns; /* offcpu: a wait that has not ended is in a window only if it has
				lasted this long */
	/*
	 * iolat: for each thread, the I/O operations that it is in now; BPF programs change this
	 * table at any time. NULL for other kinds of probes
	 */
	const struct io_slot *io_slots;
	size_t n_io_slots;
};

/* Makes a builder of the windows of one kind of probe. 0, or -ENOMEM. */
int window_builder_new(const struct window_builder_ops *ops,
		       const struct window_builder_options *options, struct window_builder **out);
struct window_builder *window_builder_free(struct window_builder *builder);

/*
 * Return the size of a key and of a value of the BPF map whose entries are passed to
 * window_builder_add(), in bytes.
 */
size_t window_builder_key_size(const struct window_builder *builder);
size_t window_builder_value_size(const struct window_builder *builder);

/*
 * Passes a record of the ring buffer to the builder, which ignores it if this kind of probe needs
 * no records.
 */
void window_builder_add_record(struct window_builder *builder, const struct record_head *record);

/*
 * The drain calls these functions at the end of each window, in this order. window_builder_begin()
 * gets the bounds of the window and the number (epoch) of the next window.
 * window_builder_add_thread() is called for each thread that was read, then window_builder_add()
 * for each map entry that was read; entries for which it finds no memory are counted as lost.
 * window_builder_finish() returns the window, which the caller then owns. If it returns NULL (out
 * of memory), the entries are kept for the next window.
 */
void window_builder_begin(struct window_builder *builder, int64_t start_ns, int64_t end_ns,
			  uint32_t epoch);
void window_builder_add_thread(struct window_builder *builder, const struct thread *thread);
void window_builder_add(struct window_builder *builder, const void *key, const void *value);
struct window *window_builder_finish(struct window_builder *builder);

#endif
