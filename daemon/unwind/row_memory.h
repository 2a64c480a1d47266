/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_UNWIND_ROW_MEMORY_H
#define STACKD_DAEMON_UNWIND_ROW_MEMORY_H

/*
 * Puts compiled unwind rows into the memory that BPF programs read, and evicts rows when this
 * memory is full. The rows of a file consist of a head and of parts. A part has the rows of 32 KiB
 * of code; each part is loaded and evicted separately. Private to daemon/unwind/; all functions are
 * called with unwind.lock held.
 */

#include "daemon/unwind/internal.h"

/*
 * The memory for unwind rows has two regions: first the heads of all row sets (see struct row_set),
 * then their rows. Returns the size of the first region in words, an eighth of the memory.
 */
uint32_t row_memory_heads(const struct unwind *unwind);

/*
 * Returns a reference to a set with these unwind rows: an existing set with equal rows, or else a
 * new set. A new set has only its head in memory (see struct row_set), and none of its rows. NULL
 * when out of memory, or when no room could be made for the head.
 */
struct row_set *row_memory_get(struct unwind *unwind, const struct unwind_rows *rows,
			       const struct unwind_file *file, int64_t now);

/*
 * Drops a reference to the set. When the last reference is dropped, the set and its words in shared
 * memory are freed; before that, the caller must wait until no stack walk uses these words.
 */
void row_memory_put(struct unwind *unwind, struct row_set *set);

/*
 * Loads the parts of the file's unwind rows that stack walks have needed but did not find. If there
 * is too little room, evicts rows that were not used recently. Then loads the other parts if there
 * is room for them. At the first load of the file, also evicts rows that were never used, to make
 * room for all its parts. If `wanted` is not NULL, loads only those parts of which it has the
 * numbers. Returns false if a part that walks have needed did not fit.
 */
bool row_memory_fill(struct unwind_file *file, const struct unwind_wanted *wanted,
		     const struct unwind_rows *rows, int64_t now);

/*
 * Copies what the rows of the set that are compiled later have to agree with: its frames and rules.
 * Stores them in *out. Returns 0 or -ENOMEM.
 */
int row_memory_frames(struct unwind *unwind, const struct row_set *set, struct unwind_wanted *out);

/* True if there is room for all rows of the set that are not loaded. */
bool row_memory_has_room(const struct unwind *unwind, const struct row_set *set);

/* Collects the "used" marks that stack walks have set in the rows since the last call, and clears
 * the marks. */
void row_memory_notice(struct unwind *unwind, int64_t now);

/* Makes the file's rows invisible to stack walks that begin later. Walks that have begun may still
 * use them. */
void row_memory_hide(struct unwind_file *file);

#endif
