/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_READER_H
#define STACKD_DAEMON_STORE_READER_H

/*
 * One look into the store: windows of a range are listed, then loaded one by one; their stacks,
 * frames and processes are loaded once each and live as long as the reader, so windows and
 * everything made of them must be gone before it is closed. A query has one of its own; one
 * thread at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/entry.h"
#include "daemon/store/window_blob.h"

/* More windows than this are not listed, nor more stacks loaded, at a time. */
enum { STORE_LIST_MAX = 32768, STORE_STACKS_MAX = 65536 };

/* Whose windows: of the session of a probe that is always on, of one of a run, or else all. */
struct store_select {
	const char *probe; /* NULL: not by this */
	uint64_t run;
	uint64_t session; /* 0: not by this */
};

struct store_reader;
struct store_session;
struct store_stats;

/* What is known of a run of stackd. */
struct store_run {
	char boot_id[40];
	int64_t start_real_ns;
	int64_t alive_real_ns; /* when it was last known to run */
	bool is_clean;	       /* it ended as it should, or runs still */
};

/* 0, or the errno of store_db_open(). */
int store_reader_open(const char *path, struct store_reader **out);
struct store_reader *store_reader_close(struct store_reader *reader);

/*
 * All has been read: what is loaded stays, but the database is let go of, whose log would grow for
 * as long as somebody looks at it.
 */
void store_reader_rest(struct store_reader *reader);

/*
 * The windows that overlap [since_ns, until_ns) of the time since the epoch, oldest first, the
 * newest max of them; *out is the caller's. Rows that are damaged are left out and counted.
 */
int store_reader_list(struct store_reader *reader, const struct store_select *select,
		      int64_t since_ns, int64_t until_ns, size_t max, struct store_entry **out,
		      size_t *n_out);

/* When the oldest window of a probe that is always on begins; fallback_ns where that is not known.
 */
int64_t store_reader_first(struct store_reader *reader, const char *probe, int64_t fallback_ns);

/*
 * The newest session of this number or name (one of them), with strings that are the caller's to
 * free. 0, -ENOENT, or another errno.
 */
int store_reader_session(struct store_reader *reader, uint64_t number, const char *name,
			 struct store_session *out);

/*
 * The newest max sessions of which windows are there, newest first, without those that is_known
 * says somebody has: their number, or a negative errno.
 */
int store_reader_sessions(struct store_reader *reader,
			  bool (*is_known)(void *userdata, const struct store_session *session),
			  void *userdata, struct store_session *out, size_t max);
void store_session_fini(struct store_session *session);

/* At most max windows of a session after the one with this id, in the order they were written. */
int store_reader_after(struct store_reader *reader, uint64_t session, int64_t id, size_t max,
		       struct store_entry **out, size_t *n_out);

/* 0 and *out, the caller's; -EBADMSG when it is damaged, or another errno. */
int store_reader_load(struct store_reader *reader, const struct store_entry *entry,
		      struct window **out, bool *is_partial_out);

/*
 * Why nothing was recorded for most of that time, as it was written down, and up to when (real ns)
 * it was; false when nobody knew.
 */
bool store_reader_gap(struct store_reader *reader, int64_t start_ns, int64_t end_ns, char *reason,
		      size_t size, int64_t *end_out);
int store_reader_run(struct store_reader *reader, uint64_t run, struct store_run *out);

/* Up to when windows were dropped, and why; 0: none were. */
int64_t store_reader_evicted(struct store_reader *reader, char *reason, size_t size);

/* Counts what is in the database: fills windows, bytes, oldest_ns and newest_ns. */
void store_reader_count(struct store_reader *reader, struct store_stats *out);

/* Numbers of what was loaded, for writing it again. */
struct store_names store_reader_names(struct store_reader *reader);

/* Damaged rows met so far, of any kind. */
uint64_t store_reader_damaged(const struct store_reader *reader);

#endif
