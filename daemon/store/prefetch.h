/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_PREFETCH_H
#define STACKD_DAEMON_STORE_PREFETCH_H

/*
 * Loads the windows of a list in a thread of its own, before the query asks for them. Begins with
 * the last window of the list, and stays only a few windows ahead of the query. Owned by a
 * timeline. Until the prefetch is paused or freed, only the thread may use the store_reader.
 */

#include <stddef.h>

#include "daemon/store/entry.h"
#include "daemon/store/reader.h"

/* A timeline starts the thread only for a list with at least this many windows on disk. */
enum { STORE_PREFETCH_MIN = 16 };

struct store_prefetch;

/*
 * Starts a thread that loads the windows of n entries, which are borrowed. Leaves out entries of
 * windows in memory, whose id is 0. Returns 0, -ENOMEM or -EAGAIN.
 */
int store_prefetch_start(struct store_reader *reader, const struct store_entry *entries, size_t n,
			 struct store_prefetch **out);

/* Stops the thread and waits for its end; after that the caller may use the reader again. */
struct store_prefetch *store_prefetch_free(struct store_prefetch *prefetch);

/*
 * Waits until the thread has loaded the window that it is at, and keeps it from loading more. After
 * that the caller may use the reader, until it calls store_prefetch_get() again. The prefetch may
 * be NULL.
 */
void store_prefetch_pause(struct store_prefetch *prefetch);

/*
 * Waits until the window of `entry` is loaded. Returns the same values as store_reader_load(). The
 * entries of windows on disk must be asked for in order, from the last to the first; otherwise
 * returns -ESPIPE.
 */
int store_prefetch_get(struct store_prefetch *prefetch, const struct store_entry *entry,
		       struct window **out);

#endif
