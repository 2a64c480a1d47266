/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/shared.h"
#include "common/base.h"
#include "daemon/window/fold_internal.h"

static uint64_t row_ns(const struct window_row *row)
{
	return row->blocked_ns + row->runnable_ns;
}

static bool has_stacks(const struct window_row *row)
{
	return (row->state & STATE_PREEMPTED) && (row->kernel || row->user);
}

/*
 * Sorts times, the largest first. Rows of equal time need no order: either all of them keep their
 * stacks, or all lose them.
 */
static int time_compare(const void *x, const void *y)
{
	uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;

	return a > b ? -1 : a < b;
}

/*
 * Rows of preempted waits lose their stacks if their time is less than *limit_out. Sets *limit_out
 * to the highest value for which these rows together have less than `percent` of the time of all
 * rows of preempted waits; to 0 if no row may lose its stacks. Returns 0 or -ENOMEM.
 */
static int limit_find(const struct window *window, unsigned int percent, uint64_t *limit_out)
{
	_cleanup_(freep) uint64_t *times = calloc(window->n_rows + 1, sizeof(*times));
	uint64_t total = 0, left, share;
	size_t i, n = 0;

	if (!times)
		return -ENOMEM;
	for (i = 0; i < window->n_rows; i++) {
		if (!has_stacks(&window->rows[i]))
			continue;
		times[n] = row_ns(&window->rows[i]);
		total += times[n++];
	}
	qsort(times, n, sizeof(*times), time_compare);
	share = total / 100 * percent;
	left = 0;
	*limit_out = 0;
	while (n > 0 && left + times[n - 1] < share) {
		left += times[--n];
		*limit_out = times[n] + 1;
	}
	/* Rows of equal time are treated alike: if one of them keeps its stacks, all of them do. */
	if (n > 0 && *limit_out > times[n - 1])
		*limit_out = times[n - 1];
	return 0;
}

/* True if this row is to lose its stacks: its time is below `limit`, in ns. */
static bool is_dropped(const struct window_row *row, uint64_t limit)
{
	return has_stacks(row) && row_ns(row) < limit;
}

struct place {
	uint64_t key; /* index of the thread in window.images, and state */
	uint32_t row; /* index of a row of the window */
};

static int place_compare(const void *x, const void *y)
{
	const struct place *a = x, *b = y;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->row < b->row ? -1 : a->row > b->row;
}

/* Adds a row with these buckets to the window `to`, without taking references to its stacks. */
static int row_add(struct window *to, const struct window_row *row, const uint64_t *sums)
{
	struct window_row *added = window_add_row(to);
	uint32_t buckets[WAIT_BUCKETS];

	if (!added)
		return -ENOMEM;
	window_buckets_narrow(sums, buckets);
	*added = *row;
	return window_row_set_buckets(to, added, buckets);
}

static void row_sum(struct window_row *sum, const struct window_row *row)
{
	sum->count += row->count;
	sum->blocked_ns += row->blocked_ns;
	sum->runnable_ns += row->runnable_ns;
	sum->throttled_ns += row->throttled_ns;
	if (row->max_ns > sum->max_ns) {
		sum->max_ns = row->max_ns;
		sum->max_end_ns = row->max_end_ns;
	}
	window_processes_add(&sum->processes, &sum->started, row->processes, row->started);
}

/* Adds one row without stacks for all rows of the same thread and state. */
static int places_add(const struct window *from, const struct place *places, size_t n,
		      struct window *to)
{
	size_t i, k;
	int r = 0;

	for (i = 0; i < n && !r; i = k) {
		const struct window_row *first = &from->rows[places[i].row];
		struct window_row sum = { .image = first->image, .state = first->state };
		uint64_t buckets[WAIT_BUCKETS] = {};

		for (k = i; k < n && places[k].key == places[i].key; k++) {
			row_sum(&sum, &from->rows[places[k].row]);
			window_row_add_buckets(from, &from->rows[places[k].row], buckets);
		}
		r = row_add(to, &sum, buckets);
	}
	return r;
}

/*
 * Makes the rows of *to: first the rows of `from` that keep their stacks, then one row for each
 * thread and state, which sums up the rows without stacks.
 */
static int rows_make(const struct window *from, uint64_t limit, struct window *to)
{
	_cleanup_(freep) struct place *places = calloc(from->n_rows + 1, sizeof(*places));
	size_t i, n = 0;
	int r = places ? 0 : -ENOMEM;

	for (i = 0; i < from->n_rows && !r; i++) {
		const struct window_row *row = &from->rows[i];
		uint64_t buckets[WAIT_BUCKETS] = {};

		/* Rows that never had stacks are summed up with those that lose them now. */
		if (is_dropped(row, limit) ||
		    ((row->state & STATE_PREEMPTED) && !row->kernel && !row->user)) {
			places[n++] = (struct place){
				(uint64_t)row->image << 32 | row->state,
				(uint32_t)i,
			};
			continue;
		}
		window_row_add_buckets(from, row, buckets);
		r = row_add(to, row, buckets);
	}
	if (r)
		return r;
	if (n)
		qsort(places, n, sizeof(*places), place_compare);
	return places_add(from, places, n, to);
}

int fold_preempted(struct window *view, unsigned int percent, bool *is_changed_out)
{
	struct window rows = {};
	uint64_t limit;
	int r;

	*is_changed_out = false;
	if (!percent || view->n_wakers)
		return 0;
	r = limit_find(view, percent, &limit);
	if (r || !limit)
		return r;
	r = rows_make(view, limit, &rows);
	if (r) {
		free(rows.rows);
		free(rows.buckets);
		return r;
	}
	view->rows = rows.rows;
	view->n_rows = rows.n_rows;
	view->buckets = rows.buckets;
	view->n_buckets = rows.n_buckets;
	*is_changed_out = true;
	return 0;
}
