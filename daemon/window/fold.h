/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_FOLD_H
#define STACKD_DAEMON_WINDOW_FOLD_H

/*
 * Folds a window that has too many rows. The biggest rows stay as they are. The others are summed
 * up: equal rows of several processes with the same comm, exe and cgroup become one row. The
 * processes and names of which most is folded keep their sums: their rows are added to no other's,
 * and where they are too many, they lose their stacks. Totals, counts and histograms stay exact.
 * Any thread may fold any window: these functions have no state and read no clock. A process that
 * stands for several others is added to the process table that has these others.
 */

#include <stddef.h>

#include "daemon/window/window.h"

/* For this number of max_folded, max_sums is one in the windows that are kept. */
enum { WINDOW_SUMS_SHARE = 5 };

struct window_fold_limits {
	/*
	 * The folded window keeps at most this number of rows as they are; the others are added up.
	 * The same limit applies to waits that have not ended, to waits that began in an earlier
	 * window, to samples, and to I/O operations. 0: the window is not folded.
	 */
	size_t max_rows;
	/*
	 * Maximum number of all rows that each stand for several processes, which have the same
	 * comm, exe, cgroup, stacks and state. Further rows are summed up by state and cgroup, or
	 * by state and process, or name, if these keep their sums.
	 */
	size_t max_folded;
	/* At most this number of processes, and as many names, keep their sums. */
	size_t max_sums;
	/*
	 * At most this number of entries of window.images are threads of their own; the other
	 * threads are folded with all of their rows. 0: a thread that has a row which stays as it
	 * is has an entry, and so have up to max_rows threads without such a row.
	 */
	size_t max_images;
	/*
	 * The shortest rows of preempted waits lose their stacks, as long as such rows together
	 * have less than this percentage of the time of all preempted waits. 0: all rows keep their
	 * stacks.
	 */
	unsigned int preempted_percent;
};

/* Name of a process that stands for processes of one cgroup, whatever their names are. */
#define WINDOW_OTHERS "(others)"

/*
 * Folds the window and sets *out to the folded window. If nothing has to be folded, sets *out to a
 * new reference to `window`. Folding a folded window again with the same limits changes nothing.
 * Returns 0 or -ENOMEM.
 */
int window_fold(struct window *window, const struct window_fold_limits *limits,
		struct window **out);

#endif
