/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_TIMELINE_H
#define STACKD_DAEMON_STORE_TIMELINE_H

/*
 * The windows of one session as one line in time, whether they are in memory or on disk, what of a
 * range they cover, and why the rest of it is missing. A query opens one timeline for its range and
 * reads nothing else of history and store: memory is looked at once, when the timeline is opened.
 * Owned by the query's answer; one thread at a time. The reader outlives the timeline.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"
#include "daemon/store/entry.h"
#include "daemon/window/window.h"

/* Gaps that are listed one by one; more are left out. */
enum { TIMELINE_GAPS_MAX = 1024 };

struct history;
struct store_reader;
struct timeline;

/* Where the windows are kept. */
struct timeline_source {
	struct history *history;     /* the windows in memory; NULL: there are none */
	struct store_reader *reader; /* the windows on disk; NULL: there are none */
	uint64_t run;		     /* this run of stackd, as the store numbers it; 0: not known */
	const char *boot_id;	     /* of the running kernel; borrowed */
};

/* The session whose windows are wanted; strings are borrowed. */
struct timeline_session {
	uint64_t id;
	uint64_t run;	   /* the run of stackd that recorded it, if it has ended; 0: this run */
	const char *probe; /* its probe if it is always on, so that all runs count; else NULL */
	int64_t since_ns;  /* when it began, in ns since the epoch */
	bool is_recording; /* now */
};

/*
 * Windows of a timeline, oldest first: those on disk, then those in memory. A list can also be made
 * by hand, of windows in memory only: then entries, n_stored and timeline stay 0.
 */
struct timeline_list {
	struct store_entry *entries; /* describe the windows without loading them */
	struct window **windows;     /* references; NULL for windows on disk */
	size_t n;
	size_t n_stored;	   /* entries [0, n_stored) are on disk */
	struct timeline *timeline; /* loads them */
};

struct timeline_gap {
	int64_t start_ns; /* since the epoch, as all times here */
	int64_t end_ns;
	const char *reason;
};

struct timeline_coverage {
	struct timeline_gap *gaps; /* in the caller's arena, in order */
	size_t n_gaps;
	int64_t used_start_ns; /* the range itself if no window could be read */
	int64_t used_end_ns;
	int64_t covered_ns;
	size_t windows;	  /* that could be read */
	size_t compacted; /* of these, longer ones that replace several */
	size_t bad;	  /* windows that could not be read */
};

/*
 * Lists the session's windows that overlap [since_ns, until_ns). Windows on disk that cannot be
 * listed are left out. Returns 0 and *out, which is the caller's, or -ENOMEM.
 */
int timeline_open(const struct timeline_source *source, const struct timeline_session *session,
		  int64_t since_ns, int64_t until_ns, struct timeline **out);
struct timeline *timeline_close(struct timeline *timeline);

/*
 * Lists the windows after until_ns, in which waits of the range may have ended; on disk those that
 * begin at most 2 min later. until_ns is after the since_ns of the open. Returns 0 or -ENOMEM.
 */
int timeline_read_later(struct timeline *timeline, int64_t until_ns);

/* The windows of the range, and those after it; borrowed. */
const struct timeline_list *timeline_range(const struct timeline *timeline);
const struct timeline_list *timeline_later(const struct timeline *timeline);

/*
 * Returns a reference to window i of the list, loading it if it is on disk: 16 or more of them are
 * loaded ahead by a thread if they are asked for from the last one on. NULL: it cannot be read; its
 * entry is marked, and it is not tried again.
 */
struct window *timeline_window(const struct timeline_list *list, size_t i);

/* True if the range has more windows on disk than one list takes; its oldest ones are left out. */
bool timeline_is_truncated(const struct timeline *timeline);

/* When the range's first window began, even if it was left out. The range has windows. */
int64_t timeline_first_start(const struct timeline *timeline);

/* True if memory has a window of the session, in the range or not. */
bool timeline_has_memory(const struct timeline *timeline);

/* Returns up to when windows of any session were evicted from memory; 0: none were. */
int64_t timeline_memory_evicted(const struct timeline *timeline);

/* Adds what the windows of the range lost to lost[WINDOW_LOST_N]; unreadable ones do not count. */
void timeline_losses(const struct timeline *timeline, uint64_t *lost);

/*
 * Works out how much of [since_ns, until_ns) the windows of the range cover, and why each gap is
 * there. Called after the windows were asked for: a window that could not be read is a gap. Gaps
 * and reasons live in the arena. Returns 0 or -ENOMEM.
 */
int timeline_coverage(struct timeline *timeline, struct arena *arena, int64_t since_ns,
		      int64_t until_ns, struct timeline_coverage *out);

#endif
