/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_OVERVIEW_LINES_H
#define STACKD_CLIENT_RENDER_OVERVIEW_LINES_H

/*
 * Prints the overview on one screen of 24 lines, with a line for each row. Borrows the answers. A
 * write error only sets the stream's error flag. Main thread.
 */

#include "client/render/render.h"

/* Prints the head of an overview, and its short-lived processes. Returns the number of lines. */
size_t render_overview_head(const struct view *view, const struct overview *overview);

/*
 * Each returns why an overview without samples or I/O says nothing about them: the answer says it,
 * or they were not recorded in a part of the range. NULL: there were none.
 */
const char *overview_no_samples(const struct overview *overview);
const char *overview_no_io(const struct overview *overview);

/*
 * Prints the answers of an overview whose rows are by line, with at most view->top rows for each
 * part of the time; with fewer if they do not fit on the screen, unless view->top_is_given. The
 * part "blocked" comes first if one of its rows is urgent.
 */
void render_overview_lines(const struct view *view, const struct overview *overview);

#endif
