/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/compat/entries.h"

#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"

int64_t compat_value_waits(const struct wire_row *row)
{
	int64_t open = row->open_ns == WIRE_ABSENT ? 0 : row->open_ns;

	/*
	 * These tools print stacks: leave out the row for waits that are recorded without a stack,
	 * because they were short.
	 */
	if (row->count == 0 || (row->state && strcmp(row->state, "-") == 0))
		return 0;
	return row->total_ns - open;
}

int64_t compat_value_samples(const struct wire_row *row)
{
	return row->count;
}

static int compare_ints(int64_t x, int64_t y)
{
	return (x > y) - (x < y);
}

static int compare_stacks(const struct wire_stack *x, const struct wire_stack *y)
{
	if (!x || !y)
		return !!x - !!y;
	return strcmp(x->id, y->id);
}

/* Compares two wakers by their threads and stacks. Ignores the threads that woke the wakers. */
static int compare_wakers(const struct wire_waker *x, const struct wire_waker *y)
{
	const struct wire_link *p, *q;
	int r;

	if (!x || !y)
		return !!x - !!y;
	r = compare_stacks(x->kernel, y->kernel) ?: compare_stacks(x->user, y->user);
	if (r != 0)
		return r;
	if (x->path.n == 0 || y->path.n == 0)
		return (x->path.n > 0) - (y->path.n > 0);
	p = &x->path.v[0];
	q = &y->path.v[0];
	return strcmp(p->context, q->context) ?: compare_ints(p->tid, q->tid)
		?: strcmp(p->comm ? p->comm : "", q->comm ? q->comm : "");
}

static int compare_keys(const struct wire_row *x, const struct wire_row *y, enum compat_by by)
{
	int r = 0;

	if (by != COMPAT_BY_STACKS)
		r = compare_ints(x->process.pid, y->process.pid)
			    ?: compare_ints(x->process.start, y->process.start);
	return r ?: compare_stacks(x->kernel, y->kernel) ?: compare_stacks(x->user, y->user)
		?: compare_wakers(x->waker, y->waker)
		?: (by == COMPAT_BY_NAME ? strcmp(x->comm, y->comm) : 0);
}

static int compare_entries(const void *a, const void *b, void *by)
{
	const struct compat_entry *x = a, *y = b;

	/* Entries that compare as equal are sorted by the position of their rows in the reply. */
	return compare_keys(x->row, y->row, *(enum compat_by *)by)
		       ?: (x->row > y->row) - (x->row < y->row);
}

int compat_compare_value(const void *a, const void *b)
{
	const struct compat_entry *x = a, *y = b;

	return compare_ints(x->value, y->value) ?: (x->row > y->row) - (x->row < y->row);
}

static void entry_add(struct compat_entry *entry, const struct compat_entry *other)
{
	entry->value += other->value;
	if (other->max_ns > entry->max_ns) {
		entry->max_ns = other->max_ns;
		entry->max_end = other->max_end;
	}
}

struct compat_entry *compat_entries_new(const struct wire_snapshot_reply *reply, enum compat_by by,
					int64_t (*value)(const struct wire_row *row), size_t *n_out)
{
	struct compat_entry *entries = must(calloc(reply->rows.n + 1, sizeof *entries));
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < reply->rows.n; i++) {
		const struct wire_row *row = &reply->rows.v[i];
		int64_t v = value(row);

		if (v <= 0)
			continue;
		entries[n++] = (struct compat_entry){
			.row = row,
			.value = v,
			.max_ns = row->max_ns == WIRE_ABSENT ? 0 : row->max_ns,
			.max_end = row->max_end,
		};
	}
	qsort_r(entries, n, sizeof *entries, compare_entries, &by);
	for (size_t i = 0; i < n; i++) {
		if (kept > 0 && compare_keys(entries[kept - 1].row, entries[i].row, by) == 0)
			entry_add(&entries[kept - 1], &entries[i]);
		else
			entries[kept++] = entries[i];
	}
	*n_out = kept;
	return entries;
}
