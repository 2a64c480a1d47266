/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_INTERNAL_H
#define STACKD_DAEMON_STORE_INTERNAL_H

/*
 * Shared by the files behind store.h: the queue and the stats (store.c, under store.lock), the
 * thread and its database (writer.c), eviction (retention.c), compaction of old windows (compact.c)
 * and repair of a damaged file (salvage.c). Everything but the queue, the stats and the settings
 * belongs to the writer's thread.
 */

#include <pthread.h>

#include "daemon/store/db.h"
#include "daemon/store/intern.h"
#include "daemon/store/store.h"

/* Always-on sessions have numbers below this; windows of other sessions are not compacted. */
enum { STORE_COMPACTED_SESSIONS = 16 };

/* Sessions in the queue at most: more than may run at once. */
enum { STORE_NOTES_MAX = 64 };

/* A time for which windows were dropped, and why. */
struct store_gap {
	int64_t start_ns; /* since the epoch; start == end: none */
	int64_t end_ns;
	char reason[128];
};

struct store {
	/* Settings */
	char *path;
	char *lock_path;
	char boot_id[40];
	uint64_t max_size;
	int64_t max_age_ns;
	int64_t sync_every_ns;
	bool is_read_only;
	/* Under lock */
	pthread_mutex_t lock;
	pthread_cond_t wake;  /* CLOCK_MONOTONIC */
	pthread_cond_t tried; /* the same */
	bool has_tried;	      /* to open the file, with success or not */
	struct window *queue[STORE_QUEUE_MAX];
	size_t first;
	size_t queued;
	struct store_session notes[STORE_NOTES_MAX];
	size_t noted;
	bool is_stopping;
	bool has_thread;
	struct store_gap missed; /* windows that found the queue full */
	int64_t compact_after_ns;
	struct store_stats stats;
	/* The writer's */
	pthread_t thread;
	int lock_fd;
	struct store_db db;
	struct store_intern *intern;
	struct store_gap gap; /* not on disk yet */
	int64_t run;
	int64_t open_next_ns; /* CLOCK_MONOTONIC: when to try again */
	int64_t sync_next_ns;
	int64_t log_next_ns;	 /* when to try again to begin the log anew */
	int64_t written_real_ns; /* the end of the newest window written */
	/* Windows up to this id are compacted, by session and length (1 min, 10 min). */
	int64_t compact_from[STORE_COMPACTED_SESSIONS][2];
	unsigned int evicted;		     /* windows, since unused rows were trimmed */
	int64_t touched[STORE_TOUCH_LEVELS]; /* the last window written at this level */
	int touch_noted;		     /* the highest level, as noted on disk; -1: unknown */
};

/* writer.c: the thread; data is the store. */
void *store_writer_run(void *data);

/*
 * store.c: sets what is wrong now (NULL: nothing), or what was wrong and was put right. Logged when
 * it changes.
 */
void store_set_problem(struct store *store, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void store_set_notice(struct store *store, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* store.c: extends the gap, or replaces it if this one is not close to it or differs in reason. */
void store_gap_add(struct store_gap *gap, int64_t start_ns, int64_t end_ns, const char *reason);

/* db_file.c: takes the lock and opens the database; sets the problem if that fails. */
int store_file_open(struct store *store);
void store_file_close(struct store *store);

/*
 * retention.c: returns the touch for a window, see intern.h, in the transaction that writes it.
 * store_touch_begin() reads the levels from the database, at the start and after a rollback.
 */
int store_touch(struct store *store, int64_t window, int64_t *touch_out);
void store_touch_begin(struct store *store);

/*
 * Evicts windows by age and size, in the open transaction. now_ns is since the epoch, size is how
 * many bytes are about to be written.
 */
int store_evict(struct store *store, int64_t now_ns, size_t size);

/* Evicts the oldest windows although the limits allow them, because the disk is full. */
int store_evict_some(struct store *store);

/* Returns the size of a file of the database; 0 if it does not exist. */
uint64_t store_file_bytes(const char *path, const char *suffix);

/* Updates the number of windows, their times and the bytes on disk in the stats. */
void store_count(struct store *store);

/* salvage.c: moves the damaged database aside and starts a new one with what can be read of it. */
int store_salvage(struct store *store);

/* compact.c: replaces at most one group of old windows per session and length by one window. */
int store_compact_step(struct store *store, int64_t now_ns);

#endif
