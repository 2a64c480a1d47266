/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_HISTORY_H
#define STACKD_DAEMON_STORE_HISTORY_H

/*
 * Keeps the windows of the last minutes in memory and returns references to those of a range. It is
 * bounded by age and by bytes, including those of the windows' stacks, and knows up to when windows
 * were evicted and why. Owned by the recorder; any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/window/window.h"

/* Enough for ten minutes of 5 s windows of all probes, if each lost something. */
enum { HISTORY_LOSSY_MAX = 1024 };

struct history;

/* References to windows, oldest first. */
struct history_list {
	struct window **windows;
	size_t n;
	uint64_t oldest_seq; /* of all windows in memory, in the list or not; 0: there is none */
};

struct history_stats {
	size_t windows;
	size_t bytes;
	uint64_t evicted_for_bytes; /* windows */
	int64_t first_real_ns;	    /* when recording began */
	int64_t evicted_real_ns;    /* windows that ended up to here are evicted; 0: none */
	bool evicted_by_bytes;	    /* the latest eviction was for max_bytes, not for age */
};

/*
 * keep_ns: how long after its end a window is evicted. max_bytes: of all windows and stacks.
 * Returns 0 or -ENOMEM.
 */
int history_new(int64_t keep_ns, size_t max_bytes, struct history **out);
struct history *history_free(struct history *history);

/*
 * Adds a window, taking the caller's reference, and evicts old ones. stack_bytes is what all stacks
 * hold now: it shrinks only when stacks are swept, some time after their windows were evicted, so
 * only a few windows are evicted for it at a time.
 */
void history_add(struct history *history, struct window *window, size_t stack_bytes);

/* Evicts the oldest quarter, but not the newest window, because memory is short. */
void history_shrink(struct history *history);

/*
 * Sets a function that is called with each window before it is added, and may take a reference.
 * Called before any window is added.
 */
void history_set_sink(struct history *history, void (*sink)(void *userdata, struct window *window),
		      void *userdata);

/*
 * Lists the windows of a session (0: of all sessions) that overlap [since_ns, until_ns) in ns since
 * the epoch, each by its own offset to the real clock. Returns 0 or -ENOMEM.
 */
int history_range(struct history *history, uint64_t session, int64_t since_ns, int64_t until_ns,
		  struct history_list *out);
/*
 * Lists the windows of always-on probes that lost something and end after since_ns. Evicted ones,
 * the newest HISTORY_LOSSY_MAX, come first, and have times and losses only. Returns 0 or -ENOMEM.
 */
int history_lossy(struct history *history, int64_t since_ns, struct history_list *out);
void history_list_fini(struct history_list *list);

/* Returns when the session's newest window ended, in ns since the epoch; 0 if it has none. */
int64_t history_newest_end(struct history *history, uint64_t session);

/* Waits until a window of this sequence number or a later one was added. 0 or -ETIMEDOUT. */
int history_wait(struct history *history, uint64_t seq, int64_t timeout_ns);

/* Changes the limits of history_new(); they apply when the next window is added. */
void history_set_limits(struct history *history, int64_t keep_ns, size_t max_bytes);

void history_stats(struct history *history, struct history_stats *out);

#endif
