/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_INTERN_READ_H
#define STACKD_DAEMON_STORE_INTERN_READ_H

/*
 * Stacks, frames and processes read back: in go their numbers, out come the structs that windows
 * refer to, each made once. Owned by a reading; one thread.
 */

#include <stdint.h>

#include "daemon/store/db.h"
#include "daemon/store/window_blob.h"

struct store_intern_reader;

/* *damaged counts rows that are missing or were changed; borrowed. */
int store_intern_reader_new(struct store_db *db, uint64_t *damaged,
			    struct store_intern_reader **out);
struct store_intern_reader *store_intern_reader_free(struct store_intern_reader *interned);

struct store_names store_intern_reader_names(struct store_intern_reader *interned);

#endif
