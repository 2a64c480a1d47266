/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_STUCK_ENTRIES_H
#define STACKD_CLIENT_RENDER_STUCK_ENTRIES_H

/*
 * Who waits, in the order to look at it: in come rows of one thread each, out come entries of
 * threads of one process that wait at the same stack in the same state. Borrows the rows. Main
 * thread.
 */

#include <stdbool.h>
#include <stddef.h>

#include "client/render/render.h"

enum urgency {
	URGENT_DOUBT,
	URGENT_IDLE, /* nobody minds it, but somebody asked for it */
	URGENT_OLD,  /* the older, the more */
	URGENT_NOW,  /* nothing can end it, and it is no disk read that is just slow */
};

struct stuck_entry {
	const struct wire_row *const *rows; /* the oldest wait first */
	size_t n;
	enum urgency urgency;
};

struct stuck_entries {
	struct stuck_entry *v;
	size_t n;
	size_t urgent; /* threads; the first entries have them, and may have younger ones besides */
	const struct wire_row **rows;
};

/* Stops the program when there is no memory. */
void stuck_entries_init(struct stuck_entries *entries, const struct view *view,
			const struct wire_rows *rows);
void stuck_entries_fini(struct stuck_entries *entries);

#endif
