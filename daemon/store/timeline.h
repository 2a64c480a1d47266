/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_TIMELINE_H
#define STACKD_DAEMON_STORE_TIMELINE_H

/*
 * Lists the windows of one session in a range of time, in memory and on disk, and loads them. Works
 * out how much of the range they cover, and why the rest is missing. A query opens one timeline for
 * its range and reads the history and the store only through it. The list of windows in memory is
 * taken once, when the timeline is opened. Owned by the query's answer; one thread at a time. The
 * store_reader must outlive the timeline.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"
#include "daemon/store/entry.h"
#include "daemon/window/window.h"

/* The maximum number of gaps that a timeline lists; further gaps are left out. */
enum { TIMELINE_GAPS_MAX = 1024 };

struct history;
struct store_reader;
struct timeline;

/* Where a timeline finds the windows. */
struct timeline_source {
	struct history *history;     /* the windows in memory; NULL: there are none */
	struct store_reader *reader; /* the windows on disk; NULL: there are none */
	uint64_t run;	     /* number of this run of stackd in the database; 0: not known */
	const char *boot_id; /* boot id of the running kernel; borrowed */
	/*
	 * length with which windows are recorded; a window that is at least twice as long counts as
	 * merged
	 */
	int64_t window_ns;
};

/* The session whose windows a timeline lists; the strings are borrowed. */
struct timeline_session {
	uint64_t id;  /* number of the session */
	uint64_t run; /* number of the earlier run of stackd that recorded the session; 0: this run
			 recorded it */
	/*
	 * name of an always-on probe, whose windows of all runs are listed; NULL: a client's
	 * session
	 */
	const char *probe;
	int64_t since_ns;  /* when the session began, in ns since the epoch */
	bool is_recording; /* the session is being recorded now */
};

/*
 * A list of windows, oldest first. A window that is in memory and on disk is in the list once, as
 * the one that has more rows, or as the one in memory if both have as many. A caller can also make
 * a list of its own, of windows in memory only. In such a list, the members `entries` and
 * `timeline` are NULL, and n_stored is 0.
 */
struct timeline_list {
	/* entries[i] describes window i, so that it need not be loaded */
	struct store_entry *entries;
	struct window **windows; /* a reference to each window; NULL for a window on disk */
	size_t n;
	size_t n_stored;	   /* number of windows that are read from disk */
	struct timeline *timeline; /* the timeline that loads the windows on disk */
};

struct timeline_gap {
	int64_t start_ns; /* in ns since the epoch, like end_ns */
	int64_t end_ns;
	const char *reason; /* text for the user: why nothing was recorded */
};

struct timeline_coverage {
	struct timeline_gap *gaps; /* sorted by time; in the caller's arena */
	size_t n_gaps;
	/* start of the first readable window; without any, start of the range */
	int64_t used_start_ns;
	int64_t used_end_ns; /* end of the last readable window; without any, end of the range */
	int64_t covered_ns;  /* how many ns of the range are covered by readable windows */
	int64_t used_ns;     /* how many ns from used_start_ns to used_end_ns are */
	size_t windows;	     /* number of readable windows */
	/* how many of the readable windows are the result of merging several windows */
	size_t compacted;
	size_t bad; /* number of windows that could not be read */
};

/* The part of a range that is read from summaries, see timeline_summarize(). */
struct timeline_summaries {
	size_t n;	/* number of summaries */
	size_t windows; /* number of windows in whose place they are read */
	/*
	 * The sum of rows with the same comm, exe, cgroup, stacks and state may lack up to this
	 * time in the summaries, which have it within "(others)".
	 */
	uint64_t lacks_ns;
};

/*
 * Lists the session's windows that overlap [since_ns, until_ns). Leaves out windows on disk if the
 * database cannot be read. Returns 0 and *out, which timeline_close() frees, or -ENOMEM.
 */
int timeline_open(const struct timeline_source *source, const struct timeline_session *session,
		  int64_t since_ns, int64_t until_ns, struct timeline **out);
struct timeline *timeline_close(struct timeline *timeline);

/*
 * Lists the session's windows after until_ns, in which waits that began in the range may have
 * ended. Lists all such windows in memory, but of those on disk only the ones that begin at most 2
 * min after until_ns. until_ns must be greater than the since_ns of timeline_open(). Returns 0 or
 * -ENOMEM.
 */
int timeline_read_later(struct timeline *timeline, int64_t until_ns);

/*
 * Puts summaries in place of those windows of the range on disk for which there are some. Each
 * summary is then one window of the list timeline_range(); its entry has `summarized` set.
 * Coverage, gaps and losses stay those of the windows. Called before a window is loaded, for an
 * always-on probe. Sets *out to what was replaced. Returns 0 or -ENOMEM.
 */
int timeline_summarize(struct timeline *timeline, struct timeline_summaries *out);

/*
 * True if a summary could not be read. Its windows may be readable: the caller opens another
 * timeline, without summaries.
 */
bool timeline_has_bad_summary(const struct timeline *timeline);

/*
 * timeline_range() returns the list of the windows in the range, timeline_later() the list that
 * timeline_read_later() made. Both lists are borrowed.
 */
const struct timeline_list *timeline_range(const struct timeline *timeline);
const struct timeline_list *timeline_later(const struct timeline *timeline);

/*
 * Returns a reference to window i of the list; loads the window if it is on disk. A caller that
 * wants all windows should ask for the last one first: if 16 or more are on disk, a thread then
 * loads the others before they are asked for. If the window cannot be read from disk, returns the
 * folded one in memory; if there is none, returns NULL and sets `bad` in the window's entry.
 */
struct window *timeline_window(const struct timeline_list *list, size_t i);

/*
 * Keeps the thread that timeline_window() may have started from using the store_reader, until
 * timeline_window() is called again. Callers that load only a part of a list call this before they
 * use the reader in another way.
 */
void timeline_pause(struct timeline *timeline);

/*
 * True if the range has more windows on disk than a list can have. The list lacks the oldest ones.
 */
bool timeline_is_truncated(const struct timeline *timeline);

/*
 * Returns when the first listed window began. If the list is truncated, returns when the session's
 * oldest window began, even if that is before the range. The range must have a window.
 */
int64_t timeline_first_start(const struct timeline *timeline);

/* True if a window of the session is in memory, whether it is in the range or not. */
bool timeline_has_memory(const struct timeline *timeline);

/*
 * Returns the end of the window that was last evicted from memory, of any session, in ns since the
 * epoch; 0 if none was evicted.
 */
int64_t timeline_memory_evicted(const struct timeline *timeline);

/*
 * Adds the loss counts of the readable windows [first, end) of the range to the counts in
 * lost[WINDOW_LOST_N]. Returns 0 or -ENOMEM.
 */
int timeline_losses(const struct timeline *timeline, size_t first, size_t end, uint64_t *lost);

/*
 * Works out how much of [since_ns, until_ns) the windows of the range cover, and why each gap is
 * there. Called after the windows were loaded, because a window that could not be read is a gap.
 * Gaps and reasons are allocated in the arena. Returns 0 or -ENOMEM.
 */
int timeline_coverage(struct timeline *timeline, struct arena *arena, int64_t since_ns,
		      int64_t until_ns, struct timeline_coverage *out);

/* Does what timeline_coverage() does, but knows only the windows [first, end) of the range. */
int timeline_coverage_of(struct timeline *timeline, struct arena *arena, size_t first, size_t end,
			 int64_t since_ns, int64_t until_ns, struct timeline_coverage *out);

#endif
