/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_STORE_H
#define STACKD_DAEMON_STORE_STORE_H

/*
 * The history on disk: queues finished windows for a thread that writes them to a database. Opens
 * readers of the database, which has the windows of earlier runs and boots, too. If the disk is too
 * slow or full, windows are dropped, counted and shown as a gap: recording never waits for the
 * disk. Only store_wait() and store_stop() wait for the disk. Owned by the recorder.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "daemon/store/reader.h"
#include "daemon/window/fold.h"
#include "daemon/window/window.h"

/*
 * STORE_QUEUE_MAX: maximum number of windows in the queue. A window that finds the queue full is
 * dropped.
 */
enum { STORE_QUEUE_MAX = 128, STORE_TIERS_MAX = 4 };

struct store;

/* A tier: windows on disk of a certain length and age, see the setting [store] tiers. */
struct store_tier {
	/*
	 * length of the tier's windows; windows of the first tier have the length with which they
	 * were recorded
	 */
	int64_t length_ns;
	int64_t keep_ns; /* windows older than this are merged into the next tier, or evicted */
	uint32_t share;	 /* the share of the disk that the tier may always use, as a percentage of
			    max_size */
};

struct store_options {
	const char *path;			  /* path of the database; copied */
	uint64_t max_size;			  /* maximum size of the database in bytes */
	int64_t max_age_ns;			  /* windows older than this are evicted */
	struct store_tier tiers[STORE_TIERS_MAX]; /* sorted by window length, shortest first */
	size_t n_tiers;				  /* at least 1 */
	/*
	 * limits to which merged windows are folded; a tier that is short of space halves them, at
	 * most STORE_LEVEL_MAX times
	 */
	struct window_fold_limits fold;
	/*
	 * windows shorter than this are joined with the windows that follow them before they are
	 * written; 0: no window is joined
	 */
	int64_t window_ns;
	const char *boot_id; /* boot id of the running kernel; copied */
	bool is_read_only;   /* never write to the disk (option --serve-only) */
	/* time between two syncs; a power cut loses at most the windows of this time; 0: 30 s */
	int64_t sync_every_ns;
	/* for tests: a function that is called to read the clock; NULL: the host's clock is used */
	int64_t (*now)(clockid_t clock);
};

/*
 * A tier halves the number of rows of its windows at most this number of times: 31 rows of 500 are
 * left then. Time is dropped only after that.
 */
enum { STORE_LEVEL_MAX = 4 };

/*
 * Returns the limits to which windows are folded whose rows are halved `level` times, on disk or in
 * memory. `fold` has the limits without that. From level 1 on, most of the rows that would stay as
 * they are become rows that stand for several processes, so that the sums by comm and stacks stay
 * exact for longer. store_fold_rows() returns max_rows, halved `level` times, without regard to
 * this.
 */
uint32_t store_fold_rows(const struct window_fold_limits *fold, unsigned int level);
struct window_fold_limits store_fold_limits(const struct window_fold_limits *fold,
					    unsigned int level);

struct store_tier_stats {
	struct store_tier tier;
	/* number of rows to which the tier's new windows are folded; 0: they are not folded */
	uint64_t max_rows;
	uint64_t windows;
	/* estimated size in bytes of the tier's windows, and of the rows to which they refer */
	uint64_t bytes;
	uint64_t max_bytes; /* bytes that the tier may always use: its share of max_size */
	int64_t oldest_ns;  /* start of the tier's oldest window, in ns since the epoch; INT64_MIN:
			       none */
	int64_t newest_ns;  /* end of its newest window, in ns since the epoch; INT64_MIN: none */
	/*
	 * end of the last window that was merged or evicted before it was old enough, because room
	 * was short; in ns since the epoch; INT64_MIN: none
	 */
	int64_t early_ns;
};

/* Problems that may exist at the same time: each has a text, so that none hides another. */
enum store_problem {
	STORE_PROBLEM_FILE,  /* opening, writing or reading the database */
	STORE_PROBLEM_LOG,   /* somebody keeps its log from being emptied */
	STORE_PROBLEM_MOVED, /* one of the files was moved, and the old ones are still written to */
	STORE_PROBLEMS,
};

/* Kinds of events that stackd reports when they are over; of each kind, the last is kept. */
enum store_notice_kind {
	STORE_NOTICE_MOVED,   /* a file was moved or overwritten, and a new one is used */
	STORE_NOTICE_DAMAGED, /* the file was damaged, and a new one begun */
	STORE_NOTICE_DROPPED, /* windows were evicted, as a file could not grow */
	STORE_NOTICES,
};

/* The size of the text of a problem or notice, which may have a command with two paths. */
enum { STORE_TEXT_MAX = 640 };

struct store_notice {
	char text[STORE_TEXT_MAX]; /* empty: there was none */
	int64_t ns;		   /* when it was, in ns since the epoch */
};

