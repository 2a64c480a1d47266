/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_COMPAT_ENTRIES_H
#define STACKD_CLIENT_COMPAT_ENTRIES_H

/*
 * Makes the entries that an older tool prints. An entry is the sum of several rows of an answer:
 * those of one task with the same stacks, even if their states differ. Entries borrow the rows; the
 * caller frees the entries. Main thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "proto/wire.h"

struct compat_entry {
	/* one of the rows of which the entry is the sum; all of them have the same stacks */
	const struct wire_row *row;
	int64_t value;	 /* the sum of what compat_tool.value() returns for the rows */
	int64_t max_ns;	 /* length of the longest wait, in ns */
	int64_t max_end; /* when the longest wait ended, in ns since 1970; WIRE_ABSENT: not known */
};

/* Says which rows become one entry. */
enum compat_by {
	COMPAT_BY_NAME,	   /* rows with the same stacks, process and thread name */
	COMPAT_BY_PROCESS, /* rows with the same stacks and process */
	COMPAT_BY_STACKS,  /* rows with the same stacks */
};

/*
 * Returns the entries, unsorted. The function `value` returns by how much a row increases the value
 * of its entry. If it returns 0, the row is left out.
 */
struct compat_entry *compat_entries_new(const struct wire_snapshot_reply *reply, enum compat_by by,
					int64_t (*value)(const struct wire_row *row),
					size_t *n_out);

/* Compares entries for qsort(): the smallest value comes first; equal entries keep their order. */
int compat_compare_value(const void *a, const void *b);

/*
 * Returns the total length in ns of those waits of a row that have ended. Older tools count no
 * others.
 */
int64_t compat_value_waits(const struct wire_row *row);

/* Returns the number of a row's samples or calls. */
int64_t compat_value_samples(const struct wire_row *row);

#endif
