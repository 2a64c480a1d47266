/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_COMMENTS_H
#define STACKD_CLIENT_RENDER_COMMENTS_H

/*
 * Says in lines of text what an answer covers, which gaps it has, what was lost and which figures
 * are estimates: for formats that have a place for comments. Borrows the answer. Main thread.
 */

#include <stdbool.h>

#include "proto/wire.h"

/* The most gaps, losses and notes of each kind that are listed; the rest is counted. */
enum { COMMENTS_MAX = 100 };

/*
 * True if a note says what is so in each answer, or what a head says in its own words, so that only
 * a long form has it.
 */
bool note_is_of_detail(const char *note);

/* Is called for each line, which is escaped and valid UTF-8. */
typedef void (*comment_fn)(void *context, const char *line);

/* Calls `put` for each line about an answer. */
void comments_of(const struct wire_snapshot_reply *reply, comment_fn put, void *context);

/* Does the same for the lines about what is missing or estimated only: none if all is well. */
void comments_of_missing(const struct wire_snapshot_reply *reply, comment_fn put, void *context);

/* Does the same for the lines about gaps and losses. */
void comments_of_losses(const struct wire_snapshot_reply *reply, comment_fn put, void *context);

/*
 * Returns the same in one line, as "30 s covered, lost 3, 1 s estimated". has_lost is false
 * if lines beside it say what was lost: then only that nothing was is in it. The caller frees it.
 */
char *comments_summary(const struct wire_snapshot_reply *reply, bool has_lost);

#endif
