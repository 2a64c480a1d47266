/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_BUILDER_H
#define STACKD_DAEMON_WINDOW_BUILDER_H

/*
 * Builds the windows of a session: collects what its drain reads (rows of the programs' map at each
 * cut, and for some kinds threads and records of the ring) and makes one struct window of it. The
 * kinds differ in their ops, build_NAME; builder_ops.h is what a new builder has to implement.
 * Owned by the drain and used on its thread only.
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
	enum probe_kind kind; /* the kind of the windows */
	struct process_table *processes;
	struct stack_table *stacks;
	uint64_t period_ns;		/* oncpu: the time that one sample stands for; else 0 */
	int64_t min_wait_ns;		/* offcpu: open waits that are shorter get no row */
	const struct io_slot *io_slots; /* iolat: open operations, which the programs change at any
					   time; NULL if the programs have no such table */
	size_t n_io_slots;
};

/* 0, or -ENOMEM. */
int window_builder_new(const struct window_builder_ops *ops,
		       const struct window_builder_options *options, struct window_builder **out);
struct window_builder *window_builder_free(struct window_builder *builder);

/* Sizes of the keys and values of the programs' window map: the sizes that add() reads. */
size_t window_builder_key_size(const struct window_builder *builder);
size_t window_builder_value_size(const struct window_builder *builder);

/* Takes a record of the ring; the builders of kinds without such records ignore it. */
void window_builder_add_record(struct window_builder *builder, const struct record_head *record);

/*
 * One cut: begin with the bounds of the window that closes and the epoch of the next one, then add
 * each thread and each row that was read, then finish. The window is the caller's; NULL when out of
 * memory, then the next window has the rows. Rows that do not fit into memory are counted as lost.
 */
void window_builder_begin(struct window_builder *builder, int64_t start_ns, int64_t end_ns,
			  uint32_t epoch);
void window_builder_add_thread(struct window_builder *builder, const struct thread *thread);
void window_builder_add(struct window_builder *builder, const void *key, const void *value);
struct window *window_builder_finish(struct window_builder *builder);

#endif
