/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_HISTORY_H
#define STACKD_DAEMON_STORE_HISTORY_H

/*
 * Keeps the windows of the last minutes in memory, and returns references to the windows of a
 * range. Evicts windows when they are too old, or when all windows and stacks together take too
 * many bytes. Records when and why it evicted the last one. Owned by the recorder; any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/window/window.h"

/*
 * The maximum number of evicted windows whose loss counts are kept. Even if all probes lose events
 * in every window of 5 s, this is enough for ten minutes.
 */
enum { HISTORY_LOSSY_MAX = 1024 };

struct history;

/* A list of references to windows, oldest first. */
struct history_list {
	struct window **windows;
	size_t n;
};

struct history_stats {
	size_t windows;
	size_t bytes;
	/* what windows and stacks may take now: max_bytes, or less because of [budget] memory */
	size_t most_bytes;
	size_t waiting_bytes;	    /* memory of the windows that wait to be written to disk */
	uint64_t evicted_for_bytes; /* number of windows evicted because of max_bytes */
	int64_t first_real_ns; /* start of the first window ever added, in ns since the epoch */
	/* end of the window evicted last, in ns since the epoch; 0: none */
	int64_t evicted_real_ns;
	bool evicted_by_bytes; /* the window evicted last was evicted for max_bytes, not for age */
};

/*
 * Creates a history that evicts a window keep_ns after the window's end, or earlier if all windows
 * and stacks together take more than max_bytes. Returns 0 or -ENOMEM.
 */
int history_new(int64_t keep_ns, size_t max_bytes, struct history **out);
struct history *history_free(struct history *history);

/*
 * Adds a window, taking over the caller's only reference, and evicts old windows. `folded`, if it
 * is not NULL, is the same window with fewer rows, whose reference is taken over, too: it is given
 * to the sink, and takes the place of the window a minute after its end, or earlier if memory is
 * short. stack_bytes is the memory of the stacks and processes to which windows refer, as it was
 * last measured. These are freed only some time after their windows were evicted, so each call
 * evicts only a few windows because of stack_bytes.
 */
void history_add(struct history *history, struct window *window, struct window *folded,
		 size_t stack_bytes);

/*
 * Folds all windows, and evicts the oldest quarter of them, but none of the last 30 s. Called when
 * memory is short.
 */
void history_shrink(struct history *history);

/*
 * Sets a function that history_add() calls with each new window. The function takes a reference if
 * it keeps the window, and returns how many bytes all windows that it keeps take. These count for
 * max_bytes. Must be set before the first window is added.
 */
void history_set_sink(struct history *history,
		      size_t (*sink)(void *userdata, struct window *window), void *userdata);

/*
 * Lists the windows of a session (0: of all sessions) that overlap [since_ns, until_ns), in ns
 * since the epoch. Returns 0 or -ENOMEM.
 */
int history_range(struct history *history, uint64_t session, int64_t since_ns, int64_t until_ns,
		  struct history_list *out);
/*
 * Lists the windows of always-on probes in which events were lost and that end after since_ns, in
 * ns since the epoch. Evicted windows come first, at most HISTORY_LOSSY_MAX of them, with only
 * their times and loss counts. Returns 0 or -ENOMEM.
 */
int history_lossy(struct history *history, int64_t since_ns, struct history_list *out);
void history_list_fini(struct history_list *list);

/* Returns when the session's newest window ended, in ns since the epoch; 0 if it has none. */
int64_t history_newest_end(struct history *history, uint64_t session);

/* Returns when the session's newest window ended, CLOCK_MONOTONIC; 0 if it has none. */
int64_t history_newest_ns(struct history *history, uint64_t session);

/*
 * Waits until a window with the sequence number `seq` or a higher one was added. Returns 0 or
 * -ETIMEDOUT.
 */
int history_wait(struct history *history, uint64_t seq, int64_t timeout_ns);

/* Changes keep_ns and max_bytes, see history_new(). They apply when the next window is added. */
void history_set_limits(struct history *history, int64_t keep_ns, size_t max_bytes);

/*
 * Sets a limit that holds like max_bytes, where it is lower. It applies when the next window is
 * added. 0: there is no such limit.
 */
void history_set_budget(struct history *history, size_t max_bytes);

void history_stats(struct history *history, struct history_stats *out);

#endif
