/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_FOLDED_H
#define STACKD_CLIENT_RENDER_FOLDED_H

/*
 * Folded lines, for flame graphs: "name;user frames, root first;kernel frames, root first VALUE".
 * Borrows the answers; write errors stay in the stream. Main thread.
 */

#include <stdio.h>

#include "client/render/render.h"

/* Prints a line for each stack, in microseconds (of calls their number); equal lines are added. */
void render_folded(const struct view *view, const struct wire_snapshot_reply *reply);

/*
 * Prints the lines of both answers, each below the part of the time that it is: "on CPU;NAME;...".
 * samples may be NULL.
 */
void render_overview_folded(const struct view *view, const struct wire_snapshot_reply *waits,
			    const struct wire_snapshot_reply *samples);

/* Prints a name so that it can stand between the separators of a folded line. */
void folded_put_name(FILE *out, const char *name);

#endif
