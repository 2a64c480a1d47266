/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_INTERNAL_H
#define STACKD_DAEMON_STORE_INTERNAL_H

/*
 * Shared by the files behind store.h: the queue and the stats (store.c), the writer's thread
 * (writer.c), the database file (db_file.c), eviction (retention.c), compaction of old windows
 * (compact.c) and repair of a damaged file (salvage.c). Any thread may use the queue and the stats
 * under store.lock; all the rest but the settings is used by the writer's thread only.
 */

#include <pthread.h>

#include "daemon/store/db.h"
#include "daemon/store/intern.h"
#include "daemon/store/store.h"

/* Sessions of always-on probes have numbers below this; only their windows are compacted. */
enum { STORE_COMPACTED_SESSIONS = 16 };

/* The most clients' sessions that wait to be written: more than can run at once. */
enum { STORE_NOTES_MAX = 64 };

/* A time whose windows were dropped, and the reason. */
struct store_gap {
	int64_t start_ns; /* since the epoch; equal to end_ns if there is no gap */
	int64_t end_ns;
	char reason[128];
};

struct store {
	/* Settings, which never change */
	char *path;
	char *lock_path;
	char boot_id[40];
	uint64_t max_size;
	int64_t max_age_ns;
	int64_t sync_every_ns;
	bool is_read_only;
	/* Used under lock only */
	pthread_mutex_t lock;
	pthread_cond_t wake;  /* signals the writer: a new window, or stop */
	pthread_cond_t tried; /* signals that has_tried was set */
	bool has_tried;	      /* the writer has tried to open the file, with success or not */
	struct window *queue[STORE_QUEUE_MAX];	     /* a ring of windows to write */
	size_t first;				     /* index in queue of the oldest window */
	size_t queued;				     /* number of windows in queue */
	struct store_session notes[STORE_NOTES_MAX]; /* sessions to write */
	size_t noted;				     /* number of sessions in notes */
	bool is_stopping;
	bool has_thread;
	struct store_gap missed; /* time of the windows that were dropped because queue was full */
	int64_t compact_after_ns;
	struct store_stats stats;
	/* Used by the writer's thread only */
	pthread_t thread;
	int lock_fd;
	struct store_db db;
	struct store_intern *intern;
	struct store_gap gap;	 /* the current gap, which is not on disk yet */
	int64_t run;		 /* number of this run of stackd */
	int64_t open_next_ns;	 /* CLOCK_MONOTONIC: when to try again to open the file */
	int64_t sync_next_ns;	 /* CLOCK_MONOTONIC: when to sync the file */
	int64_t log_next_ns;	 /* CLOCK_MONOTONIC: when the log may be restarted again */
	int64_t written_real_ns; /* end of the window that was written last, since the epoch */
	/* written_real_ns of each always-on session, by its kind; INT64_MIN: none was written yet
	 */
	int64_t written_always_ns[PROBE_KIND_N];
	/* Id of the last window that compaction has looked at; index: session, and 1 or 10 min */
	int64_t compact_from[STORE_COMPACTED_SESSIONS][2];
	unsigned int evicted; /* windows evicted since unused rows were last deleted */
	int64_t touched[STORE_TOUCH_LEVELS]; /* the last window written at each touch level */
	int touch_noted; /* the highest touch level, as noted on disk; -1: unknown */
};

/* writer.c: the main function of the writer's thread. data is the struct store. */
void *store_writer_run(void *data);

/*
 * store.c: sets the text of the stats that says what is wrong now (format NULL: nothing), or that
 * says what was wrong until it was repaired. Logs the text if it has changed.
 */
void store_set_problem(struct store *store, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void store_set_notice(struct store *store, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * store.c: extends *gap to the time [start_ns, end_ns) if that is close to it and has the same
 * reason; else replaces it.
 */
void store_gap_add(struct store_gap *gap, int64_t start_ns, int64_t end_ns, const char *reason);

/* db_file.c: takes the file lock and opens the database; calls store_set_problem() on failure. */
int store_file_open(struct store *store);
void store_file_close(struct store *store);

/*
 * retention.c: store_touch() sets *touch_out to the touch (see intern.h) for the window that the
 * open transaction writes. store_touch_begin() reads the levels from the database; it is called
 * when the database was opened and after a rollback.
 */
int store_touch(struct store *store, int64_t window, int64_t *touch_out);
void store_touch_begin(struct store *store);

/*
 * Evicts windows that are too old, and windows until `size` more bytes fit into max_size, in the
 * open transaction. now_ns is since the epoch.
 */
int store_evict(struct store *store, int64_t now_ns, size_t size);

/* Evicts the oldest windows although the limits allow them, because the disk is full. */
int store_evict_some(struct store *store);

/* Returns the bytes of the file whose name is path followed by suffix; 0 if it does not exist. */
uint64_t store_file_bytes(const char *path, const char *suffix);

/* Updates the stats: the number of windows, when the oldest and newest ended, bytes on disk. */
void store_count(struct store *store);

/* salvage.c: renames the damaged database, and copies its readable rows to a new database. */
int store_salvage(struct store *store);

/* compact.c: merges old windows, at most one group for each session and length, into one window. */
int store_compact_step(struct store *store, int64_t now_ns);

#endif
