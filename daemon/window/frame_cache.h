/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_FRAME_CACHE_H
#define STACKD_DAEMON_WINDOW_FRAME_CACHE_H

/*
 * Caches the frames of places in mapped files. Stacks of short-lived processes that run the same
 * program differ only in the addresses at which the files are mapped, so nearly all of their frames
 * are in the cache. Owned by the resolver; used on its thread only.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/process/process.h"
#include "daemon/window/stack.h"

struct frame_cache;

/* Makes an empty cache of frames of the stack table, which must outlive it. NULL: out of memory. */
struct frame_cache *frame_cache_new(struct stack_table *stacks);
/* Drops the references to all frames. Returns NULL. */
struct frame_cache *frame_cache_free(struct frame_cache *cache);

/*
 * Returns the frame of this place; NULL if the cache does not have it, or if its symbol has to be
 * looked up again. The caller gets no reference. The frame is valid until frame_cache_put() is
 * called. Sets *is_signal_out to symbol.is_signal of the frame.
 */
struct frame *frame_cache_get(const struct frame_cache *cache, const struct code_place *place,
			      int64_t now_ns, bool *is_signal_out);

/* Adds the frame of a place, with a reference of its own. Drops another frame if need be. */
void frame_cache_put(struct frame_cache *cache, const struct code_place *place, struct frame *frame,
		     int64_t now_ns, bool is_signal);

#endif
