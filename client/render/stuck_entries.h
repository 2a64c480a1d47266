/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_STUCK_ENTRIES_H
#define STACKD_CLIENT_RENDER_STUCK_ENTRIES_H

/*
 * Groups rows of one thread each into the entries that stuck prints: threads of one process that
 * wait with the same stacks in the same state. Sorts the entries by how urgent they are to look at.
 * Borrows the rows. Main thread.
 */

#include <stdbool.h>
#include <stddef.h>

#include "client/render/render.h"

enum urgency {
	URGENT_DOUBT, /* the wait may be over */
	URGENT_IDLE,  /* the thread waits for work; shown because the user asked for it */
	URGENT_OLD,   /* any other wait; the oldest comes first */
	URGENT_NOW,   /* not even kill -9 ends it, and it is too old for a slow disk */
};

struct stuck_entry {
	const struct wire_row *const *rows; /* the oldest wait first */
	size_t n;
	enum urgency urgency;
};

struct stuck_entries {
	struct stuck_entry *v;
	size_t n;
	size_t urgent; /* threads in waits that are URGENT_NOW; the first entries have them */
	const struct wire_row **rows;
};

/* Makes the entries; ends the program when memory runs out. */
void stuck_entries_init(struct stuck_entries *entries, const struct view *view,
			const struct wire_rows *rows);
void stuck_entries_fini(struct stuck_entries *entries);

#endif
