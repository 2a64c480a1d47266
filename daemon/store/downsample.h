/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_DOWNSAMPLE_H
#define STACKD_DAEMON_STORE_DOWNSAMPLE_H

/*
 * Merges several windows that follow each other into one longer window: adds the sums of equal
 * rows, keeps the longest wait of each row and when it ended, and adds a wait that begins and ends
 * within the longer window to a row. No state; any thread.
 */

#include <stddef.h>

#include "daemon/window/window.h"

/*
 * Merges n windows of one run of stackd, each of which begins where the one before it ends. Returns
 * 0 and *out, to which the caller owns a reference; -ENOMEM; or -EOVERFLOW if a count would be too
 * large for a row, in which case the windows cannot be merged.
 */
int store_downsample(struct window *const *windows, size_t n, struct window **out);

/*
 * Merges the rows of I/O (downsample_iolat.c). store_downsample_ios_add() adds the rows of one
 * window to the sums in *entries, which is NULL at first; open operations are kept only if the
 * window is the last one. images[i] is the index in the longer window of the window's image i.
 * store_downsample_ios_finish() writes the sums to the longer window, and
 * store_downsample_ios_free() frees them. The first two return 0 or -ENOMEM.
 */
struct io_entry;
int store_downsample_ios_add(struct io_entry **entries, const struct window *window,
			     const uint32_t *images, bool is_last);
int store_downsample_ios_finish(struct io_entry *entries, struct window *out);
void store_downsample_ios_free(struct io_entry **entries);

#endif
