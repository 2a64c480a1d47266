/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_STORE_H
#define STACKD_DAEMON_STORE_STORE_H

/*
 * Stage 5, history on disk: queues finished windows for a thread that writes them to a database,
 * and opens readers, also of the windows of earlier runs and boots. If the disk is too slow or
 * full, windows are dropped, counted and shown as a gap: recording never waits for the disk. Only
 * store_wait() and store_stop() wait for it. Owned by the recorder.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/reader.h"
#include "daemon/window/window.h"

/* The most windows in the queue; a window that finds the queue full is dropped. */
enum { STORE_QUEUE_MAX = 128 };

struct store;

struct store_options {
	const char *path;	  /* path of the database; copied */
	uint64_t max_size;	  /* the most bytes that the database may have */
	int64_t max_age_ns;	  /* windows older than this are evicted */
	int64_t compact_after_ns; /* windows older than this are merged into longer ones; 0: none */
	const char *boot_id;	  /* boot id of the running kernel; copied */
	bool is_read_only;	  /* never write to the disk (option --serve-only) */
	int64_t sync_every_ns;	  /* the most time that a power cut may lose; 0: 30 s */
};

struct store_stats {
	bool is_writing;
	bool is_read_only;
	char problem[320]; /* says what is wrong now; empty: nothing is */
	char notice[320];  /* the last problem that stackd repaired; empty: none */
	uint64_t bytes;	   /* size of the database and its log */
	uint64_t max_size;
	uint64_t windows;
	int64_t oldest_ns; /* end of the oldest window, since the epoch; INT64_MIN: none */
	int64_t newest_ns; /* end of the newest window, since the epoch; INT64_MIN: none */
	int64_t synced_ns; /* end of the newest window that survives a power cut; INT64_MIN: none */
	/* synced_ns of each always-on session, by its kind of probe */
	int64_t synced_always_ns[PROBE_KIND_N];
	size_t queued;		/* windows that wait to be written */
	uint64_t written;	/* windows written since the start */
	uint64_t dropped_queue; /* windows dropped because the queue was full */
	uint64_t dropped_write; /* windows dropped because writing them failed */
	uint64_t evicted_age;	/* windows evicted for max_age */
	uint64_t evicted_size;	/* windows evicted for max_size or on a full disk */
	uint64_t compacted;	/* windows that were replaced by a longer one */
	uint64_t damaged;	/* damaged rows found since the start */
	uint64_t run;		/* the store's number of this run of stackd; 0: not known yet */
	uint64_t last_session;	/* the highest session number of all earlier runs */
};

/* A client's session. A session to be written borrows its strings; one that was read owns them. */
struct store_session {
	uint64_t run; /* the run of stackd that records it; set by the store */
	uint64_t number;
	const char *name;    /* name of the session; NULL: it has none */
	const char *request; /* parameters of the method Start, as JSON */
	int64_t since_ns;    /* when the session began, since the epoch */
	int64_t ended_ns; /* end of its newest window on disk, since the epoch; INT64_MIN: none */
	uint32_t uid;
	int64_t min_wait_ns;
	uint64_t period_ns;
};

/*
 * Starts the store and its thread. Returns 0, -ENOMEM or -EAGAIN. A problem with the file or the
 * disk is no failure; it is reported in the stats.
 */
int store_start(const struct store_options *options, struct store **out);

/*
 * Waits until the thread has tried to open the file, because the stats are not complete before.
 * Does nothing if store is NULL.
 */
void store_wait(struct store *store, int64_t timeout_ns);

/*
 * Writes the queued windows, marks the run as ended, frees the store and returns NULL. If that
 * takes longer than 4 s because the disk hangs, returns the store: its thread still uses windows,
 * stacks and processes, which therefore must not be freed.
 */
struct store *store_stop(struct store *store);

/* Queues a window, taking a reference of its own. Never blocks. */
void store_add(struct store *store, struct window *window);

/* Queues a copy of a session, so that its windows can be queried later. Never blocks. */
void store_add_session(struct store *store, const struct store_session *session);

/* Raises the age from which on windows are compacted; a shorter time changes nothing. */
void store_compact_later(struct store *store, int64_t compact_after_ns);

void store_stats(struct store *store, struct store_stats *out);

/* Like store_stats(), but counts the windows of a read-only store through reader (may be NULL). */
void store_stats_read(struct store *store, struct store_reader *reader, struct store_stats *out);

/* Returns the store's number of this run of stackd; 0: not known, or store is NULL. */
uint64_t store_current_run(struct store *store);
const char *store_path(const struct store *store);

/* Opens a reader. Returns 0, -ENODATA (store is NULL or its file is not open) or another errno. */
int store_reader_begin(struct store *store, struct store_reader **out);

/* Closes the reader, and adds the number of damaged rows that it found to the stats. */
void store_reader_end(struct store *store, struct store_reader *reader);

#endif
