/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_COLLECT_H
#define STACKD_DAEMON_STORE_COLLECT_H

/*
 * Deletes the rows of stacks, frames, files and processes to which no window and no summary refers
 * any more. A collection first reads which rows the windows use, then deletes all others. It is
 * done in short steps, between which the writer's thread does other work. Used by this thread only.
 */

#include <stdint.h>

#include "daemon/store/intern.h"
#include "daemon/store/store.h"

struct store;

enum store_collect_phase {
	COLLECT_NONE, /* no collection is under way */
	COLLECT_WINDOWS,
	COLLECT_SUMMARIES,
	COLLECT_STACKS,
	COLLECT_FRAMES,
	COLLECT_FILES,
	COLLECT_PROCESSES,
	COLLECT_PHASES_N,
};

struct store_collect {
	enum store_collect_phase phase;
	/* number of the row that was examined last, in the table of the current phase */
	int64_t at;
	/*
	 * last[phase] is the highest row number in the phase's table at the start of the
	 * collection; rows that are added later are not examined
	 */
	int64_t last[COLLECT_PHASES_N];
	struct store_marks marks;
	/*
	 * shared[i]: bytes that tier i takes besides its encoded windows and summaries, as far as
	 * they were examined. Most are those of rows to which windows of the tier refer. A row to
	 * which several tiers refer counts for each of them in equal parts.
	 */
	double shared[STORE_TIERS_MAX];
	/* encoded[i]: bytes of the encoded windows and summaries of tier i that were examined */
	double encoded[STORE_TIERS_MAX];
};

/* Begins a collection, if none is under way. Returns 0 or a negative errno. */
int store_collect_begin(struct store *store);

/*
 * Makes the next step of the collection. Returns 0 if the collection is finished, 1 if not, or a
 * negative errno, after which no collection is under way.
 */
int store_collect_step(struct store *store);

/*
 * Ends the collection and deletes nothing more. Called when the database was replaced, or before a
 * collection is begun anew.
 */
void store_collect_cancel(struct store *store);

#endif
