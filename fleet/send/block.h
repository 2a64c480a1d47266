/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_FLEET_SEND_BLOCK_H
#define STACKD_FLEET_SEND_BLOCK_H

/*
 * Writes the rows of the tables: a window with its header, or a gap. The order of the columns is
 * that of the lists of columns here. Any thread.
 */

#include <stdint.h>

#include "common/text.h"
#include "fleet/send/fold.h"
#include "proto/wire.h"

/* The columns of rows and rows60, of units, of stacks and of hosts, as an INSERT lists them. */
extern const char block_columns[];
extern const char block_unit_columns[];
extern const char block_stack_columns[];
extern const char block_host_columns[];

/* Which stretch of time of which host the rows are about. The strings are borrowed. */
struct block_key {
	int64_t start_ns;
	int64_t end_ns;
	const char *host;
	const char *boot; /* the id of the boot, or the one of zeros if it is not known */
	const char *probe;
	uint64_t attempt; /* differs in each insert */
	uint64_t seq;	  /* number of the first window; 0: not known */
};

/* Appends a header and its rows. Returns out->error. */
int block_put(const struct block_key *key, const struct wire_snapshot_reply *reply,
	      const struct fleet_rows *rows, struct text *out);

/* Appends a header and its rows to what goes into the table units. Returns out->error. */
int block_put_units(const struct block_key *key, const struct wire_snapshot_reply *reply,
		    const struct fleet_rows *rows, struct text *out);

/* Appends a gap, to what goes into rows and rows60. Returns out->error. */
int block_put_gap(const struct block_key *key, const char *reason, struct text *out);

/* Appends a stack. day is the number of days since 1970. Returns out->error. */
int block_put_stack(const struct wire_stack *stack, uint64_t id, int64_t day, struct text *out);

/* Returns the day of a time, as a number since 1970. */
int64_t block_day(int64_t ns);

/*
 * Returns a number that is the same for times whose rows are in one partition of rows60, which are
 * those of one week that begins on Monday, or of units, which are those of one month. In rows, a
 * partition is a day.
 */
int64_t block_week(int64_t ns);
int64_t block_month(int64_t ns);

#endif
