/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/window/build_iolat_open.h"

#include <string.h>

#include "common/base.h"
#include "daemon/host/procfs.h"

/* A whole copy: the thread numbers its outermost operations, and none of them is young. */
static bool slot_copy(const struct io_slot *slot, struct io_slot *copy)
{
	uint32_t generation = __atomic_load_n(&slot->generation, __ATOMIC_ACQUIRE);

	if (!__atomic_load_n(&slot->depth, __ATOMIC_RELAXED))
		return false;
	memcpy(copy, slot, sizeof(*copy));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return copy->depth && copy->depth <= IO_DEPTH &&
	       __atomic_load_n(&slot->generation, __ATOMIC_RELAXED) == generation;
}

static uint32_t image_of(struct image_cache *cache, struct window *window,
			 const struct io_slot *slot)
{
	const struct process_id id = {
		.pid = (int32_t)slot->tgid,
		.exec_gen = slot->exec_gen,
		.start_boot_ns = slot->leader_boot_ns,
	};

	return image_cache_get_process(cache, window, &id, slot->flags & IO_KEY_IS_KERNEL, NULL);
}

/* Of the rows from first on, which are of open ones; NULL when out of memory. */
static struct window_io *row_get(struct window *window, size_t first, const struct io_frame *frame,
				 uint32_t image)
{
	struct window_io *row;
	size_t i;

	for (i = first; i < window->n_ios; i++) {
		row = &window->ios[i];
		if (row->image == image && row->layer == frame->layer && row->op == frame->op &&
		    row->call == frame->call)
			return row;
	}
	row = window_add_io(window);
	if (!row)
		return NULL;
	row->image = image;
	row->layer = frame->layer;
	row->op = frame->op;
	row->call = frame->call;
	return row;
}

static uint64_t slot_add(struct image_cache *cache, struct window *window, size_t first,
			 const struct io_slot *slot, int64_t end_ns)
{
	uint32_t image = image_of(cache, window, slot), i;
	uint64_t dropped = 0;

	if (image == IMAGE_NONE)
		return slot->depth;
	for (i = 0; i < slot->depth; i++) {
		const struct io_frame *frame = &slot->frames[i];
		int64_t age = end_ns - (int64_t)frame->start_ns;
		struct window_io *row;

		if (age < IO_OPEN_NS)
			break;
		row = row_get(window, first, frame, image);
		if (row)
			window_io_add(row, &(const struct window_io){
						   .open = 1,
						   .oldest_ns = (uint64_t)age,
						   .oldest_tid = (int32_t)slot->tid,
					   });
		dropped += !row;
	}
	return dropped;
}

uint64_t ios_open_add(struct image_cache *cache, struct window *window, const struct io_slot *slots,
		      size_t n_slots, int64_t end_ns)
{
	size_t first = window->n_ios, i;
	struct io_slot slot;
	uint64_t dropped = 0;

	for (i = 0; i < n_slots; i++) {
		if (!slot_copy(&slots[i], &slot) || slot.flags & IO_SLOT_IS_UNWANTED ||
		    end_ns - (int64_t)slot.frames[0].start_ns < IO_OPEN_NS ||
		    !procfs_has_thread(slot.tgid, slot.tid))
			continue;
		dropped += slot_add(cache, window, first, &slot, end_ns);
	}
	return dropped;
}
