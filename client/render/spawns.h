/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_SPAWNS_H
#define STACKD_CLIENT_RENDER_SPAWNS_H

/*
 * Prints the processes that began and ended in the windows of an answer as text: how many, and
 * whose children. Borrows the reply. A write error only sets the stream's error flag. Main thread.
 */

#include "client/render/render.h"

/*
 * Returns in one line how many short-lived processes ended, and who started most of them; NULL if
 * there were none, or if this is not known. The caller frees it.
 */
char *spawns_line(const struct wire_spawns *spawns);

/*
 * Prints a table with the children of each parent process, the parent with the most short-lived
 * children first: at most view->top parents, or all if view->top is 0. Prints why there is none if
 * `spawns` is NULL.
 */
void render_spawns(const struct view *view, const struct wire_spawns *spawns);

#endif
