/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_STORE_H
#define STACKD_DAEMON_STORE_STORE_H

/*
 * Stage 5, history on disk: queues finished windows for a thread that writes them to a database,
 * and opens readers of the windows of any time, also of earlier runs and boots. Owned by the
 * recorder. Only store_wait() and store_stop() wait for the disk: windows that the disk is too slow
 * for, or has no space for, are dropped, counted and shown as a gap. Nothing here stops the
 * recording.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/reader.h"
#include "daemon/window/window.h"

/* Windows in the queue at most; more are dropped. */
enum { STORE_QUEUE_MAX = 128 };

struct store;

struct store_options {
	const char *path; /* copied */
	uint64_t max_size;
	int64_t max_age_ns;
	int64_t compact_after_ns; /* older windows are compacted; 0: never */
	const char *boot_id;	  /* copied */
	bool is_read_only;	  /* --serve-only: never writes */
	int64_t sync_every_ns;	  /* what a power cut may cost; 0: 30 s */
};

struct store_stats {
	bool is_writing;
	bool is_read_only;
	char problem[320]; /* what is wrong now; empty: nothing */
	char notice[320];  /* the latest problem since the start that was put right */
	uint64_t bytes;	   /* of the database and its log */
	uint64_t max_size;
	uint64_t windows;
	int64_t oldest_ns; /* since the epoch; INT64_MIN: none */
	int64_t newest_ns;
	int64_t synced_ns; /* the newest window that survives a power cut; INT64_MIN: none */
	size_t queued;
	uint64_t written;
	uint64_t dropped_queue; /* the queue was full: the disk was too slow */
	uint64_t dropped_write; /* writing them failed */
	uint64_t evicted_age;
	uint64_t evicted_size;
	uint64_t compacted;    /* windows that were replaced by a longer one */
	uint64_t damaged;      /* rows that could not be read since the start */
	uint64_t run;	       /* this run of stackd; 0: not known yet */
	uint64_t last_session; /* the highest number of a session of earlier runs */
};

/* A client's session. Strings are borrowed when it is written, and owned when it was read. */
struct store_session {
	uint64_t run; /* of stackd; set by the store */
	uint64_t number;
	const char *name;    /* NULL: none */
	const char *request; /* the parameters of Start, as JSON */
	int64_t since_ns;    /* since the epoch */
	int64_t ended_ns;    /* the end of its newest window on disk; INT64_MIN: there is none */
	uint32_t uid;
	int64_t min_wait_ns;
	uint64_t period_ns;
};

/* Returns 0, -ENOMEM or -EAGAIN; a problem with the file or the disk is in the stats. */
int store_start(const struct store_options *options, struct store **out);

/* Waits until opening the file was tried: only then the stats say what is on disk. NULL: none. */
void store_wait(struct store *store, int64_t timeout_ns);

/*
 * Writes the queued windows, marks the run as ended and frees the store. Waits 4 s at most for a
 * disk that hangs: then it returns the store, whose thread still uses windows, stacks and
 * processes, so that these must not be freed.
 */
struct store *store_stop(struct store *store);

/* Queues a window, taking a reference of its own. Never blocks. */
void store_add(struct store *store, struct window *window);

/* Queues a copy of a session, so that its windows can be queried later. Never blocks. */
void store_add_session(struct store *store, const struct store_session *session);

/* From now on compacts only windows that are at least this old; a shorter time changes nothing. */
void store_compact_later(struct store *store, int64_t compact_after_ns);

void store_stats(struct store *store, struct store_stats *out);

/* The same; what is in a store that is only served is counted through the reader, if it is given.
 */
void store_stats_read(struct store *store, struct store_reader *reader, struct store_stats *out);

/* This run of stackd, as the store numbers it; 0: not known, or there is no store. */
uint64_t store_current_run(struct store *store);
const char *store_path(const struct store *store);

/* Opens a reader; -ENODATA if there is no store or its file is not open, or another errno. */
int store_reader_begin(struct store *store, struct store_reader **out);

/* Closes the reader and adds the damaged rows it found to the stats. */
void store_reader_end(struct store *store, struct store_reader *reader);

#endif
