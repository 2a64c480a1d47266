/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_INTERN_H
#define STACKD_DAEMON_STORE_INTERN_H

/*
 * Interning, the write side: writes each stack, frame and process to the database only once and
 * returns the number of its row, by which windows refer to it. Caches the numbers of recent rows,
 * up to a limit. Owned by the writer's thread.
 */

#include <stdint.h>

#include "daemon/store/db.h"
#include "daemon/store/window_blob.h"

/*
 * The column `seen` of a row has the number of a window that used the row. To save writes, the
 * writer updates it ("touches" the row) only when it is at least `touch` windows behind. A row is
 * therefore deleted only when its `seen` is more than `touch` windows before the oldest window. A
 * large `touch` keeps unused rows for longer, and a small store has no space for that. So `touch`
 * grows with the number of windows, in steps that are called touch levels: it is STORE_TOUCH_LEAST
 * at level 0, and twice as large at each next level.
 */
enum { STORE_TOUCH_LEAST = 16, STORE_TOUCH_LEVELS = 5 };

struct store_intern;

/* Creates an interner that writes to `db`, which must outlive it. Returns 0 or -ENOMEM. */
int store_intern_new(struct store_db *db, struct store_intern **out);
struct store_intern *store_intern_free(struct store_intern *intern);

/*
 * Returns the functions that store_blob_encode() needs to get the row numbers of stacks and
 * processes. `window` is the number that the encoded window will have. If the `seen` of a row is
 * lower than this number by `touch` or more, it is set to this number.
 */
struct store_names store_intern_names(struct store_intern *intern, int64_t window, int64_t touch);

/* Returns the window number that was passed to store_intern_names() last. */
int64_t store_intern_window(const struct store_intern *intern);

/*
 * Clears the cache. Called after a rollback, because rows in the cache may now be missing in the
 * database.
 */
void store_intern_forget(struct store_intern *intern);

/*
 * Removes from the cache the stacks and processes whose `seen` is below `window`, and the frames
 * whose `seen` is below `frames`. Called before the same rows are deleted from the database.
 */
void store_intern_forget_before(struct store_intern *intern, int64_t window, int64_t frames);

/* Returns the checksum of a row's number and data, or of a window's number and blob. */
int64_t store_sum(int64_t number, const void *data, size_t size);

#endif
