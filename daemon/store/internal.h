/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_INTERNAL_H
#define STACKD_DAEMON_STORE_INTERNAL_H

/*
 * What the files behind store.h share: the queue and the stats (store.c, under store.lock), the
 * thread and its database (store_writer.c), what is dropped for room (store_retention.c), what is
 * made shorter (store_merge.c) and what is done about damage (store_salvage.c). All but the queue,
 * the stats and the settings belongs to the writer.
 */

#include <pthread.h>

#include "daemon/store/db.h"
#include "daemon/store/intern.h"
#include "daemon/store/store.h"

/* Sessions that are always on have the lowest numbers; of others, windows stay as they are. */
enum { STORE_COMPACTED_SESSIONS = 16 };

/* Sessions on their way to the disk: as many as may run at once, and some. */
enum { STORE_NOTES_MAX = 64 };

/* A time of which nothing is on disk, and why. */
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
	bool has_tried;	      /* to open the file, whatever came of it */
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
	/* Up to which window all has been merged, by session and length. */
	int64_t compact_from[STORE_COMPACTED_SESSIONS][2];
	unsigned int evicted;		     /* since the interned rows were looked through */
	int64_t touched[STORE_TOUCH_LEVELS]; /* the last window written with this touch */
	int touch_noted;		     /* the most of them, as on disk; -1: not known */
};

/* store_writer.c */
void *store_writer_run(void *data);

/* store.c: what is wrong, and what was; NULL: nothing. Logged when it changes. */
void store_set_problem(struct store *store, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void store_set_notice(struct store *store, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void store_gap_add(struct store_gap *gap, int64_t start_ns, int64_t end_ns, const char *reason);

/* store_file.c: takes the lock and opens the database; the problem is set when that fails. */
int store_file_open(struct store *store);
void store_file_close(struct store *store);

/*
 * store_retention.c: the touch for a window, see store_intern.h, in its transaction. Begin: by
 * what is in the database, also after a rollback.
 */
int store_touch(struct store *store, int64_t window, int64_t *touch_out);
void store_touch_begin(struct store *store);

/* In a transaction. now_ns since the epoch; size: bytes about to be written. */
int store_evict(struct store *store, int64_t now_ns, size_t size);

/* Drops the oldest windows though the limits allow them: the disk is full. */
int store_evict_some(struct store *store);

/* Of one of the database's files; 0 where there is none. */
uint64_t store_file_bytes(const char *path, const char *suffix);

/* Counts what is there, for the stats. */
void store_count(struct store *store);

/* store_salvage.c: moves the database aside and starts anew with what of it can be read. */
int store_salvage(struct store *store);

/* store_merge.c: merges one group of old windows into one, if there is one. */
int store_compact_step(struct store *store, int64_t now_ns);

#endif
