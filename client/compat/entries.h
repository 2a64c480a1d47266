/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_COMPAT_ENTRIES_H
#define STACKD_CLIENT_COMPAT_ENTRIES_H

/*
 * Adds the rows of an answer up to the entries that older tools print: one for each task and its
 * two stacks, whatever the state. Entries borrow the rows; the caller frees the entries. Main
 * thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/wire.h"

struct compat_entry {
	const struct wire_row *row; /* one of the rows added up; they have its task and stacks */
	int64_t value;		    /* the sum of the rows, as compat_tool.value() has it */
	int64_t max_ns;		    /* the longest wait */
	int64_t max_end;	    /* when that ended, in ns since 1970; WIRE_ABSENT: not known */
};

/* Which rows are added up to one entry. */
enum compat_by {
	COMPAT_BY_NAME,	   /* those with the same stacks, process and thread name */
	COMPAT_BY_PROCESS, /* those with the same stacks and process */
	COMPAT_BY_STACKS,  /* those with the same stacks */
};

/* Returns the entries, in no useful order. value: returns 0 for a row that is left out. */
struct compat_entry *compat_entries_new(const struct wire_snapshot_reply *reply, enum compat_by by,
					int64_t (*value)(const struct wire_row *row),
					size_t *n_out);

/* Compares entries for qsort(): by value, smallest first; equal ones stay in their order. */
int compat_compare_value(const void *a, const void *b);

/* Returns the ns of a row's waits that have ended; older tools do not count others. */
int64_t compat_value_waits(const struct wire_row *row);

/* Returns the number of a row's samples or calls. */
int64_t compat_value_samples(const struct wire_row *row);

#endif
