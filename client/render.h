/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_H
#define STACKD_CLIENT_RENDER_H

/*
 * Stage 8: in goes a decoded reply and how to show it, out come lines on a stream. The reply is
 * borrowed and not changed; write errors stay in the stream. Main thread.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "client/page.h"
#include "proto/wire.h"

/* How frames and rows are to be shown; --short, --offset and so on. */
struct view {
	struct page page;
	bool is_short;
	bool offset;
	bool verbose;
	bool annotations;
	bool delimited;
	bool by_max; /* the longest wait leads, not the sum */
	bool reverse;
	int64_t top; /* stuck: rows to show, 0 for all */
};

/* For a person: coverage, totals, losses, then the rows in the order they came. */
void render_text(const struct view *view, const struct wire_snapshot_reply *reply);

/* For a person with a hung system: who waits right now, uninterruptible first, then oldest. */
void render_stuck(const struct view *view, const struct wire_snapshot_reply *reply);

/* comm;user root first;kernel root first microseconds; equal lines added up. */
void render_folded(const struct view *view, const struct wire_snapshot_reply *reply);

/* The reply's parameters as one JSON document. 0, -ENOMEM. */
int render_json(FILE *out, const struct wire_snapshot_reply *reply, bool is_pretty);

/* What was asked, what is covered, what is missing; shared by both texts. */
void render_coverage(const struct view *view, const struct wire_snapshot_reply *reply);

/* "lost" and its reasons, or that nothing was; the label's column is indent wide. */
void render_lost(const struct page *page, const struct wire_losts *lost, size_t indent);

/*
 * Frames of both stacks, leaf first, at most limit of each (0: all), with the border between
 * kernel and user.
 */
void render_frames(const struct view *view, const struct wire_row *row, size_t indent,
		   size_t limit);

/* A frame's name: function, module+0xoffset or [unknown], not escaped; malloc'ed. */
char *frame_label(const struct view *view, const struct wire_frame *frame, bool is_kernel);

/* "D uninterruptible (disk or lock)"; malloc'ed. */
char *state_words(const struct wire_row *row);

/* What a flag of a stack means, in words; NULL for one not known. */
const char *flag_text(const char *flag);

/* "mysqld (pid 4242, thread 4250 io)"; escaped, malloc'ed. */
char *row_title(const struct view *view, const struct wire_row *row);

/* Of the tasks whose wait nothing can interrupt. */
bool row_is_uninterruptible(const struct wire_row *row);

#endif
