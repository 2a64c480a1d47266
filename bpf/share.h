/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_SHARE_H
#define STACKD_BPF_SHARE_H

/*
 * Decides whether the owner of some entries of a table gets one more, so that one user who has very
 * many things to record does not leave the others without any. An owner may have at most `factor`
 * times as many entries as are free. With a factor of 3, one owner that takes all it can get leaves
 * a quarter of the table free for the others, two leave a seventh.
 */

#include <linux/types.h>
#include <stdbool.h>

/*
 * True if an owner that has `own` entries may take one more of a table with `max` entries, of which
 * all owners together have taken `taken`. `own` and `taken` may be a little below 0, as the
 * programs count without a lock.
 */
static inline __attribute__((always_inline)) bool share_allows(__s64 own, __s64 taken, __s64 max,
							       __s64 factor)
{
	return taken < max && own < factor * (max - taken);
}

#endif
