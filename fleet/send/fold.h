/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_FLEET_SEND_FOLD_H
#define STACKD_FLEET_SEND_FOLD_H

/*
 * Makes few rows of the many rows of an answer, without loss of time: rows of preempted threads
 * lose their stacks, the largest rows stay, and the others are summed up. Pure functions; any
 * thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "proto/wire.h"

struct arena;

/* The kinds of rows in the tables. */
enum fleet_kind { FLEET_HEADER, FLEET_ROW, FLEET_FOLDED, FLEET_REST, FLEET_GAP };

/* One row for the tables. */
struct fleet_row {
	enum fleet_kind kind; /* FLEET_ROW, FLEET_FOLDED or FLEET_REST */
	struct wire_row wire; /* the row or the sum; a sum has no stacks */
	int64_t of_rows;      /* of how many rows of the answer it is the sum */
};

struct fleet_rows {
	struct fleet_row *v;
	size_t n;
};

/*
 * Folds rows. `share` is the percentage of the time that rows of kinds FLEET_ROW and FLEET_FOLDED
 * have to hold, apart for those that are idle and those that are not, and `most` the greatest
 * number of either. The sums of counts, times and buckets over all rows stay the same. The result
 * is in the arena and borrows texts and stacks from the rows. Returns 0 or -ENOMEM.
 */
int fold_rows(const struct wire_rows *rows, uint64_t share, uint64_t most, struct arena *arena,
	      struct fleet_rows *out);

/*
 * Sums rows up by unit, kernel, state, reason and idle, in the arena, as FLEET_REST. Returns 0 or
 * -ENOMEM.
 */
int fold_units(const struct fleet_rows *rows, struct arena *arena, struct fleet_rows *out);

#endif
