/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_INTERNAL_H
#define STACKD_DAEMON_STORE_INTERNAL_H

/*
 * Shared by the files behind store.h. Any thread may use the queue (store.c) and the stats
 * (stats.c) while it holds store.lock. The settings never change. All the rest is used by the
 * writer's thread (writer.c) only: joining of short windows (join.c), making room (retention.c),
 * merging of old windows (compact.c, summarize.c) and deletion of unused rows (collect.c).
 *
 * The source files form layers, listed here from the lowest to the highest. Each file calls only
 * files of lower layers: bytes, downsample, history, id_set, lock_owner, schema, timeline_choose <
 * columns, db, held_section, owners, pressure_section, row_cache, spawns_section < intern, summary,
 * window_blob < intern_read, session_row, window_row < tier < collect, reader < compact, prefetch,
 * stats, timeline_summary < db_file, db_log, retention, summarize, timeline < timeline_coverage,
 * window_write < join < writer < store.
 */

#include <errno.h>
#include <pthread.h>
#include <sys/types.h>

#include "daemon/store/collect.h"
#include "daemon/store/db.h"
#include "daemon/store/intern.h"
#include "daemon/store/store.h"
#include "daemon/store/summary.h"
#include "daemon/store/tier.h"

/*
 * The maximum number of sessions that wait to be written. It is the number of sessions that clients
 * can have running at once.
 */
enum { STORE_NOTES_MAX = 64 };

/*
 * HELD_SESSIONS_MAX: maximum number of sessions whose short windows wait to be joined. It is more
 * than the number of sessions that can run at once. HELD_MAX: maximum number of windows that are
 * joined into one.
 */
enum { HELD_SESSIONS_MAX = 96, HELD_MAX = 64 };

/* Short windows of one session that wait to be joined with the windows that follow them. */
struct store_held {
	/* references to the windows; each window begins where the previous one ends */
	struct window *windows[HELD_MAX];
	size_t n; /* number of windows; 0: this struct is not in use */
	/* time of CLOCK_MONOTONIC at which the windows are written, however short they are */
	int64_t until_ns;
};

/* The maximum number of windows that are merged in one step. */
enum { STORE_PARTS_MAX = 64 };

/* A period whose windows were dropped and are therefore not on disk, and why they were dropped. */
struct store_gap {
	int64_t start_ns; /* in ns since the epoch; equal to end_ns: no gap */
	int64_t end_ns;
	char reason[128];
};

/* The number of files of the store: database, log, index of the log, lock file. */
enum { STORE_FILES = 4 };

/* Which file it is, as stat() says; zeros: none. */
struct store_file_id {
	dev_t dev;
	ino_t inode;
};

