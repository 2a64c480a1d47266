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
 * *out, to which the caller owns a reference; or -ENOMEM.
 */
int store_downsample(struct window *const *windows, size_t n, struct window **out);

#endif
