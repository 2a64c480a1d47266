/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_BUILDER_OPS_H
#define STACKD_DAEMON_WINDOW_BUILDER_OPS_H

/*
 * The interface that each builder of windows (build_*.c) implements: the operations in which the
 * kinds differ, and the state that all builders have. The struct of each builder has a struct
 * window_builder as its first member. All functions are called on the drain's thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "daemon/window/builder.h"
#include "daemon/window/image_cache.h"
#include "daemon/window/stack.h"
#include "daemon/window/window.h"

/*
 * The operations of one kind of windows. An operation below `put_row` may be NULL if the kind does
 * not need it.
 */
struct window_builder_ops {
	size_t size;	   /* size of the builder's own struct, in bytes */
	size_t key_size;   /* size of a key of the programs' map, in bytes, a multiple of 8 */
	size_t value_size; /* size of a value of that map, in bytes, a multiple of 8 */

	/*
	 * Returns the number of events that a row stands for. They are counted as lost if the row
	 * is dropped.
	 */
	uint64_t (*count)(const void *value);

	/*
	 * Adds a row of the programs' map to the window. On -ENOMEM the caller counts the events of
	 * the row as lost. 0, or -ENOMEM.
	 */
	int (*put_row)(struct window_builder *builder, const void *key, const void *value);

	/*
	 * add_thread is called for each thread that is read at a cut, add_record for each record
	 * when it arrives.
	 */
	void (*add_thread)(struct window_builder *builder, const struct thread *thread);
	void (*add_record)(struct window_builder *builder, const struct record_head *record);

	/*
	 * before_rows is called before the first row is put into a window, after_rows after the
	 * last one.
	 */
	void (*before_rows)(struct window_builder *builder);
	void (*after_rows)(struct window_builder *builder);

	/*
	 * Frees the memory that members of the builder's own struct point to, but not the struct.
	 */
	void (*fini)(struct window_builder *builder);
};

struct window_builder {
	const struct window_builder_ops *ops;
	struct window_builder_options options;
	struct image_cache images; /* the images that the window in progress has so far */
	char *rows; /* rows read at the cut in progress: n pairs of a key and its value */
	size_t n;
	size_t capacity;
	uint64_t dropped; /* events lost for lack of memory since the last window */
	int64_t start_ns; /* start and end_ns are the bounds of the window in progress */
	int64_t end_ns;
	uint32_t epoch;	       /* epoch of the window that follows the one in progress */
	struct window *window; /* the window in progress; NULL outside window_builder_finish() */
};

#endif
