/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fleet/serve/slices.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/base.h"

/* The times of a window that counts. */
struct window_times {
	int64_t middle, end, length;
};

static int by_middle(const void *x, const void *y)
{
	const struct window_times *a = x, *b = y;

	return (a->middle > b->middle) - (a->middle < b->middle);
}

static int by_length(const void *x, const void *y)
{
	const struct window_times *a = x, *b = y;

	return (a->length > b->length) - (a->length < b->length);
}

/* Returns how many hosts have windows that count. */
static size_t hosts_with_windows(const struct headers *headers)
{
	size_t i, n = 0;

	for (i = 0; i < headers->n_hosts; i++)
		n += headers->hosts[i].last >= 0;
	return n;
}

/* Returns how long slices are; 0: each window is one. The order of the windows changes. */
static int64_t slice_length(const struct headers *headers, struct window_times *windows, size_t n,
			    int64_t each_ns)
{
	int64_t usual;

	if (hosts_with_windows(headers) == 1)
		return each_ns;
	qsort(windows, n, sizeof(*windows), by_length);
	usual = windows[n / 2].length;
	return each_ns > usual ? each_ns : usual;
}

/* Adds a slice that begins with this window. */
static int slice_add(struct fleet_slices *slices, size_t *capacity, int64_t middle)
{
	int r = slices->n < SLICES_MAX ? array_reserve(slices->v, *capacity, slices->n + 1)
				       : -E2BIG;

	if (r)
		return r;
	if (slices->n)
		slices->v[slices->n - 1].middles.until_ns = middle;
	slices->v[slices->n++] =
		(struct fleet_slice){ .middles = { slices->n ? middle : 0, INT64_MAX } };
	return 0;
}

/* Adds the slices in the order of time, with the ends of their ranges. */
static int slices_add(const struct window_times *windows, size_t n, int64_t length,
		      struct fleet_slices *slices)
{
	size_t i, capacity = 0;
	int64_t number = -1;
	int r;

	for (i = 0; i < n; i++) {
		if (!length || windows[i].middle / length != number) {
			r = slice_add(slices, &capacity, windows[i].middle);
			if (r)
				return r;
		}
		number = length ? windows[i].middle / length : 0;
		slices->v[slices->n - 1].range.until_ns =
			length ? (number + 1) * length : windows[i].end;
	}
	return 0;
}

/* Sets where the ranges begin, so that a gap between two slices is in the later one. */
static void ranges_set(const struct header_question *range, struct fleet_slices *slices)
{
	int64_t since = range->since;
	size_t i;

	for (i = 0; i < slices->n; i++) {
		struct wire_span *span = &slices->v[i].range;

		if (i + 1 == slices->n)
			span->until_ns = range->until;
		/* Windows of one host overlap after a step of its clock. */
		if (span->until_ns <= since)
			span->until_ns = since + 1;
		span->since_ns = since;
		since = span->until_ns;
	}
	for (i = 0; i < slices->n / 2; i++) {
		struct fleet_slice slice = slices->v[i];

		slices->v[i] = slices->v[slices->n - 1 - i];
		slices->v[slices->n - 1 - i] = slice;
	}
}

int fleet_slices_make(const struct headers *headers, const struct header_question *range,
		      int64_t each_ns, struct fleet_slices *out)
{
	_cleanup_(freep) struct window_times *windows =
		calloc(headers->n_windows + 1, sizeof(*windows));
	int64_t length;
	size_t i, n = 0;
	int r;

	*out = (struct fleet_slices){ .table = range->table };
	if (!windows)
		return -ENOMEM;
	for (i = 0; i < headers->n; i++) {
		const struct header *header = &headers->v[i];

		if (header_counts(header))
			windows[n++] = (struct window_times){ header_middle(header), header->end,
							      header->end - header->start };
	}
	if (!n)
		return 0;
	length = slice_length(headers, windows, n, each_ns);
	qsort(windows, n, sizeof(*windows), by_middle);
	r = slices_add(windows, n, length, out);
	if (r)
		return r;
	ranges_set(range, out);
	return 0;
}
