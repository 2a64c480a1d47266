/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_INTERNAL_H
#define STACKD_DAEMON_STORE_INTERNAL_H

/*
 * Shared by the files behind store.h: the queue and the stats (store.c), the writer's thread
 * (writer.c), the database file (db_file.c), eviction (retention.c), merging of old windows
 * (compact.c) and repair of a damaged file (salvage.c). Any thread may use the queue and the stats
 * while it holds store.lock. The settings never change. All the rest is used by the writer's thread
 * only.
 */

#include <pthread.h>

#include "daemon/store/db.h"
#include "daemon/store/intern.h"
#include "daemon/store/store.h"

/*
 * Sessions of always-on probes have numbers below this. Only windows of these sessions are merged.
 */
enum { STORE_COMPACTED_SESSIONS = 16 };

/* The most sessions that can wait to be written: as many as clients can have running at once. */
enum { STORE_NOTES_MAX = 64 };

/* A period of which no windows are on disk, because they were dropped, and the reason. */
struct store_gap {
	int64_t start_ns; /* in ns since the epoch; equal to end_ns: no gap */
	int64_t end_ns;
	char reason[128];
};

struct store {
	/* The settings, which never change */
	char *path;
	char *lock_path;
	char boot_id[40];
	uint64_t max_size;
	int64_t max_age_ns;
	int64_t sync_every_ns;
	bool is_read_only;
	/* The members from here on are used only while lock is held */
	pthread_mutex_t lock;
	pthread_cond_t wake;  /* signalled when a window was queued, and to stop */
	pthread_cond_t tried; /* signalled when has_tried was set */
	bool has_tried;	      /* the writer has tried to open the file, with success or not */
	struct window *queue[STORE_QUEUE_MAX];	     /* ring of windows that wait to be written */
	size_t first;				     /* index of the oldest window in `queue` */
	size_t queued;				     /* number of windows in `queue` */
	struct store_session notes[STORE_NOTES_MAX]; /* sessions that wait to be written */
	size_t noted;				     /* number of sessions in `notes` */
	bool is_stopping;
	bool has_thread;
	/* period of the windows that were dropped because `queue` was full */
	struct store_gap missed;
	int64_t compact_after_ns;
	struct store_stats stats;
	/* The members from here on are used by the writer's thread only */
	pthread_t thread;
	int lock_fd;
	struct store_db db;
	struct store_intern *intern;
	struct store_gap gap; /* the latest gap, until it is written to the table `gaps` */
	int64_t run;	      /* number of this run of stackd, its id in the table `runs` */
	int64_t open_next_ns; /* time of CLOCK_MONOTONIC at which to try again to open the file */
	int64_t sync_next_ns; /* time of CLOCK_MONOTONIC at which to sync the file next */
	int64_t log_next_ns;  /* time of CLOCK_MONOTONIC before which the log is not restarted */
	int64_t written_real_ns; /* end of the window written last, in ns since the epoch */
	/*
	 * One member for each kind of probe: the end of the window that was written last for the
	 * always-on session of this kind, in ns since the epoch. INT64_MIN: no window was written
	 * yet.
	 */
	int64_t written_always_ns[PROBE_KIND_N];
	/*
	 * For the session number i, compact_from[i][0] is the id of the last window that was
	 * examined for merging into windows of 1 min; compact_from[i][1] is the same for windows of
	 * 10 min.
	 */
	int64_t compact_from[STORE_COMPACTED_SESSIONS][2];
	unsigned int evicted; /* number of windows evicted since unused rows were last deleted */
	/*
	 * touched[i] is the number of the last window that was written at touch level i (see
	 * intern.h); 0: none
	 */
	int64_t touched[STORE_TOUCH_LEVELS];
	/* the touch level (see intern.h) that is stored in the table `meta`; -1: not known */
	int touch_noted;
};

/* writer.c: runs the writer's thread. `data` is the struct store. */
void *store_writer_run(void *data);

/*
 * store.c: set stats.problem or stats.notice to a text, and log the text if it is new. The problem
 * is what is wrong now; `format` is NULL if nothing is wrong. The notice is the last problem that
 * stackd repaired.
 */
void store_set_problem(struct store *store, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void store_set_notice(struct store *store, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * store.c: if the period [start_ns, end_ns) is close to *gap and has the same reason, extends *gap
 * by it. Otherwise replaces *gap by this period.
 */
void store_gap_add(struct store_gap *gap, int64_t start_ns, int64_t end_ns, const char *reason);

/* db_file.c: takes the lock file and opens the database; calls store_set_problem() on failure. */
int store_file_open(struct store *store);
void store_file_close(struct store *store);

/*
 * retention.c: store_touch() computes the value of `touch` (see intern.h) with which the window
 * number `window` is to be written. store_touch_begin() reads the touch levels from the database.
 * It must be called after the database was opened, and after a rollback.
 */
int store_touch(struct store *store, int64_t window, int64_t *touch_out);
void store_touch_begin(struct store *store);

/*
 * Evicts windows older than max_age, and the oldest windows until `size` more bytes fit into
 * max_size. Runs in the open transaction. now_ns is the time since the epoch.
 */
int store_evict(struct store *store, int64_t now_ns, size_t size);

/*
 * Evicts some of the oldest windows because the disk is full, although max_age and max_size would
 * let them stay.
 */
int store_evict_some(struct store *store);

/*
 * Returns the size in bytes of the file whose name is `path` followed by `suffix`; 0 if there is no
 * such file.
 */
uint64_t store_file_bytes(const char *path, const char *suffix);

/* Updates the stats: number of windows, end of the oldest and of the newest one, bytes on disk. */
void store_count(struct store *store);

/* salvage.c: renames the damaged database, and copies its readable rows to a new one. */
int store_salvage(struct store *store);

/*
 * compact.c: merges old windows. In one call, at most one group of windows is merged for each
 * session and each length of merged windows.
 */
int store_compact_step(struct store *store, int64_t now_ns);

#endif
