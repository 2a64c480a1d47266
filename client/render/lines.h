/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_LINES_H
#define STACKD_CLIENT_RENDER_LINES_H

/*
 * Prints the rows of an answer as a table with one line each: figures, process, reason, and the
 * program's own function in place of the stacks. Borrows the reply. A write error only sets the
 * stream's error flag. Main thread.
 */

#include "client/render/render.h"
#include "client/render/stuck_entries.h"

/*
 * Prints the rows of an answer of offcpu, oncpu or iolat, and below them what is not among them. If
 * view->height is not 0, prints no more lines than that, if there is room for one row.
 */
void render_lines(const struct view *view, const struct wire_snapshot_reply *reply);

/* Prints rows of one thread each, with their stacks, holders and age at the end of `used`. */
void render_stuck_rows(const struct view *view, const struct wire_rows *rows,
		       const struct wire_range *used);

/* Returns the process of an entry, and its thread if the entry has only one; the caller frees it.
 */
char *entry_who(const struct stuck_entry *entry);

/*
 * Returns the first of those who hold what a row waits for, and the last one in the chain of
 * holders, who does not wait for another; if nobody is known, whether somebody could be; NULL if no
 * holder was looked for. `end` is the end of the answer's range, in ns since the epoch. The caller
 * frees it.
 */
char *row_holders(const struct wire_row *row, int64_t end);

/* Prints the first n entries of an answer to `stackctl stuck`; `end` is the end of its range. */
void render_stuck_lines(const struct view *view, const struct stuck_entries *entries, size_t n,
			int64_t end);

/*
 * These return what one column says about a row, escaped; the caller frees it. row_who() names the
 * process or the group, as in "mysqld(4242)"; row_why() has the state and the reason, as in "S
 * flock /run/x.lock", or several reasons with their shares; row_function() the program's own
 * function or, without one, that of the kernel: NULL if the row has no stack.
 */
char *row_who(const struct wire_row *row);
char *row_why(const struct wire_row *row);
char *row_function(const struct view *view, const struct wire_row *row);

/*
 * Returns "longest " if a row stands for several waits, else "": what is known of the object and
 * its holders is about the longest wait only, others may be for other objects.
 */
const char *row_longest(const struct wire_row *row);

/*
 * Returns who held up a thread of a row, and for how long, as in "backup(42) for 1.20s"; NULL if
 * that is not known, or was not for a lock, a child or data from others on this host, or not for
 * half of the row's longest wait. The caller frees it.
 */
char *row_held_up_by(const struct wire_row *row);

/*
 * Returns "as of 14:00:00 " if the holders of a row were looked up before the end of the range, at
 * which others may have held what it waits for; else "". The caller frees it.
 */
char *holders_as_of(const struct wire_row *row, int64_t end);

/*
 * Prints the rows of `stackctl stuck --by`, each of which stands for the waits of several threads:
 * the longest of them, their number, and the thread of the longest.
 */
void render_stuck_groups(const struct view *view, const struct wire_rows *rows);

#endif
