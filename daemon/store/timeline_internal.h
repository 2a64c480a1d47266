/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_TIMELINE_INTERNAL_H
#define STACKD_DAEMON_STORE_TIMELINE_INTERNAL_H

/* Shared by the files behind timeline.h: lists (timeline.c) and gaps (timeline_coverage.c). */

#include "daemon/store/prefetch.h"
#include "daemon/store/reader.h"
#include "daemon/store/timeline.h"

struct timeline {
	struct timeline_source source;
	struct timeline_session session;
	struct store_select select;
	struct timeline_list memory; /* all of the session; windows before the range are NULL */
	uint64_t memory_seq;	     /* the oldest window in memory of any session; 0: none */
	struct timeline_list range;
	struct timeline_list later;
	bool is_truncated;
	struct store_prefetch *prefetch; /* loads one of the two lists; NULL: none */
};

/*
 * Finds the window that began last before at_ns, in memory or on disk, whether it is in the range
 * or not. Returns false if there is none, or if it cannot be found.
 */
bool timeline_before(struct timeline *timeline, int64_t at_ns, struct store_entry *out);

#endif
