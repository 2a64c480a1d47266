/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_READER_H
#define STACKD_DAEMON_STORE_READER_H

/*
 * Reads the database as it was at one moment: lists the windows of a range of time and loads them
 * one by one. Loads each stack, frame and process once and frees it with the reader. All windows,
 * and what was made from them, must be freed before the reader is. Each query has its own reader;
 * one thread at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/entry.h"
#include "daemon/store/window_blob.h"

/* The maximum number of windows in a list. */
enum { STORE_LIST_MAX = 32768 };

/* Selects the windows to list: of an always-on probe, of a client's session, or all. */
struct store_select {
	/*
	 * name of an always-on probe, whose windows of all runs of stackd are listed; NULL: any
	 * probe
	 */
	const char *probe;
	/* if `session` is not 0: number of the run of stackd that recorded the session */
	uint64_t run;
	uint64_t session; /* number of a client's session; 0: windows are not selected by session */
};

struct store_db;
struct store_reader;
struct store_session;
struct store_stats;
struct store_tier;
struct store_tier_stats;

/* One run of stackd, from its start until it stopped or was killed. */
struct store_run {
	char boot_id[40];
	bool is_clean; /* stackd was stopped, not killed; false as long as it runs */
};

/* Opens the database at path for reading. Returns 0, -ENOMEM or an errno of store_db_open(). */
int store_reader_open(const char *path, struct store_reader **out);

/*
 * Makes a reader that uses the writer's connection, and sees what the writer has changed. It loads
 * stacks without their frames: merging and folding compare stacks by their ids. The connection must
 * outlive the reader. Returns 0 or -ENOMEM.
 */
int store_reader_borrow(struct store_db *db, struct store_reader **out);
struct store_reader *store_reader_close(struct store_reader *reader);

/*
 * Ends the reader's transaction. While a transaction is open, the log of the database cannot be
 * restarted. Called when a query has read all it needs; loaded windows and stacks stay valid.
 */
void store_reader_rest(struct store_reader *reader);

/*
 * Lists the windows that overlap [since_ns, until_ns), in ns since the epoch, in the order in which
 * they were written. If there are more than `max`, lists the newest. The caller frees *out. Damaged
 * rows are left out and counted. Returns 0 or a negative errno.
 */
int store_reader_list(struct store_reader *reader, const struct store_select *select,
		      int64_t since_ns, int64_t until_ns, size_t max, struct store_entry **out,
		      size_t *n_out);

/*
 * Lists the summaries of an always-on probe that begin in (since_ns, until_ns), in the order of
 * their ids. Only their entries have the members from `summarized` on. The caller frees *out.
 * Returns 0 or a negative errno.
 */
int store_reader_summaries(struct store_reader *reader, const char *probe, int64_t since_ns,
			   int64_t until_ns, struct store_entry **out, size_t *n_out);

/*
 * Returns when the oldest window of an always-on probe begins, in ns since the epoch; fallback_ns
 * if no window is found.
 */
int64_t store_reader_first(struct store_reader *reader, const char *probe, int64_t fallback_ns);

/*
 * Finds a client's session by `number`, or by `name` if `number` is 0; the newest if several match.
 * Returns 0 and *out, which store_session_fini() frees; -ENOENT; or another errno.
 */
int store_reader_session(struct store_reader *reader, uint64_t number, const char *name,
			 struct store_session *out);

/*
 * Lists clients' sessions that have windows on disk, the newest first, at most max. Leaves out the
 * sessions for which is_known() returns true. Returns the number of sessions, or a negative errno.
 */
int store_reader_sessions(struct store_reader *reader,
			  bool (*is_known)(void *userdata, const struct store_session *session),
			  void *userdata, struct store_session *out, size_t max);
void store_session_fini(struct store_session *session);

/*
 * Loads a window or a summary. Returns 0 and *out, to which the caller owns a reference; -EBADMSG
 * if it is damaged; or another errno.
 */
int store_reader_load(struct store_reader *reader, const struct store_entry *entry,
		      struct window **out);

/* Selects which parts of each window are loaded for a query. */
struct store_query {
	/*
	 * The maximum number of frames of a stack that are loaded, beginning with the leaf. If the
	 * stack has more frames, its is_partial is true, and n_raw is the number of loaded frames.
	 */
	size_t max_frames;
	/*
	 * Sets the functions_id of stacks, which else only stacks have whose frames are all loaded.
	 * If it is true, max_frames has to be 0.
	 */
	bool with_functions;
	bool skips_members; /* leaves out window->members */
	/*
	 * Called when the threads of a window (window->images) are loaded. If it returns false, the
	 * rows of the window are not loaded. NULL: all rows are loaded. May be called in another
	 * thread.
	 */
	bool (*wants)(const void *userdata, const struct window *window);
	const void *userdata; /* argument of wants() */
};

/*
 * Makes store_reader_load() load windows for a query: the windows have window->owners in place of
 * processes. A stack of such a window is freed when nothing refers to it any more.
 */
void store_reader_set_query(struct store_reader *reader, const struct store_query *query);

/*
 * If a stack of a window that was loaded for a query lacks frames, loads them. If it lacks none,
 * does nothing; `reader` may then be NULL. Returns 0 or a negative errno.
 */
int store_reader_fill(struct store_reader *reader, struct stack *stack);

/* Returns the process with this row number, borrowed; NULL when out of memory. */
struct process *store_reader_process(struct store_reader *reader, int64_t number);

/*
 * Finds the gap in the table `gaps` that covers the largest part of [*start_ns, *end_ns). Sets the
 * two to this part, in ns since the epoch, and `reason` to the gap's reason. Returns false if the
 * table has no gap for this time.
 */
bool store_reader_gap(struct store_reader *reader, int64_t *start_ns, int64_t *end_ns, char *reason,
		      size_t size);

/* Reads a run of stackd by its number. Returns 0, -ENOENT or another errno. */
int store_reader_run(struct store_reader *reader, uint64_t run, struct store_run *out);

/*
 * Returns the end of the window evicted last, in ns since the epoch, and sets `reason` to why it
 * was evicted. Returns 0 if no window was evicted.
 */
int64_t store_reader_evicted(struct store_reader *reader, char *reason, size_t size);

/*
 * Sets the members `windows`, `bytes`, oldest_ns and newest_ns of *out to what the database has
 * now.
 */
void store_reader_count(struct store_reader *reader, struct store_stats *out);

/*
 * Sets out[] to the stats of the n tiers, without the members max_rows and max_bytes. Returns 0 or
 * a negative errno.
 */
int store_reader_tiers(struct store_reader *reader, const struct store_tier *tiers, size_t n,
		       struct store_tier_stats *out);

/*
 * Returns functions that give the row numbers of the stacks and processes that this reader has
 * loaded. store_blob_encode() needs them to write a merged window.
 */
struct store_names store_reader_names(struct store_reader *reader);

/* Returns how many damaged rows this reader has found so far, in all tables. */
uint64_t store_reader_damaged(const struct store_reader *reader);

#endif
