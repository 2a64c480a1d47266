/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_IMAGE_CACHE_H
#define STACKD_DAEMON_WINDOW_IMAGE_CACHE_H

/*
 * Finds the image of a thread in the window in progress, by the thread's start time, tid and exec
 * generation. Adds the image to the window on first use. Embedded in the builders of windows; used
 * on the drain's thread only.
 */

#include <stdint.h>

#include "bpf/layout.h"
#include "daemon/process/process.h"
#include "daemon/window/window.h"

/* Returned instead of an index when an image could not be added. */
#define IMAGE_NONE UINT32_MAX

struct cached_image;

struct image_cache {
	struct process_table *processes; /* borrowed */
	struct cached_image *entries;
};

/*
 * Returns the index of the thread's image in the window. IMAGE_NONE when out of memory. comm, of
 * COMM_LEN bytes, is the name that a new image gets.
 */
uint32_t image_cache_get(struct image_cache *cache, struct window *window,
			 const struct sample_key *key, const char *comm);

/*
 * Returns the index of the image that stands for all threads of a process. If comm is NULL, a new
 * image gets the name that /proc shows for the process. IMAGE_NONE when out of memory.
 */
uint32_t image_cache_get_process(struct image_cache *cache, struct window *window,
				 const struct process_id *id, bool is_kernel, const char *comm);

/*
 * Returns the index of the image to which I/O is attributed when the kernel writes back the pages
 * of a control group: a made-up process "writeback" of that group, with pid 0. IMAGE_NONE when out
 * of memory, or if the group no longer exists.
 */
uint32_t image_cache_get_writer(struct image_cache *cache, struct window *window, uint64_t cgroup);

/*
 * Returns the index of the image that stands for all processes for which the BPF programs had no
 * row left: a made-up process "others" with pid 0. IMAGE_NONE when out of memory.
 */
uint32_t image_cache_get_rest(struct image_cache *cache, struct window *window);

/*
 * Empties the cache. Must be called after each window, as the indexes are valid in one window only.
 */
void image_cache_clear(struct image_cache *cache);

#endif
