/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_INTERN_READ_H
#define STACKD_DAEMON_STORE_INTERN_READ_H

/*
 * Interning, the read side: makes the stacks, frames and processes that windows refer to from their
 * numbers in the database, each once. Owned by a store_reader; one thread.
 */

#include <stdint.h>

#include "daemon/store/db.h"
#include "daemon/store/window_blob.h"

struct store_intern_reader;

/* Adds to *damaged, which outlives it, each row that is missing or damaged. 0 or -ENOMEM. */
int store_intern_reader_new(struct store_db *db, uint64_t *damaged,
			    struct store_intern_reader **out);
struct store_intern_reader *store_intern_reader_free(struct store_intern_reader *interned);

/* Returns the functions that store_blob_decode() takes; what they return lives as long as this. */
struct store_names store_intern_reader_names(struct store_intern_reader *interned);

#endif
