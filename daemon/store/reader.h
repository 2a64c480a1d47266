/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_READER_H
#define STACKD_DAEMON_STORE_READER_H

/*
 * Reads the store as it was at one moment: lists the windows of a range and loads them one by one.
 * Their stacks, frames and processes are loaded once each and live as long as the reader, so
 * windows and everything made of them must be freed before it is closed. Each query has its own;
 * one thread at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/entry.h"
#include "daemon/store/window_blob.h"

/* The most windows that a list has, and the most stacks that a reader loads. */
enum { STORE_LIST_MAX = 32768, STORE_STACKS_MAX = 65536 };

/* Selects windows: those of an always-on probe, those of a client's session, or all. */
struct store_select {
	const char *probe; /* always on, in any run; NULL: another selection */
	uint64_t run;
	uint64_t session; /* a client's session of that run; 0: another selection */
};

struct store_reader;
struct store_session;
struct store_stats;

/* A run of stackd. */
struct store_run {
	char boot_id[40];
	int64_t start_real_ns;
	int64_t alive_real_ns; /* when it was last known to run */
	bool is_clean;	       /* it was stopped, not killed; false while it runs */
};

/* Returns 0 or an errno of store_db_open(). */
int store_reader_open(const char *path, struct store_reader **out);
struct store_reader *store_reader_close(struct store_reader *reader);

/*
 * Ends the read transaction once everything has been read; loaded objects stay. The log of the
 * database grows for as long as a transaction is open.
 */
void store_reader_rest(struct store_reader *reader);

/*
 * Lists the windows that overlap [since_ns, until_ns), in ns since the epoch: the newest max of
 * them, in the order in which they were written. *out is the caller's. Damaged rows are left out
 * and counted. Returns 0 or a negative errno.
 */
int store_reader_list(struct store_reader *reader, const struct store_select *select,
		      int64_t since_ns, int64_t until_ns, size_t max, struct store_entry **out,
		      size_t *n_out);

/* Returns when the oldest window of an always-on probe begins; fallback_ns if it is not known. */
int64_t store_reader_first(struct store_reader *reader, const char *probe, int64_t fallback_ns);

/*
 * Finds the newest client's session with this number, or with this name if the number is 0. Its
 * strings are the caller's. Returns 0, -ENOENT, or another errno.
 */
int store_reader_session(struct store_reader *reader, uint64_t number, const char *name,
			 struct store_session *out);

/*
 * Lists the newest max clients' sessions that have windows on disk, newest first, without those for
 * which is_known() returns true. Returns how many, or a negative errno.
 */
int store_reader_sessions(struct store_reader *reader,
			  bool (*is_known)(void *userdata, const struct store_session *session),
			  void *userdata, struct store_session *out, size_t max);
void store_session_fini(struct store_session *session);

/* Lists at most max windows of a session that were written after the one with this id, in order. */
int store_reader_after(struct store_reader *reader, uint64_t session, int64_t id, size_t max,
		       struct store_entry **out, size_t *n_out);

/*
 * Loads a window. Returns 0 and *out, which is the caller's; -EBADMSG if it is damaged, or another
 * errno. *is_partial_out: a newer stackd wrote parts of it that were skipped.
 */
int store_reader_load(struct store_reader *reader, const struct store_entry *entry,
		      struct window **out, bool *is_partial_out);

/*
 * Finds the noted gap that covers most of [start_ns, end_ns): the reason and when it ended, in ns
 * since the epoch. Returns false if no gap was noted.
 */
bool store_reader_gap(struct store_reader *reader, int64_t start_ns, int64_t end_ns, char *reason,
		      size_t size, int64_t *end_out);
int store_reader_run(struct store_reader *reader, uint64_t run, struct store_run *out);

/* Returns up to when windows were evicted, in ns since the epoch, and why; 0: none were. */
int64_t store_reader_evicted(struct store_reader *reader, char *reason, size_t size);

/* Counts what is in the database: fills windows, bytes, oldest_ns and newest_ns. */
void store_reader_count(struct store_reader *reader, struct store_stats *out);

/* Returns the numbers of loaded stacks and processes, to write a window of them. */
struct store_names store_reader_names(struct store_reader *reader);

/* Returns how many damaged rows were found so far, of any table. */
uint64_t store_reader_damaged(const struct store_reader *reader);

#endif
