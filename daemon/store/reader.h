/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_READER_H
#define STACKD_DAEMON_STORE_READER_H

/*
 * Reads the store as it was at one moment: lists the windows of a range and loads them one by one.
 * Loads each stack, frame and process once; these live as long as the reader, so all windows and
 * what was made from them must be freed before the reader is closed. Each query has its own reader;
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
	const char *probe; /* name of an always-on probe; all runs count. NULL: any probe */
	uint64_t run;	   /* with session: the run of stackd that recorded the session */
	uint64_t session;  /* number of a client's session; 0: do not select by session */
};

struct store_reader;
struct store_session;
struct store_stats;

/* A run of stackd. */
struct store_run {
	char boot_id[40];
	int64_t start_real_ns; /* since the epoch */
	int64_t alive_real_ns; /* when this run last noted that it is running, since the epoch */
	bool is_clean;	       /* stackd was stopped, not killed; false while the run goes on */
};

/* Opens the database at path for reading. Returns 0, -ENOMEM or an errno of store_db_open(). */
int store_reader_open(const char *path, struct store_reader **out);
struct store_reader *store_reader_close(struct store_reader *reader);

/*
 * Ends the read transaction, because the log of the database grows for as long as one is open.
 * Called when a query has read all it needs; loaded windows and stacks stay valid.
 */
void store_reader_rest(struct store_reader *reader);

/*
 * Lists the windows that overlap [since_ns, until_ns), in ns since the epoch, in the order in which
 * they were written. If there are more than max, lists the newest. The caller frees *out. Damaged
 * rows are left out and counted. Returns 0 or a negative errno.
 */
int store_reader_list(struct store_reader *reader, const struct store_select *select,
		      int64_t since_ns, int64_t until_ns, size_t max, struct store_entry **out,
		      size_t *n_out);

/* Returns when the oldest window of an always-on probe begins; fallback_ns if none is found. */
int64_t store_reader_first(struct store_reader *reader, const char *probe, int64_t fallback_ns);

/*
 * Finds a client's session by number, or by name if number is 0; the newest if several match.
 * Returns 0 and *out, which store_session_fini() frees; -ENOENT; or another errno.
 */
int store_reader_session(struct store_reader *reader, uint64_t number, const char *name,
			 struct store_session *out);

/*
 * Lists clients' sessions that have windows on disk: at most max, the newest first, and none for
 * which is_known() returns true. Returns the number of sessions, or a negative errno.
 */
int store_reader_sessions(struct store_reader *reader,
			  bool (*is_known)(void *userdata, const struct store_session *session),
			  void *userdata, struct store_session *out, size_t max);
void store_session_fini(struct store_session *session);

/* Lists, in the order of ids, at most max windows of a session whose id is greater than `id`. */
int store_reader_after(struct store_reader *reader, uint64_t session, int64_t id, size_t max,
		       struct store_entry **out, size_t *n_out);

/*
 * Loads a window. Returns 0 and *out, to which the caller owns a reference; -EBADMSG if it is
 * damaged; or another errno. Sets *is_partial_out if a newer stackd wrote parts of it, which were
 * skipped.
 */
int store_reader_load(struct store_reader *reader, const struct store_entry *entry,
		      struct window **out, bool *is_partial_out);

/*
 * Finds the gap, of those that the writer noted in the database, that covers most of
 * [start_ns, end_ns). Sets reason, and *end_out to when the gap ended, in ns since the epoch.
 * Returns false if no gap was noted for this time.
 */
bool store_reader_gap(struct store_reader *reader, int64_t start_ns, int64_t end_ns, char *reason,
		      size_t size, int64_t *end_out);

/* Reads a run of stackd by its number. Returns 0, -ENOENT or another errno. */
int store_reader_run(struct store_reader *reader, uint64_t run, struct store_run *out);

/*
 * Returns the end of the window that was evicted last, in ns since the epoch, and sets reason to
 * why it was evicted. Returns 0 if no window was evicted.
 */
int64_t store_reader_evicted(struct store_reader *reader, char *reason, size_t size);

/* Counts the windows in the database: sets out->windows, bytes, oldest_ns and newest_ns. */
void store_reader_count(struct store_reader *reader, struct store_stats *out);

/*
 * Returns the functions for store_blob_encode() that give the numbers of stacks and processes which
 * this reader has loaded. Used to write a merged window.
 */
struct store_names store_reader_names(struct store_reader *reader);

/* Returns how many damaged rows this reader has found so far, in all tables. */
uint64_t store_reader_damaged(const struct store_reader *reader);

#endif