struct store_stats {
	bool is_writing;
	bool is_read_only;
	bool is_working; /* windows are being merged or folded, or unused rows deleted */
	char problems[STORE_PROBLEMS]
		     [STORE_TEXT_MAX]; /* what is wrong now; empty: nothing is wrong */
	struct store_notice notices[STORE_NOTICES];
	uint64_t bytes; /* size of the database and its log, in bytes */
	uint64_t max_size;
	uint64_t windows;
	int64_t oldest_ns; /* end of the oldest window, in ns since the epoch; INT64_MIN: none */
	int64_t newest_ns; /* end of the newest window, in ns since the epoch; INT64_MIN: none */
	/*
	 * end of the newest window that would survive a power cut, in ns since the epoch;
	 * INT64_MIN: none
	 */
	int64_t synced_ns;
	/*
	 * synced_always_ns[kind] is about the always-on session of this kind of probe: the end of
	 * its newest window that would survive a power cut, in ns since the epoch. INT64_MIN: none.
	 */
	int64_t synced_always_ns[PROBE_KIND_N];
	size_t queued;	  /* number of windows that wait to be written */
	uint64_t written; /* number of windows written since the start */
	/* number of windows, and sessions, dropped because the queue was full */
	uint64_t dropped_queue;
	uint64_t dropped_write; /* number of windows dropped because writing them failed */
	uint64_t evicted_age;	/* number of windows evicted because of max_age */
	uint64_t evicted_size;	/* number of windows evicted because of max_size or a full disk */
	uint64_t compacted;	/* number of windows that were merged into longer ones */
	uint64_t damaged;	/* number of damaged rows found since the start */
	int64_t damaged_ns; /* time at which a damaged row was found last, in ns since the epoch */
	uint64_t run;	    /* number of this run of stackd in the database; 0: not known yet */
	struct store_tier_stats tiers[STORE_TIERS_MAX];
	size_t n_tiers;
	uint64_t last_session; /* the highest session number of all earlier runs in the database */
};

/*
 * A session that a client started. Its strings are borrowed when the session is to be written, and
 * owned when it was read.
 */
struct store_session {
	uint64_t run; /* number of the run of stackd that records it; set by the store */
	uint64_t number;
	const char *name;    /* name of the session; NULL: it has none */
	const char *request; /* parameters with which the client called Start, as JSON */
	int64_t since_ns;    /* when the session began, in ns since the epoch */
	/*
	 * end of the session's newest window on disk, in ns since the epoch; INT64_MIN: it has none
	 */
	int64_t ended_ns;
	uint32_t uid;
	int64_t min_wait_ns;
	uint64_t period_ns;
};

/*
 * Starts the store and its thread. Returns 0, -ENOMEM or -EAGAIN. A problem with the file or the
 * disk is not an error here; the stats report it.
 */
int store_start(const struct store_options *options, struct store **out);

/*
 * Waits until the thread has tried to open the file, but at most for timeout_ns. Until then, the
 * stats are incomplete. Does nothing if `store` is NULL.
 */
void store_wait(struct store *store, int64_t timeout_ns);

/*
 * Writes the queued windows, marks the run as ended and ends the thread. Gives up after 4 s if the
 * disk hangs. Later windows are not written; the stats stay. Does nothing if there is no store, or
 * at a second call. Main thread.
 */
void store_end(struct store *store);

/*
 * Does what store_end() does, frees the store and returns NULL. Returns the store if its thread has
 * not ended: it still uses windows, stacks and processes, so these must not be freed.
 */
struct store *store_stop(struct store *store);

/*
 * Queues a window for the writer and takes a reference to it. Never blocks. Returns how many bytes
 * all windows in the queue take.
 */
size_t store_add(struct store *store, struct window *window);

/*
 * Queues a copy of a session for the writer, so that the session's windows can be queried later.
 * Never blocks.
 */
void store_add_session(struct store *store, const struct store_session *session);

/* Changes window_ns, see struct store_options. */
void store_set_window(struct store *store, int64_t window_ns);

void store_stats(struct store *store, struct store_stats *out);

/*
 * Reads the stats as store_stats() does. If the store is read-only and `reader` is not NULL, counts
 * the windows through `reader`, because a read-only store does not count them itself.
 */
void store_stats_read(struct store *store, struct store_reader *reader, struct store_stats *out);

/* Returns the number of this run of stackd in the database; 0: not known, or `store` is NULL. */
uint64_t store_current_run(struct store *store);
const char *store_path(const struct store *store);

/*
 * Opens a reader. Returns 0, -ENODATA (`store` is NULL or its file is not open) or another errno.
 */
int store_reader_begin(struct store *store, struct store_reader **out);

/*
 * Closes the reader, and adds the number of damaged rows that it found to the stats of the store.
 */
void store_reader_end(struct store *store, struct store_reader *reader);

#endif
