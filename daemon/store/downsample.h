/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_DOWNSAMPLE_H
#define STACKD_DAEMON_STORE_DOWNSAMPLE_H

/*
 * Makes one longer window of several that follow each other: sums are added, the longest wait and
 * when it ended are kept, and a wait that begins and ends within the longer window becomes part of
 * a row. No state; any thread.
 */

#include <stddef.h>

#include "daemon/window/window.h"

/*
 * Takes windows of one run of stackd, each of which begins where the one before it ends. Returns 0
 * and *out with one reference, -ENOMEM, or -EOVERFLOW if a count does not fit a row: such windows
 * are best left as they are.
 */
int store_downsample(struct window *const *windows, size_t n, struct window **out);

/*
 * The part for rows of I/O (downsample_iolat.c). *entries holds the sums so far: NULL at first,
 * freed by store_downsample_ios_free(). images maps indexes of the window's images to those of the
 * longer one. Open operations are kept only from the last window. Both return 0 or -ENOMEM.
 */
struct io_entry;
int store_downsample_ios_add(struct io_entry **entries, const struct window *window,
			     const uint32_t *images, bool is_last);
int store_downsample_ios_finish(struct io_entry *entries, struct window *out);
void store_downsample_ios_free(struct io_entry **entries);

#endif
