/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_FOLD_H
#define STACKD_DAEMON_WINDOW_FOLD_H

/*
 * Folds a window that has too many rows: the biggest rows stay as they are, and the others are
 * summed with those that differ only in the process. All sums, counts and histograms stay exact.
 * Pure functions: no clock and no state, so any thread may fold any window. New entries of the
 * process table are made in the table of the window's processes.
 */

#include <stddef.h>

#include "daemon/window/window.h"

struct window_fold_limits {
	/*
	 * The number of rows, of waits that have not ended, of waits that began in an earlier
	 * window, of samples and of operations that each stay as they are. 0: the window is not
	 * folded at all.
	 */
	size_t max_rows;
	/*
	 * The number of sums for processes with the same comm, exe, cgroup, stacks and state. What
	 * is beyond these is summed for each cgroup and state.
	 */
	size_t max_folded;
	/*
	 * Preempted waits that together make up less than this part of all preempted time lose
	 * their stacks, in percent; the shortest rows do. 0: all keep their stacks.
	 */
	unsigned int preempted_percent;
};

/* The name of the process that stands for processes of a cgroup that have nothing else in common.
 */
#define WINDOW_OTHERS "(others)"

/*
 * Folds the window. Sets *out to the folded window, or to a reference to the same window if nothing
 * has to be folded. Folding a folded window again with the same limits changes nothing. Returns 0,
 * -ENOMEM, or -EOVERFLOW if a sum of a histogram is too large.
 */
int window_fold(struct window *window, const struct window_fold_limits *limits,
		struct window **out);

#endif
