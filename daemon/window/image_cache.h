/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_IMAGE_CACHE_H
#define STACKD_DAEMON_WINDOW_IMAGE_CACHE_H

/*
 * Threads by what a row alone says of them: in go keys, out come the images of the window in
 * progress, each made once. Embedded in who makes windows of rows; the drain's thread only.
 */

#include <stdint.h>

#include "bpf/layout.h"
#include "daemon/process/process.h"
#include "daemon/window/window.h"

#define IMAGE_NONE UINT32_MAX

struct cached_image;

struct image_cache {
	struct process_table *processes; /* borrowed */
	struct cached_image *entries;
};

/* The image's place in the window; IMAGE_NONE when out of memory. comm: COMM_LEN bytes. */
uint32_t image_cache_get(struct image_cache *cache, struct window *window,
			 const struct sample_key *key, const char *comm);

/* The same for all threads of a process as one. comm: NULL to read it, should it be needed. */
uint32_t image_cache_get_process(struct image_cache *cache, struct window *window,
				 const struct process_id *id, bool is_kernel, const char *comm);

/*
 * What the kernel writes back for a control group, as an image of a process of that group that
 * there is not: its pid is 0. IMAGE_NONE also when no such group is known (any more).
 */
uint32_t image_cache_get_writer(struct image_cache *cache, struct window *window, uint64_t cgroup);

/* All processes together that no row was left for, as one whose pid is 0. */
uint32_t image_cache_get_rest(struct image_cache *cache, struct window *window);

/* Before the next window. */
void image_cache_clear(struct image_cache *cache);

#endif
