/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_IMAGE_CACHE_H
#define STACKD_DAEMON_WINDOW_IMAGE_CACHE_H

/*
 * Cache from a thread (start time, tid, exec generation) to its image in the window in progress:
 * the image is added to the window on first use. Embedded in the builders of windows; used on the
 * drain's thread only.
 */

#include <stdint.h>

#include "bpf/layout.h"
#include "daemon/process/process.h"
#include "daemon/window/window.h"

/* Stands for an image that could not be added. */
#define IMAGE_NONE UINT32_MAX

struct cached_image;

struct image_cache {
	struct process_table *processes; /* borrowed */
	struct cached_image *entries;
};

/*
 * The index of the thread's image in the window. IMAGE_NONE when out of memory. comm, of COMM_LEN
 * bytes, is the name that a new image gets.
 */
uint32_t image_cache_get(struct image_cache *cache, struct window *window,
			 const struct sample_key *key, const char *comm);

/*
 * The index of the image that stands for all threads of a process. comm may be NULL: then a new
 * image gets the name that /proc has. IMAGE_NONE when out of memory.
 */
uint32_t image_cache_get_process(struct image_cache *cache, struct window *window,
				 const struct process_id *id, bool is_kernel, const char *comm);

/*
 * The index of an image for the pages that the kernel writes back for a control group: a made-up
 * process "writeback" of that group, with pid 0. IMAGE_NONE when out of memory, or if the group no
 * longer exists.
 */
uint32_t image_cache_get_writer(struct image_cache *cache, struct window *window, uint64_t cgroup);

/*
 * The index of an image for all processes that the programs had no row left for: a made-up process
 * "others" with pid 0. IMAGE_NONE when out of memory.
 */
uint32_t image_cache_get_rest(struct image_cache *cache, struct window *window);

/* Empties the cache. Must be called when the window is complete, before the next one. */
void image_cache_clear(struct image_cache *cache);

#endif
