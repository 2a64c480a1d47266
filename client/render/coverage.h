/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_COVERAGE_H
#define STACKD_CLIENT_RENDER_COVERAGE_H

/*
 * Prints the lines at the beginning of every text answer: the time that the answer covers, gaps,
 * losses and notes. Borrows the reply. A write error only sets the stream's error flag. Main
 * thread.
 */

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
 * Prints the gaps, losses and notes of a second answer about the same time, each behind the label.
 * Leaves out gaps and notes that the first answer also has.
 */
void render_missing_too(const struct view *view, const char *label,
			const struct wire_snapshot_reply *first,
			const struct wire_snapshot_reply *second);

/*
 * Prints the end of the answer's range as the moment that the answer is about, then the gaps after
 * that moment, the losses and the notes. For answers of `stackctl stuck`.
 */
void render_moment(const struct view *view, const struct wire_snapshot_reply *reply);

/*
 * Prints "lost" and how many events were lost for which reasons, or that none were lost. The label
 * "lost" is padded to `indent` columns.
 */
void render_lost(const struct page *page, const struct wire_losts *lost, size_t indent);

/* Returns how many events were lost, summed up over all reasons. */
int64_t lost_count(const struct wire_losts *lost);

/* Returns the sum of the lengths of an answer's windows in ns, without the gaps between them. */
int64_t coverage_length(const struct wire_coverage *coverage);

/*
 * Writes a moment as a time of day, and with its date unless it is on the same day as `day`. Both
 * times are in ns since 1970.
 */
void moment_text(int64_t moment, int64_t day, char text[static TERM_TIME_MAX]);

#endif
