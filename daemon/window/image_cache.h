/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_IMAGE_CACHE_H
#define STACKD_DAEMON_WINDOW_IMAGE_CACHE_H

/*
 * Finds a thread in window.images of the window being built, by the thread's start time, tid and
 * exec generation. Adds the thread on first use. Embedded in the builders of windows; used on the
 * drain's thread only.
 */

#include <stdint.h>

#include "bpf/layout.h"
#include "daemon/process/process.h"
#include "daemon/window/window.h"

/* Returned instead of an index into window.images when a thread or process could not be added. */
#define IMAGE_NONE UINT32_MAX

struct cached_image;

struct image_cache {
	struct process_table *processes; /* table of all known processes; borrowed */
	struct cached_image *entries;
};

/*
 * Returns the thread's index in window.images. If it is not there, adds it with the name `comm`,
 * which has COMM_LEN bytes. IMAGE_NONE when out of memory.
 */
uint32_t image_cache_get(struct image_cache *cache, struct window *window,
			 const struct sample_key *key, const char *comm);

/*
 * Returns the index in window.images of an entry that stands for all threads of a process. If there
 * is none, adds it with the name `comm` or, if that is NULL, with the process's name in /proc.
 * IMAGE_NONE when out of memory.
 */
uint32_t image_cache_get_process(struct image_cache *cache, struct window *window,
				 const struct process_id *id, bool is_kernel, const char *comm);

/*
 * Returns the index in window.images of a made-up process "writeback" with pid 0 in this cgroup. It
 * gets the I/O by which the kernel writes back the cgroup's dirty pages. IMAGE_NONE when out of
 * memory, or if the cgroup no longer exists.
 */
uint32_t image_cache_get_writer(struct image_cache *cache, struct window *window, uint64_t cgroup);

/*
 * Returns the index in window.images of a made-up process "others" with pid 0. It gets the I/O of
 * all processes that the BPF programs had no room to count separately. IMAGE_NONE when out of
 * memory.
 */
uint32_t image_cache_get_rest(struct image_cache *cache, struct window *window);

/*
 * Empties the cache. Must be called after each window, because an index is valid in one window
 * only.
 */
void image_cache_clear(struct image_cache *cache);

#endif
