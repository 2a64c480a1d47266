/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_COVERAGE_H
#define STACKD_CLIENT_RENDER_COVERAGE_H

/*
 * Prints the lines at the beginning of every text answer: the time that the answer covers, gaps,
 * losses and notes. Borrows the reply. A write error only sets the stream's error flag. Main
 * thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/base/term.h"
#include "client/render/render.h"

/*
 * Prints the time that the answer covers, the length that the user asked for, gaps, losses and
 * notes.
 */
void render_coverage(const struct view *view, const struct wire_snapshot_reply *reply);

/*
 * Writes a range of time with its time zone. The end has a date only if it is on another day than
 * the start.
 */
void range_text(const struct wire_range *range, char *text, size_t size);

/* Prints why there is no data in the range of an answer. */
void render_no_data(const struct view *view, const char *why);

/*
 * Prints the gaps, losses and notes of the second answer of an overview, with the label in front of
 * each. Leaves out gaps and notes that the first answer has, too.
 */
void render_missing_too(const struct view *view, const char *label,
			const struct wire_snapshot_reply *first,
			const struct wire_snapshot_reply *second);

/*
 * Prints the head of an answer to `stackctl stuck`. The answer is about the moment at which its
 * range ends. The head has that moment, then the gaps after it, the losses and the notes.
 */
void render_moment(const struct view *view, const struct wire_snapshot_reply *reply);

/*
 * Prints the line with the label "lost": each reason for which events were lost, with their number;
 * or that none were lost. The label is padded to `indent` columns.
 */
void render_lost(const struct page *page, const struct wire_losts *lost, size_t indent);

/*
 * Returns "at most " if rows were folded, else "": for numbers of processes and threads. A process
 * of which rows were folded counts once for each sum that it is a part of.
 */
static inline const char *fold_at_most(const struct wire_folded *folded)
{
	return folded ? "at most " : "";
}

/*
 * Returns the part of the runnable time of which it is not known whether it is: of waits that may
 * be over, as the daemon could not look at their threads when the last window ended.
 */
static inline int64_t totals_doubt(const struct wire_totals *totals)
{
	bool is_known = totals->unseen_ns > 0 && totals->unseen_ns <= totals->runnable_ns;

	return is_known ? totals->unseen_ns : 0;
}

/* Prints what was folded as one line; nothing if folded is NULL. */
void render_fold(const struct page *page, const struct wire_folded *folded, size_t indent);

/*
 * True if a detail, the name of a struct wire_shed, was not recorded in a part of the range. `cost`
 * may be NULL.
 */
bool cost_lacks(const struct wire_cost *cost, const char *name);

/* Returns in words for users what is not recorded; `name` is that of a struct wire_shed. */
const char *shed_words(const char *name);

/* Returns the same in one or two words, for a line that names all of it. */
const char *shed_brief(const char *name);

/* Prints what stackd does not record to keep within its budget; `when` says since when or for how
 * long. */
void render_shed(const struct page *page, const struct wire_shed *shed, const char *when,
		 size_t indent);

/* Returns for which share of a CPU this CPU time is, in percent. */
double cpu_percent(int64_t cpu_ns, int64_t length_ns);

/*
 * Returns the CPU time that [budget] cpu limits, and no other is compared with it: without answers
 * to clients and sessions that they started.
 */
int64_t cost_held_ns(const struct wire_cost *cost);

/* Writes what clients cost beside that. Returns false if it is too little to be shown. */
bool cost_clients_text(const struct wire_cost *cost, char *out, size_t size);

/*
 * Writes for which part of the range the minute before had cost more than the budget, which part of
 * stackd costs most, and a setting that changes that. Returns false if it was never so.
 */
bool cost_beyond_text(const struct wire_cost *cost, char *out, size_t size);

/*
 * Prints what stackd cost as one line, and what it did not record because of that; nothing if cost
 * is NULL. The line also says below which length waits were sampled, unless sample_below_ns is not
 * above 0.
 */
void render_cost(const struct page *page, const struct wire_cost *cost, int64_t sample_below_ns,
		 size_t indent);

/* Returns how many events were lost, summed up over all reasons. */
int64_t lost_count(const struct wire_losts *lost);

/* Returns the sum of the lengths of an answer's windows in ns, without the gaps between them. */
int64_t coverage_length(const struct wire_coverage *coverage);

/* True if windows cover the whole range that was asked for. */
bool coverage_is_whole(const struct wire_coverage *coverage);

/*
 * Returns how much time the windows of an answer are about and, if a part of the range that was
 * asked for is missing, how long that is: "15 s covered, not all of 30 s". The caller frees it.
 */
char *coverage_words(const struct wire_coverage *coverage);

/*
 * Writes a moment as a time of day. Adds the date unless it is the same day as that of `day`. Both
 * times are in ns since 1970.
 */
void moment_text(int64_t moment, int64_t day, char text[static TERM_TIME_MAX]);

#endif
