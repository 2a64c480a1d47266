/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_UNWIND_ROW_MEMORY_H
#define STACKD_DAEMON_UNWIND_ROW_MEMORY_H

/*
 * Where compiled rows are in the memory that walks read: in come tables of files, out goes what of
 * them there is room for, part by part, and what has been of least use. Owned by the unwind room;
 * everything under its lock.
 */

#include "daemon/unwind/internal.h"

/* The words before this one are for heads, which take an eighth at most, the others for parts. */
uint32_t row_memory_heads(const struct unwind *unwind);

/* Room for the file's rows, of no part yet; or what is kept of equal ones already. NULL: none. */
struct row_set *row_memory_get(struct unwind *unwind, const struct unwind_rows *rows,
			       const struct unwind_file *file, int64_t now);

/* What they hold is dropped when the last file that has them does. The caller waits first. */
void row_memory_put(struct unwind *unwind, struct row_set *words);

/*
 * Places the parts that walks have missed, instead of what was not walked through lately if need
 * be; all others where there is room, and the first time instead of what never was walked through.
 * False when a missed one found none.
 */
bool row_memory_fill(struct unwind_file *file, const struct unwind_rows *rows, int64_t now);

/* Notices walks since the last time: the programs only say that there were some. */
void row_memory_notice(struct unwind *unwind, int64_t now);

/* Hides the file's rows from walks that begin now; those that run may still use them. */
void row_memory_hide(struct unwind_file *file);

#endif
