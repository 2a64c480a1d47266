/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_FLAME_SVG_H
#define STACKD_CLIENT_RENDER_FLAME_SVG_H

/*
 * Draws a flame graph as an SVG file: without a script and without anything from elsewhere, in the
 * light or dark colours that the viewer prefers. The title of each frame, which viewers show under
 * the pointer, has its whole name and its value. The program ends when memory runs out. Main
 * thread.
 */

#include <stdbool.h>
#include <stdio.h>

#include "client/render/flame.h"

/* The most frames that are drawn. If there are more, narrower ones are left out. */
enum { FLAME_SVG_FRAMES_MAX = 50000, FLAME_SVG_LINES_MAX = 8 };

struct flame_svg {
	FILE *out;
	const char *title;
	const char *lines[FLAME_SVG_LINES_MAX]; /* what is written below the title; up to a NULL */
	bool is_count;				/* the values are numbers of calls, not ns */
	bool is_comparison; /* both values are drawn, one graph above the other, on one scale */
};

/* Draws a graph after flame_place(). A write error only sets the stream's error flag. */
void flame_svg_draw(const struct flame_svg *svg, const struct flame *flame);

#endif
