/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_UNWIND_ROW_MEMORY_H
#define STACKD_DAEMON_UNWIND_ROW_MEMORY_H

/*
 * Places compiled rows in the memory that stack walks read, and evicts rows when it is full. The
 * rows of a file consist of a head and of parts, which are placed and evicted one by one. Private
 * to this room; everything is called with unwind.lock held.
 */

#include "daemon/unwind/internal.h"

/* Returns the first word for parts; the words before it, an eighth, are for heads. */
uint32_t row_memory_heads(const struct unwind *unwind);

/*
 * Returns a reference to a set with these rows: an existing one with equal rows, or a new one with
 * its head in memory and no part yet. NULL when out of memory, or when no room could be made.
 */
struct row_set *row_memory_get(struct unwind *unwind, const struct unwind_rows *rows,
			       const struct unwind_file *file, int64_t now);

/*
 * Drops a reference; with the last one the set and its memory are freed. The caller must have
 * waited until no walk uses them.
 */
void row_memory_put(struct unwind *unwind, struct row_set *set);

/*
 * Places the parts that walks have missed, evicting rows that were not used lately if need be. The
 * other parts are placed where there is room; the first time, rows that were never used are evicted
 * for them. Returns false if a missed part found no room.
 */
bool row_memory_fill(struct unwind_file *file, const struct unwind_rows *rows, int64_t now);

/* Collects and clears the "used" marks that walks have set since the last time. */
void row_memory_notice(struct unwind *unwind, int64_t now);

/* Hides the file's rows from walks that begin from now on; those that run may still use them. */
void row_memory_hide(struct unwind_file *file);

#endif
