/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_UNWIND_ROW_MEMORY_H
#define STACKD_DAEMON_UNWIND_ROW_MEMORY_H

/*
 * Places compiled rows in the memory that stack walks read, and evicts rows when this memory is
 * full. The rows of a file consist of a head and of parts; each part is placed and evicted alone.
 * Private to this room; all functions are called with unwind.lock held.
 */

#include "daemon/unwind/internal.h"

/*
 * Returns the index of the first word that is for parts. The words before it, an eighth of the
 * memory, are for heads.
 */
uint32_t row_memory_heads(const struct unwind *unwind);

/*
 * Returns a reference to a set with these rows: an existing set with equal rows, or else a new set
 * with its head in memory, but none of its parts. NULL when out of memory, or when no room could be
 * made for the head.
 */
struct row_set *row_memory_get(struct unwind *unwind, const struct unwind_rows *rows,
			       const struct unwind_file *file, int64_t now);

/*
 * Drops a reference to the set. The last reference frees the set and its words in shared memory;
 * before it is dropped, the caller must wait until no walk uses these words.
 */
void row_memory_put(struct unwind *unwind, struct row_set *set);

/*
 * Loads the parts of the file that walks have missed into memory, evicting rows that were not used
 * lately if need be. The other parts of the file are loaded only if there is room; when the file is
 * loaded for the first time, rows that were never used are evicted for them, too. Returns false if
 * a missed part did not fit.
 */
bool row_memory_fill(struct unwind_file *file, const struct unwind_rows *rows, int64_t now);

/* Collects the "used" marks that walks have set since the last call, and clears them. */
void row_memory_notice(struct unwind *unwind, int64_t now);

/* Hides the file's rows from walks that begin later; walks that have begun may still use them. */
void row_memory_hide(struct unwind_file *file);

#endif
