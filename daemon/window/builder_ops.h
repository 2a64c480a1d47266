/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_BUILDER_OPS_H
#define STACKD_DAEMON_WINDOW_BUILDER_OPS_H

/*
 * The interface that each builder of windows (build_*.c) implements: the operations in which the
 * kinds differ, and the state that all builders have. A builder's own struct has a struct
 * window_builder as its first member. All functions are called on the drain's thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "daemon/window/builder.h"
#include "daemon/window/image_cache.h"
#include "daemon/window/stack.h"
#include "daemon/window/window.h"

/* Members below `put_row` may be NULL: the builder has nothing to do then. */
struct window_builder_ops {
	size_t size;	 /* bytes of the builder's own struct */
	size_t key_size; /* bytes of a key and a value of the programs' map, multiples of 8 */
	size_t value_size;

	/* The number of events that a row stands for; counted as lost if the row is dropped. */
	uint64_t (*count)(const void *value);

	/* Adds a row of the map to the window. 0, or -ENOMEM: then its events are lost. */
	int (*put_row)(struct window_builder *builder, const void *key, const void *value);

	/* Called for each thread that is read at a cut, and for each record, as it arrives. */
	void (*add_thread)(struct window_builder *builder, const struct thread *thread);
	void (*add_record)(struct window_builder *builder, const struct record_head *record);

	/* Called before the first row is put into a window, and after the last one. */
	void (*before_rows)(struct window_builder *builder);
	void (*after_rows)(struct window_builder *builder);

	/* Frees what the builder's own struct owns, not the struct. */
	void (*fini)(struct window_builder *builder);
};

struct window_builder {
	const struct window_builder_ops *ops;
	struct window_builder_options options;
	struct image_cache images; /* images of the window in progress */
	char *rows;		   /* rows of the cut in progress: n times a key and its value */
	size_t n;
	size_t capacity;
	uint64_t dropped; /* events that found no memory, since the last window */
	int64_t start_ns; /* bounds of the window in progress */
	int64_t end_ns;
	uint32_t epoch;	       /* epoch of the window after the one in progress */
	struct window *window; /* the window in progress; NULL outside window_builder_finish() */
};

#endif
