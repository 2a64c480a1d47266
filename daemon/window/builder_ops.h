/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_BUILDER_OPS_H
#define STACKD_DAEMON_WINDOW_BUILDER_OPS_H

/*
 * The interface that each builder of windows (build_*.c) implements: the operations that differ
 * between kinds of probes, and the state that all builders have. The struct of each builder begins
 * with a struct window_builder. All functions are called on the drain's thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "daemon/window/builder.h"
#include "daemon/window/image_cache.h"
#include "daemon/window/stack.h"
#include "daemon/window/window.h"

/*
 * The operations that build the windows of one kind of probe. The members after put_row() are NULL
 * if the kind does not need them.
 */
struct window_builder_ops {
	size_t size;	   /* size of the builder's own struct, in bytes */
	size_t key_size;   /* size of a key of the BPF map, in bytes; a multiple of 8 */
	size_t value_size; /* size of a value of the BPF map, in bytes; a multiple of 8 */

	/*
	 * Returns the number of events that a value of the BPF map stands for. If the value cannot
	 * be put into the window, these events are counted as lost.
	 */
	uint64_t (*count)(const void *value);

	/*
	 * Adds one entry of the BPF map to the window as a row. 0, or -ENOMEM: the caller then
	 * counts the events of the entry as lost.
	 */
	int (*put_row)(struct window_builder *builder, const void *key, const void *value);

	/*
	 * add_thread() is called for each thread that is read at the end of a window. add_record()
	 * is called when a record of the ring buffer arrives.
	 */
	void (*add_thread)(struct window_builder *builder, const struct thread *thread);
	void (*add_record)(struct window_builder *builder, const struct record_head *record);

	/*
	 * before_rows() is called before the first call of put_row() for a window, after_rows()
	 * after the last one.
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
	struct image_cache images; /* finds entries of window->images */
	char *rows; /* map entries read for this window: n pairs of a key and its value */
	size_t n;
	size_t capacity;
	uint64_t dropped; /* number of events lost for lack of memory since the last window */
	int64_t start_ns; /* start_ns and end_ns are the bounds of the window being built */
	int64_t end_ns;
	uint32_t epoch;	       /* number of the window that follows the one being built */
	struct window *window; /* the window being built; NULL outside window_builder_finish() */
};

#endif
