/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_TOP_SCREEN_H
#define STACKD_CLIENT_TOP_SCREEN_H

/* Draws the screen of `stackctl top` with ncurses. Main thread. */

#include <stdbool.h>
#include <stddef.h>

#include "client/top/ask.h"
#include "client/top/rows.h"
#include "client/top/state.h"

/* The lines above the rows: title, tabs, totals, columns; and the line below them. */
enum { SCREEN_HEAD = 4, SCREEN_FOOT = 1 };

/* All that is drawn. */
struct screen {
	const struct top_state *state;
	const struct top_answer *answer; /* NULL: there was none yet */
	const struct top_rows *rows;
	const struct top_base *base; /* NULL: nothing is compared */
	bool has_base;		     /* there is a base, if only one of other rows */
	char *const *lines;	     /* of a pane of text; NULL: no such pane is shown */
	size_t n_lines;
	const char *trouble; /* why the answer is not newer; NULL: it is the newest */
	const char *nothing; /* what to say where there are no rows */
};

/* Returns how many lines there are for rows. */
size_t screen_height(void);

void screen_draw(const struct screen *screen);

#endif
