/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_COLLECT_H
#define STACKD_DAEMON_STORE_COLLECT_H

/*
 * Deletes the rows of stacks, frames and processes to which no window refers any more. A collection
 * first reads which rows each window uses, then deletes all others. It is done in short steps, with
 * other work of the writer's thread in between. Owned by that thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/intern.h"

struct store;

enum store_collect_phase {
	COLLECT_NONE, /* no collection is under way */
	COLLECT_WINDOWS,
	COLLECT_STACKS,
	COLLECT_FRAMES,
	COLLECT_PROCESSES,
	COLLECT_PHASES_N,
};

struct store_collect {
	enum store_collect_phase phase;
	int64_t at; /* number of the last row of the phase's table that was looked at */
	/* by phase: the highest number in its table at the beginning; later rows are not looked at
	 */
	int64_t last[COLLECT_PHASES_N];
	struct store_marks marks;
};

/* Begins a collection, if none is under way. Returns 0 or a negative errno. */
int store_collect_begin(struct store *store);

/*
 * Does a part of the collection. Returns 0 if it is finished, 1 if not, or a negative errno, after
 * which no collection is under way.
 */
int store_collect_step(struct store *store);

/* Ends the collection without deleting anything more, because the database was replaced. */
void store_collect_cancel(struct store *store);

#endif
