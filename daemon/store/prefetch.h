/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_PREFETCH_H
#define STACKD_DAEMON_STORE_PREFETCH_H

/*
 * Windows loaded ahead of who merges them: in goes a listing, out come its windows, the last one
 * first, a few of them ready at a time. Owned by an answer; has a thread of its own, to which the
 * reader belongs until it is freed.
 */

#include <stddef.h>

#include "daemon/store/entry.h"
#include "daemon/store/reader.h"

/* A shorter listing is not worth a thread. */
enum { STORE_PREFETCH_MIN = 16 };

struct store_prefetch;

/* Of entries [0, n), borrowed and left as they are. 0, -ENOMEM or -EAGAIN. */
int store_prefetch_start(struct store_reader *reader, const struct store_entry *entries, size_t n,
			 struct store_prefetch **out);

/* Waits for the thread to end; the reader is the caller's again. */
struct store_prefetch *store_prefetch_free(struct store_prefetch *prefetch);

/* As store_reader_load() of the next entry, which is entry, or else -ESPIPE. */
int store_prefetch_get(struct store_prefetch *prefetch, const struct store_entry *entry,
		       struct window **out);

#endif
