/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_HISTORY_H
#define STACKD_DAEMON_STORE_HISTORY_H

/*
 * The windows of the last minutes, in memory: in go resolved windows in order, out come
 * references to those of a range. Bounded by age and by bytes, those of the windows' stacks
 * included; what was evicted and why is known. Owned by the recorder; any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/window/window.h"

/* Ten minutes' windows of 5 s of all probes, if each lost something. */
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
	uint64_t evicted_for_bytes;
	int64_t first_real_ns;	 /* when recording began */
	int64_t evicted_real_ns; /* everything before has been evicted; 0: nothing */
	bool evicted_by_bytes;	 /* the newest eviction */
};

/* keep_ns: age of a window's end at which it goes; max_bytes over all windows and stacks. */
int history_new(int64_t keep_ns, size_t max_bytes, struct history **out);
struct history *history_free(struct history *history);

/*
 * Takes the reference. stack_bytes is what stacks hold now. It shrinks only when stacks are swept,
 * some time after their windows have gone, so for its sake only a few windows go at a time.
 */
void history_add(struct history *history, struct window *window, size_t stack_bytes);

/* Lets the oldest quarter go, but not the newest window: there is no room for what is to come. */
void history_shrink(struct history *history);

/* Shows each window to the sink before it is added; it may take a reference. Before any is added.
 */
void history_set_sink(struct history *history, void (*sink)(void *userdata, struct window *window),
		      void *userdata);

/*
 * All windows of a session (0: of all) that overlap [since_ns, until_ns) in time since the epoch,
 * by their own clock.
 */
int history_range(struct history *history, uint64_t session, int64_t since_ns, int64_t until_ns,
		  struct history_list *out);
/*
 * Windows of probes that are always on that lost something and overlap that time: those in memory,
 * and before them what is left of evicted ones, which have their losses and nothing else. Of these
 * HISTORY_LOSSY_MAX are known, the newest. 0 or -ENOMEM.
 */
int history_lossy(struct history *history, int64_t since_ns, struct history_list *out);
void history_list_fini(struct history_list *list);

/* When the session's newest window ended, in ns since the epoch; 0 where it has none. */
int64_t history_newest_end(struct history *history, uint64_t session);

/* Waits until a window of at least this sequence number is there. 0 or -ETIMEDOUT. */
int history_wait(struct history *history, uint64_t seq, int64_t timeout_ns);

/* Other limits, from the next window on. */
void history_set_limits(struct history *history, int64_t keep_ns, size_t max_bytes);

void history_stats(struct history *history, struct history_stats *out);

#endif
