/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_COVERAGE_H
#define STACKD_CLIENT_RENDER_COVERAGE_H

/*
 * The lines that every text answer begins with: the time it covers, gaps, losses and notes. Borrows
 * the reply; write errors stay in the stream. Main thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "client/base/term.h"
#include "client/render/render.h"

/* Prints the time that was asked for and is covered, gaps, losses and notes. */
void render_coverage(const struct view *view, const struct wire_snapshot_reply *reply);

/*
 * Prints the gaps, losses and notes of a second answer for the same time, each under the label, but
 * for those that the first answer has, too.
 */
void render_missing_too(const struct view *view, const char *label,
			const struct wire_snapshot_reply *first,
			const struct wire_snapshot_reply *second);

/* Prints the end of the range in place of the range, for an answer about that moment. */
void render_moment(const struct view *view, const struct wire_snapshot_reply *reply);

/*
 * Prints "lost" and how often for which reason, or that nothing was lost. The label takes `indent`
 * columns.
 */
void render_lost(const struct page *page, const struct wire_losts *lost, size_t indent);

/* Returns how much was lost, for whatever reasons. */
int64_t lost_count(const struct wire_losts *lost);

/* Returns the ns that an answer's windows last, without the gaps between them. */
int64_t coverage_length(const struct wire_coverage *coverage);

/* Writes a time of day, with its date unless that is the date of `day`; both in ns since 1970. */
void moment_text(int64_t moment, int64_t day, char text[static TERM_TIME_MAX]);

#endif
