/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_COMPAT_ENTRIES_H
#define STACKD_CLIENT_COMPAT_ENTRIES_H

/*
 * Rows of an answer as older tools have them: one entry a task and its two stacks, whatever the
 * state. Rows in, entries out, which borrow the rows and are the caller's to free. Main thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/wire.h"

struct compat_entry {
	const struct wire_row *row; /* one of those it stands for: its task and stacks */
	int64_t value;
	int64_t max_ns;
	int64_t max_end; /* WIRE_ABSENT where not known */
};

/* What makes two entries of two rows: each of these leaves something out. */
enum compat_by { COMPAT_BY_NAME, COMPAT_BY_PROCESS, COMPAT_BY_STACKS };

/* value: 0 for rows that do not count. */
struct compat_entry *compat_entries_new(const struct wire_snapshot_reply *reply, enum compat_by by,
					int64_t (*value)(const struct wire_row *row),
					size_t *n_out);

/* By value, smallest first; equal ones as they came. */
int compat_compare_value(const void *a, const void *b);

/* ns of waits that have ended: a wait going on is in no older tool's sum. */
int64_t compat_value_waits(const struct wire_row *row);

/* Number of samples. */
int64_t compat_value_samples(const struct wire_row *row);

#endif