struct store {
	/* The settings, which never change */
	char *path;
	char *lock_path;
	char boot_id[40];
	uint64_t max_size;
	int64_t sync_every_ns;
	struct store_tier tiers[STORE_TIERS_MAX];
	size_t n_tiers;
	struct window_fold_limits fold;
	int64_t (*now)(clockid_t clock);
	bool is_read_only;
	/* The members from here on are used only while lock is held */
	pthread_mutex_t lock;
	pthread_cond_t wake;  /* signalled when a window was queued, and to stop */
	pthread_cond_t tried; /* signalled when has_tried was set */
	bool has_tried;	      /* the writer has tried to open the file, with success or not */
	struct window *queue[STORE_QUEUE_MAX];	     /* ring of windows that wait to be written */
	size_t first;				     /* index of the oldest window in `queue` */
	size_t queued;				     /* number of windows in `queue` */
	size_t queued_bytes;			     /* memory of these windows */
	struct store_session notes[STORE_NOTES_MAX]; /* sessions that wait to be written */
	size_t noted;				     /* number of sessions in `notes` */
	bool is_stopping;
	bool has_thread; /* the thread was started, and store_end() was not called */
	bool is_hanging; /* the thread has not ended, because the disk does not answer */
	/* period of the windows that were dropped because `queue` was full */
	struct store_gap missed;
	/* why the writer waits for another program, a literal; NULL: it does not wait */
	const char *busy;
	int64_t window_ns; /* windows shorter than this are joined, see struct store_options */
	struct store_stats stats;
	/* The members from here on are used by the writer's thread only */
	pthread_t thread;
	int lock_fd;
	struct store_db db;
	struct store_file_id files[STORE_FILES]; /* the files that are open, while `db` is */
	struct store_db_mark mark;		 /* of the database, when it was looked at last */
	struct store_intern *intern;
	struct store_gap gap; /* the latest gap, until it is written to the table `gaps` */
	int64_t run;	      /* number of this run of stackd, its id in the table `runs` */
	int64_t open_next_ns; /* time of CLOCK_MONOTONIC at which to try again to open the file */
	int64_t sync_next_ns; /* time of CLOCK_MONOTONIC at which to sync the file next */
	/*
	 * time of CLOCK_MONOTONIC before which the database's write-ahead log is not truncated
	 * again, see store_log_restart()
	 */
	int64_t log_next_ns;
	/*
	 * time of CLOCK_MONOTONIC since which a reader keeps the log from being truncated; 0: none
	 * does
	 */
	int64_t log_busy_ns;
	/*
	 * time of CLOCK_MONOTONIC before which the writer does not look again whether the query has
	 * ended that reads a file which was moved; 0: none does
	 */
	int64_t moved_next_ns;
	int64_t written_real_ns; /* end of the window written last, in ns since the epoch */
	/*
	 * One member for each kind of probe: the end of the window that was written last for the
	 * always-on session of this kind, in ns since the epoch. INT64_MIN: no window was written
	 * yet.
	 */
	int64_t written_always_ns[PROBE_KIND_N];
	struct store_held held[HELD_SESSIONS_MAX];
	/*
	 * taken_ns[i]: time of CLOCK_MONOTONIC at which the newest window of the always-on session
	 * number i arrived
	 */
	int64_t taken_ns[STORE_ALWAYS_MAX];
	struct tier_sums sums[STORE_TIERS_MAX]; /* by tier */
	struct store_summaries summaries;
	/* the tier that store_compact_step() examines first when it is called next */
	size_t tier_next;
	/* time of CLOCK_MONOTONIC before which no window is evicted for its age */
	int64_t evict_next_ns;
	/*
	 * time of CLOCK_MONOTONIC before which old windows are not merged, because that has failed
	 */
	int64_t failed_next_ns;
	struct store_collect collect;
	/*
	 * bytes of the windows that were deleted since a collection last began, and those of rows
	 * to which only these refer, as store_tier_bytes() estimates them
	 */
	int64_t removed_bytes;
	/* windows are being merged and evicted until store_tiers_bytes() is at most goal_bytes */
	bool is_shrinking;
	int64_t goal_bytes;
};

/*
 * compact.c: merges or evicts a group of windows if its age is above the keep_ns of its tier; at
 * most one group in each call. Returns 1 if there was such a group, 0 if not, or a negative errno.
 */
int store_compact_step(struct store *store);

/*
 * Shrinks the tier whose windows take the most bytes in proportion to the tier's share of the disk.
 * At first, if may_fold is true, folds the tier's oldest windows to half as many rows, later to a
 * quarter, and so on. After that, merges its oldest windows into one window of the next tier or, if
 * they cannot be merged, evicts its oldest window. Returns 0, -ENOENT (no windows) or another
 * errno.
 */
int store_tier_yield(struct store *store, bool may_fold);

/*
 * Evicts the oldest window of the tier whose windows take the most bytes in proportion to the
 * tier's share of the disk. Returns 0, -ENOENT (no windows) or another errno.
 */
int store_tier_evict(struct store *store);

/*
 * True if windows stay as they are for the error r of a merge: one of them cannot be read, or what
 * they become is too large.
 */
bool store_is_unmergeable(int r);

/*
 * Folds a window to the number of rows that the tier allows now. Sets *out to a reference to the
 * result. Returns 0 or a negative errno.
 */
int store_tier_fold(const struct store *store, size_t tier, struct window *window,
		    struct window **out);

/*
 * True if the window `entry` begins where the window `before` ends, and both are of the same run of
 * stackd. False if the clock was set or the host was suspended between the two windows.
 */
bool store_continues(const struct store_entry *entry, const struct store_entry *before);

/*
 * Returns how many windows, beginning with the first, can be merged into one. They must begin in
 * the same period of length_ns, without a break between them.
 */
size_t store_group_size(const struct store_entry *entries, size_t n, int64_t length_ns);

/*
 * Encodes a window that was made from windows that `reader` has loaded. `tier` is the tier in which
 * the new window will be.
 */
int store_merged_encode(struct store *store, struct store_reader *reader,
			const struct window *window, size_t tier, struct bytes *blob);

/*
 * Ends the open transaction: commits it if r is 0, otherwise rolls it back. Returns 0 or a negative
 * errno.
 */
int store_step_end(struct store *store, int r);

/*
 * stats.c: set the text of a problem or notice, and log the text if it is new. `format` is NULL if
 * this problem is over.
 */
