/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BASE_ACTIVITY_H
#define STACKD_DAEMON_BASE_ACTIVITY_H

/*
 * Shows threads that hang. A thread says when it begins a piece of work, such as the reading of one
 * process, and when it waits for the next. One that has been at the same piece for long is stuck:
 * in a file system or a lock, or in more work than was foreseen. Any thread.
 */

#include <stdatomic.h>
#include <stdint.h>

#include "common/base.h"

enum activity_kind {
	ACTIVITY_RECORDING, /* without this thread, windows or the names in them are missing */
	ACTIVITY_OTHER,
};

/* One thread, which has the struct on its stack. The names are static. */
struct activity {
	const char *thread;
	const char *work; /* the work in a few words, such as "reading processes" */
	enum activity_kind kind;
	atomic_llong begun_ns; /* start of the piece of work, CLOCK_MONOTONIC; 0: it waits */
	struct activity *next;
};

/* Adds a thread to the list of those that are watched; removes it before the thread ends. */
void activity_watch(struct activity *activity);
void activity_unwatch(struct activity *activity);

static inline void activity_begin(struct activity *activity)
{
	atomic_store(&activity->begun_ns, clock_ns(CLOCK_MONOTONIC));
}

static inline void activity_end(struct activity *activity)
{
	atomic_store(&activity->begun_ns, 0);
}

/* A thread that is at one piece of work, and for how long. */
struct activity_stuck {
	const char *thread, *work;
	enum activity_kind kind;
	int64_t ns;
};

/*
 * Writes the watched threads that have been at one piece of work for least_ns or longer to `out`,
 * up to `max` of them. Returns their number.
 */
size_t activity_list_stuck(int64_t least_ns, struct activity_stuck *out, size_t max);

#endif
