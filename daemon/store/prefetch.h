/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_PREFETCH_H
#define STACKD_DAEMON_STORE_PREFETCH_H

/*
 * Loads the windows of a list ahead of a query, in a thread of its own: a few at a time, the last
 * one of the list first. Owned by a timeline. Only the thread may use the reader until the prefetch
 * is freed.
 */

#include <stddef.h>

#include "daemon/store/entry.h"
#include "daemon/store/reader.h"

/* The fewest windows on disk for which a timeline starts a thread. */
enum { STORE_PREFETCH_MIN = 16 };

struct store_prefetch;

/* Starts to load the windows of n entries, which are borrowed. Returns 0, -ENOMEM or -EAGAIN. */
int store_prefetch_start(struct store_reader *reader, const struct store_entry *entries, size_t n,
			 struct store_prefetch **out);

/* Stops the thread and waits for its end; after that the caller may use the reader again. */
struct store_prefetch *store_prefetch_free(struct store_prefetch *prefetch);

/*
 * Waits for the window of an entry and returns it as store_reader_load() does. The entries have to
 * be asked for from the last to the first: -ESPIPE if this one is not the next.
 */
int store_prefetch_get(struct store_prefetch *prefetch, const struct store_entry *entry,
		       struct window **out);

#endif
