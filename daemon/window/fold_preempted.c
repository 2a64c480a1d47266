/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>

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

/*
 * Adds the rows of `from` to `sums`, those below `limit` without their stacks: one row for each
 * thread and state sums them up, with the rows that never had stacks. 0 or -ENOMEM.
 */
static int rows_add(const struct window *from, uint64_t limit, struct row_sums *sums)
{
	size_t i;
	int r = 0;

	for (i = 0; i < from->n_rows && !r; i++) {
		struct window_row row = from->rows[i];

		if (is_dropped(&row, limit))
			row.kernel = row.user = NULL;
		r = row_sums_add(sums, from, &row, NULL);
	}
	return r;
}

int fold_preempted(const struct window *window, unsigned int percent, struct window **out)
{
	struct row_sums sums = ROW_SUMS;
	struct window *rows;
	uint64_t limit;
	int r;

	if (!percent || window->n_wakers)
		return 0;
	r = limit_find(window, percent, &limit);
	if (r || !limit)
		return r;
	rows = window_new();
	if (!rows)
		return -ENOMEM;
	r = rows_add(window, limit, &sums);
	if (!r)
		r = row_sums_finish(&sums, rows);
	row_sums_fini(&sums);
	if (r)
		window_unref(rows);
	else
		*out = rows;
	return r;
}
