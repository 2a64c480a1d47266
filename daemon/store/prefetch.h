/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_PREFETCH_H
#define STACKD_DAEMON_STORE_PREFETCH_H

/*
 * Loads the windows of a list by a thread, a few at a time and the last one first, while a query
 * works on the ones already loaded. Owned by a timeline; the reader belongs to the thread until the
 * prefetch is freed.
 */

#include <stddef.h>

#include "daemon/store/entry.h"
#include "daemon/store/reader.h"

/* The shortest list that is worth a thread. */
enum { STORE_PREFETCH_MIN = 16 };

struct store_prefetch;

/* Starts to load entries [0, n), which are borrowed and not changed. 0, -ENOMEM or -EAGAIN. */
int store_prefetch_start(struct store_reader *reader, const struct store_entry *entries, size_t n,
			 struct store_prefetch **out);

/* Stops the thread and waits for it; then the reader is the caller's again. */
struct store_prefetch *store_prefetch_free(struct store_prefetch *prefetch);

/*
 * Returns the window of this entry as store_reader_load() does, waiting for it; -ESPIPE if it is
 * not the next one of the list.
 */
int store_prefetch_get(struct store_prefetch *prefetch, const struct store_entry *entry,
		       struct window **out);

#endif
