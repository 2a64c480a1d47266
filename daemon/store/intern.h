/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_INTERN_H
#define STACKD_DAEMON_STORE_INTERN_H

/*
 * What windows have in common is written once: in go stacks, frames and processes, out come their
 * numbers in the database. The writer's; what it has written lately is remembered, within bounds.
 */

#include <stdint.h>

#include "daemon/store/db.h"
#include "daemon/store/window_blob.h"

/*
 * A row says which window it was last seen in; it is told again every so many windows, and is
 * forgotten when that many before the oldest window were the last. Seldom, for it is written each
 * time; but in a store of few windows often, or what nobody refers to takes the room of all.
 */
enum { STORE_TOUCH_LEAST = 16, STORE_TOUCH_LEVELS = 5 /* doubled from one to the next */ };

struct store_intern;

int store_intern_new(struct store_db *db, struct store_intern **out);
struct store_intern *store_intern_free(struct store_intern *intern);

/*
 * For store_blob_encode(); window is the number that the window will have, touch is after how many
 * windows a row is told again.
 */
struct store_names store_intern_names(struct store_intern *intern, int64_t window, int64_t touch);

/* The last one of these. */
int64_t store_intern_window(const struct store_intern *intern);

/* After a rollback: the numbers it gave may never have been written. */
void store_intern_forget(struct store_intern *intern);

/* Rows that were last seen before that are there no more; of frames, before the other one. */
void store_intern_forget_before(struct store_intern *intern, int64_t window, int64_t frames);

/* The sum that guards an interned row, or the blob of a window. */
int64_t store_sum(int64_t number, const void *data, size_t size);

#endif
