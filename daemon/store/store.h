/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_STORE_H
#define STACKD_DAEMON_STORE_STORE_H

/*
 * Stage 5, history on disk: in go windows as they are finished, out come those of any time, also
 * of earlier runs and boots. Owned by the recorder; has a thread that alone writes. No function
 * but store_stop() waits for a disk: what the disk cannot take is dropped, counted and shown as a
 * gap, and nothing here ever stops the recording.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/reader.h"
#include "daemon/window/window.h"

/* Windows on their way to the disk; more are dropped. */
enum { STORE_QUEUE_MAX = 128 };

struct store;

struct store_options {
	const char *path; /* copied */
	uint64_t max_size;
	int64_t max_age_ns;
	int64_t compact_after_ns; /* older windows are merged; 0: never */
	const char *boot_id;	  /* copied */
	bool is_read_only;	  /* --serve-only: never writes */
	int64_t sync_every_ns;	  /* so much a power cut may cost; 0: 30 s */
};

struct store_stats {
	bool is_writing;
	bool is_read_only;
	char problem[320]; /* what is wrong now, "" when nothing is */
	char notice[320];  /* what was wrong and put right since the start, the last one */
	uint64_t bytes;	   /* of the database and its log */
	uint64_t max_size;
	uint64_t windows;
	int64_t oldest_ns; /* since the epoch; INT64_MIN: none */
	int64_t newest_ns;
	int64_t synced_ns; /* the newest window that survives a power cut; INT64_MIN: none */
	size_t queued;
	uint64_t written;
	uint64_t dropped_queue; /* the disk was too slow */
	uint64_t dropped_write; /* it could not be written */
	uint64_t evicted_age;
	uint64_t evicted_size;
	uint64_t compacted;    /* windows that became part of a longer one */
	uint64_t damaged;      /* rows that could not be read since the start */
	uint64_t run;	       /* of this stackd; 0: not known yet */
	uint64_t last_session; /* the highest number of a session of earlier runs */
};

/* A session that somebody started, as it was. Strings are borrowed by who gives it. */
struct store_session {
	uint64_t run; /* of stackd: the store knows it */
	uint64_t number;
	const char *name;    /* NULL: none */
	const char *request; /* what was asked for, in the words of the wire */
	int64_t since_ns;    /* since the epoch */
	int64_t ended_ns;    /* the end of its newest window on disk; INT64_MIN: there is none */
	uint32_t uid;
	int64_t min_wait_ns;
	uint64_t period_ns;
};

/* 0 or -ENOMEM; what is wrong with the file or the disk is in the stats. */
int store_start(const struct store_options *options, struct store **out);

/* Until the file was opened, or could not be: only then is known what is on disk. NULL is none. */
void store_wait(struct store *store, int64_t timeout_ns);

/*
 * Writes what is queued, marks the run as ended. Waits for a hung disk 4 s at most: then it returns
 * the store, whose thread goes on with windows, stacks and processes, which must not be freed.
 */
struct store *store_stop(struct store *store);

/* Queues the window, taking a reference of its own. Never blocks. */
void store_add(struct store *store, struct window *window);

/* Queues a session, copied, so that its windows can be asked for when it is gone. Never blocks. */
void store_add_session(struct store *store, const struct store_session *session);

/* Merges no window younger than that from now on, whatever it did before; never earlier again. */
void store_compact_later(struct store *store, int64_t compact_after_ns);

void store_stats(struct store *store, struct store_stats *out);

/* The same; what is in a store that is only served is counted through the reader, if it is given.
 */
void store_stats_read(struct store *store, struct store_reader *reader, struct store_stats *out);

/* This run of stackd, as the store numbers it; 0: not known, or there is no store. */
uint64_t store_current_run(struct store *store);
const char *store_path(const struct store *store);

/* A look into the store; -ENODATA when there is nothing to look into. */
int store_reader_begin(struct store *store, struct store_reader **out);

/* Ends it, and counts the damage it met. */
void store_reader_end(struct store *store, struct store_reader *reader);

#endif
