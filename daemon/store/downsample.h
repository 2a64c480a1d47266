/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_DOWNSAMPLE_H
#define STACKD_DAEMON_STORE_DOWNSAMPLE_H

/*
 * Merges consecutive windows into one longer window. Sums up the counts and times of equal rows. Of
 * each row, keeps the longest wait and its end. A wait that spans several of the windows, but lies
 * within the longer one, is added to a row. No state; any thread.
 */

#include <stddef.h>

#include "daemon/window/window.h"

/*
 * Merges n windows of one run of stackd; each begins where the previous one ends. Returns 0 and
 * *out, to which the caller owns a reference; -ENOMEM; or -EOVERFLOW if the windows cannot be
 * merged because a count would be too large.
 */
int store_downsample(struct window *const *windows, size_t n, struct window **out);

/*
 * These functions merge rows of I/O operations (downsample_iolat.c). The first two return 0 or
 * -ENOMEM.
 *
 * store_downsample_ios_add() adds the rows of `window` to the sums in *entries, which is NULL at
 * first. Rows of operations that have not ended are left out if is_last is false. images[]
 * translates indexes of threads: window->images[i] has the index images[i] in the merged window.
 *
 * store_downsample_ios_finish() appends the sums to the merged window `out` as rows.
 * store_downsample_ios_free() frees the sums.
 */
struct io_entry;
int store_downsample_ios_add(struct io_entry **entries, const struct window *window,
			     const uint32_t *images, bool is_last);
int store_downsample_ios_finish(struct io_entry *entries, struct window *out);
void store_downsample_ios_free(struct io_entry **entries);

#endif