void store_set_problem(struct store *store, enum store_problem problem, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void store_set_notice(struct store *store, enum store_notice_kind kind, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * stats.c: returns the size in bytes of the file whose name is `path` followed by `suffix`; 0 if
 * there is no such file.
 */
uint64_t store_file_bytes(const char *path, const char *suffix);

/*
 * stats.c: updates the number of windows, the end of the oldest and of the newest one, and the
 * bytes on disk.
 */
void store_count(struct store *store);

/* The locks of SQLite in the index of the log: of the connection that writes, and of readers. */
enum store_lock { STORE_LOCK_WRITE, STORE_LOCK_READ };

enum { LOCK_OWNER_TEXT = 64 };

/*
 * lock_owner.c: writes to `out` which program has the lock, such as "pid 812 (sqlite3)"; "another
 * program" if it is not known.
 */
void store_lock_owner(const struct store *store, enum store_lock lock, char out[LOCK_OWNER_TEXT]);

/* db_file.c: takes the lock file and opens the database; calls store_set_problem() on failure. */
int store_file_open(struct store *store);

/*
 * db_file.c: does so, and sets when to try again next: at once if another program is in the way.
 */
int store_file_try(struct store *store);

void store_file_close(struct store *store);

/*
 * db_file.c: moves the damaged database out of the way, and opens a new one in its place; calls
 * store_set_problem() on failure.
 */
int store_file_renew(struct store *store);

/*
 * db_file.c: if one of the open files is not at its path any more, because somebody moved, removed
 * or replaced it, closes the database: the next window is written to the one at the path, or to a
 * new one.
 */
void store_file_follow(struct store *store);

/*
 * db_log.c: truncates the database's write-ahead log if it has become long. SQLite itself starts
 * the log over only at a moment without readers: when one query followed the other without a pause,
 * the log grew to 200 MiB in 5 minutes. This function waits until all queries that read now have
 * finished, but no longer than until a window waits to be written, unless the log has become so
 * long that it has to be truncated first. It does not wait for queries that begin later.
 */
void store_log_restart(struct store *store, int64_t now);

/*
 * db_log.c: truncates the log before a window is written, if it is longer than it may be. Returns
 * 0, -EBUSY (the log stays, as a connection still reads) or another errno.
 */
int store_log_limit(struct store *store);

/*
 * db_log.c: true if a reader has kept the log from being truncated for so long that this is a
 * problem.
 */
bool store_log_is_held(const struct store *store);

/*
 * retention.c: both functions free space in the database, and are called without an open
 * transaction. store_make_room() frees enough space for a window of `size` bytes.
 * store_shrink_step() does a short step if little space is free. It returns 1 if it did a step, 0
 * if there is nothing to do, or a negative errno. may_fold: whether windows may be folded, see
 * store_tier_yield().
 */
int store_make_room(struct store *store, size_t size);
int store_shrink_step(struct store *store, bool may_fold);

/* True if so little space is free that the next windows may use it up before steps free more. */
bool store_is_short(struct store *store);

/* True if r says that a file cannot grow: the disk is full, or a limit on its size is reached. */
static inline bool store_is_full(int r)
{
	return r == -ENOSPC || r == -EFBIG;
}

/*
 * Evicts some of the oldest windows for `reason`: the file cannot grow although max_age and
 * max_size would let the windows stay.
 */
int store_evict_some(struct store *store, const char *reason);

/*
 * window_write.c: store_gap_add() extends *gap by the period [start_ns, end_ns) if it is close to
 * *gap and has the same reason. Otherwise it replaces *gap by this period. store_gap_write() adds
 * the gap in store->gap, if any, to the table `gaps`, and keeps only its newest rows.
 */
void store_gap_add(struct store_gap *gap, int64_t start_ns, int64_t end_ns, const char *reason);
int store_gap_write(struct store *store);

/*
 * window_write.c: writes a window, and opens the file first if necessary. While another program is
 * in the way, it tries again. On another failure it notes a gap.
 */
void store_window_take(struct store *store, struct window *window);

/*
 * join.c: a window may be shorter than the setting [window] length, because a query ended it. Short
 * windows are held until the windows that follow make them long enough; then all of them are
 * written as one window. store_join_take() adds a window and takes over the caller's reference.
 * store_join_flush() writes the windows that were held for long enough or, if is_all is true, all
 * windows.
 */
void store_join_take(struct store *store, struct window *window);
void store_join_flush(struct store *store, bool is_all);
void store_join_free(struct store *store);

/* writer.c: runs the writer's thread. `data` is the struct store. */
void *store_writer_run(void *data);

#endif
