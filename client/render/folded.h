/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_FOLDED_H
#define STACKD_CLIENT_RENDER_FOLDED_H

/*
 * Prints folded lines, which programs that draw flame graphs read: "name;user frames, root
 * first;kernel frames, root first VALUE". Borrows the answers. A write error only sets the stream's
 * error flag. Main thread.
 */

#include <stdio.h>

#include "client/render/render.h"

/*
 * Prints one line for each stack, with its time in microseconds or its number of calls. Lines with
 * the same text become one line with the sum of their values.
 */
void render_folded(const struct view *view, const struct wire_snapshot_reply *reply);

/* Prints a name as an element of a folded line: replaces the characters that separate elements. */
void folded_put_name(FILE *out, const char *name);

#endif
