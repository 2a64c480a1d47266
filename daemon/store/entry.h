/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_ENTRY_H
#define STACKD_DAEMON_STORE_ENTRY_H

/*
 * Describes a window without its rows: when it began and ended, how large it is, and how many
 * events it lost. Plain values; any thread.
 */

#include <stdint.h>

#include "daemon/window/window.h"

struct store_entry {
	int64_t id;   /* number of the window in the database; 0: it is read from memory */
	uint64_t run; /* number of the run of stackd that recorded it; 0: not known */
	uint64_t seq;
	uint64_t merged_from; /* number of windows merged into this one; 1: not merged */
	uint64_t session;
	enum probe_kind kind;
	int64_t start_ns;
	int64_t end_ns;
	int64_t real_offset_ns;
	int64_t boot_offset_ns;
	uint64_t rows;
	uint64_t threads;
	uint64_t opens;
	uint64_t bytes;
	uint64_t lost[WINDOW_LOST_N];
	struct window_folded folded;
	/*
	 * of a summary, which is one window merged from several windows on disk that are still
	 * there: the number of these windows; 0: the entry describes a window. The windows are
	 * those of the same session with ids from `id` to last_id.
	 */
	uint32_t summarized;
	int64_t last_id;
	/*
	 * of a summary: the largest time of rows with the same comm, exe, cgroup, stacks and state,
	 * which are not idle, that the windows have and the summary has only within "(others)"
	 */
	uint64_t lacks_ns;
	int bad; /* 0, or the negative errno with which loading the window failed */
};

/* Returns when the window begins, in ns since the epoch. */
static inline int64_t store_entry_start(const struct store_entry *entry)
{
	return entry->start_ns + entry->real_offset_ns;
}

/* Returns when the window ends, in ns since the epoch. */
static inline int64_t store_entry_end(const struct store_entry *entry)
{
	return entry->end_ns + entry->real_offset_ns;
}

/*
 * Returns the entry that describes a window. `run` is the number of the run of stackd that recorded
 * the window; a window in memory does not have this number before it is on disk.
 */
static inline struct store_entry store_entry_of(const struct window *window, uint64_t run)
{
	struct store_entry entry = {
		.run = run,
		.seq = window->seq,
		.merged_from = window->merged_from,
		.session = window->session,
		.kind = window->kind,
		.start_ns = window->start_ns,
		.end_ns = window->end_ns,
		.real_offset_ns = window->real_offset_ns,
		.boot_offset_ns = window->boot_offset_ns,
		.rows = window->n_rows + window->n_samples + window->n_ios,
		.threads = window->n_images,
		.opens = window->n_opens,
		.bytes = window->bytes,
		.folded = window->folded,
	};
	unsigned int i;

	for (i = 0; i < WINDOW_LOST_N; i++)
		entry.lost[i] = window->lost[i];
	return entry;
}

#endif
