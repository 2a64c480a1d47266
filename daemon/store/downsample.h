/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_DOWNSAMPLE_H
#define STACKD_DAEMON_STORE_DOWNSAMPLE_H

/*
 * Windows that follow each other made one longer window: sums add up, the longest wait and its end
 * stay, a wait that begins and ends within it becomes part of a row. Pure; any thread.
 */

#include <stddef.h>

#include "daemon/window/window.h"

/*
 * Windows of one run, each beginning where the one before ends. 0 and *out with one reference,
 * -ENOMEM, or -EOVERFLOW when a count is too large for a row: then they are best left alone.
 */
int store_downsample(struct window *const *windows, size_t n, struct window **out);

/*
 * Its part for rows of I/O (store_downsample_ios.c): what is added up so far, NULL at first and
 * freed by the last function. images: of the window at hand, as places in out; what is open at the
 * end of the last one stays so. 0 or -ENOMEM.
 */
struct io_entry;
int store_downsample_ios_add(struct io_entry **entries, const struct window *window,
			     const uint32_t *images, bool is_last);
int store_downsample_ios_finish(struct io_entry *entries, struct window *out);
void store_downsample_ios_free(struct io_entry **entries);

#endif
