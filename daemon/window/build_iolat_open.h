/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_BUILD_IOLAT_OPEN_H
#define STACKD_DAEMON_WINDOW_BUILD_IOLAT_OPEN_H

/*
 * Operations that do not end: in comes the programs' table of open ones, out come rows of the
 * window in progress, with the age of the oldest of each kind. The drain's thread only.
 */

#include <stdint.h>

#include "bpf/io_shared.h"
#include "daemon/window/image_cache.h"
#include "daemon/window/window.h"

/* Younger ones are none to mind: most are over by now. */
#define IO_OPEN_NS INT64_C(1000000000)

/* slots: written to meanwhile. end_ns: the window's. Returns how many were dropped. */
uint64_t ios_open_add(struct image_cache *cache, struct window *window, const struct io_slot *slots,
		      size_t n_slots, int64_t end_ns);

#endif
