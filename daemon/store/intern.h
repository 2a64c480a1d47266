/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_INTERN_H
#define STACKD_DAEMON_STORE_INTERN_H

/*
 * Interning, the write side: stacks, frames and processes that windows share are written to the
 * database once, and windows refer to them by number. Owned by the writer's thread; the numbers of
 * recent rows are cached, within bounds.
 */

#include <stdint.h>

#include "daemon/store/db.h"
#include "daemon/store/window_blob.h"

/*
 * Each row keeps the number of a window that used it ("seen"). To save writes it is updated
 * ("touched") only when it is `touch` or more windows old; so a row is dropped only when seen lies
 * more than `touch` windows before the oldest window. The touch grows with the number of windows:
 * in a small store, unused rows must not take most of the space. It is STORE_TOUCH_LEAST at level
 * 0, and doubles with each level.
 */
enum { STORE_TOUCH_LEAST = 16, STORE_TOUCH_LEVELS = 5 };

struct store_intern;

int store_intern_new(struct store_db *db, struct store_intern **out);
struct store_intern *store_intern_free(struct store_intern *intern);

/*
 * Returns the functions that store_blob_encode() takes, for the window that will have this number,
 * with this touch.
 */
struct store_names store_intern_names(struct store_intern *intern, int64_t window, int64_t touch);

/* Returns the number of the window that was given last. */
int64_t store_intern_window(const struct store_intern *intern);

/* Clears the cache. Called after a rollback: numbers in it may never have been written. */
void store_intern_forget(struct store_intern *intern);

/* Removes rows from the cache that are dropped: seen before `window`, or frames before `frames`. */
void store_intern_forget_before(struct store_intern *intern, int64_t window, int64_t frames);

/* Returns the checksum of a row's number and data, or of a window's number and blob. */
int64_t store_sum(int64_t number, const void *data, size_t size);

#endif
