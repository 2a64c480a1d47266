/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_STUCK_ENTRIES_H
#define STACKD_CLIENT_RENDER_STUCK_ENTRIES_H

/*
 * Groups rows that each stand for one thread into the entries that `stackctl stuck` prints: an
 * entry is the threads of one process that wait with the same stacks in the same state. Sorts the
 * entries by urgency. Borrows the rows. Main thread.
 */

#include <stddef.h>

#include "client/render/render.h"

enum urgency {
	URGENT_OWN, /* stackd's own threads: nobody else waits for them */
	/* it is not known whether the wait is over: the daemon did not see the thread */
	URGENT_DOUBT,
	URGENT_IDLE,	 /* the thread waits for new work; listed only with --idle or a filter */
	URGENT_OLD,	 /* a wait that is none of the others */
	URGENT_HELD,	 /* a wait of 1 s or more for a lock that somebody holds */
	URGENT_DEADLOCK, /* a wait that ends only if one of its threads is killed */
	URGENT_NOW,	 /* an uninterruptible wait of 5 s or more that not even kill -9 ends */
};

struct stuck_entry {
	/*
	 * The rows of the threads that this entry shows, one for each thread. The row with the
	 * oldest wait comes first.
	 */
	const struct wire_row *const *rows;
	size_t n;
	size_t waits; /* number of threads; a row of several processes stands for several */
	enum urgency urgency;
};

struct stuck_entries {
	struct stuck_entry *v;
	size_t n;
	size_t waits;  /* number of threads of all entries */
	size_t urgent; /* number of threads whose waits are URGENT_NOW */
	const struct wire_row **rows;
};

/* Groups the rows into entries. Ends the program when memory runs out. */
void stuck_entries_init(struct stuck_entries *entries, const struct view *view,
			const struct wire_rows *rows);
void stuck_entries_fini(struct stuck_entries *entries);

#endif
