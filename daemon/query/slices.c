/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "daemon/query/snapshot_internal.h"

struct slices *slices_free(struct slices *slices)
{
	if (!slices)
		return NULL;
	free(slices->v);
	free(slices);
	return NULL;
}

/* Returns the number of the slice to which window i belongs. */
static int64_t slice_of(const struct timeline_list *list, size_t i, int64_t each_ns)
{
	int64_t start = store_entry_start(&list->entries[i]);
	int64_t end = store_entry_end(&list->entries[i]);

	if (each_ns == WIRE_ABSENT)
		return 0;
	return each_ns == 0 ? (int64_t)i : (start + (end - start) / 2) / each_ns;
}

/*
 * Sets the times of the slices: each begins where the one before it ends, so that a gap between two
 * slices is in the later one.
 */
static void times_set(const struct timeline_list *list, struct slices *slices)
{
	int64_t since = slices->question.range.since;
	struct slice *slice;
	size_t i;

	for (i = 0; i < slices->n; i++) {
		slice = &slices->v[i];
		slice->since_ns = since;
		slice->until_ns = i + 1 < slices->n
					  ? store_entry_end(&list->entries[slice->end - 1])
					  : slices->question.range.until;
		/* The clock was set back between two windows. */
		if (slice->since_ns >= slice->until_ns)
			slice->since_ns = store_entry_start(&list->entries[slice->first]);
		since = slice->until_ns;
	}
}

/*
 * Leaves out a first and a last window of which less than half is in the range, which becomes
 * shorter by that. The windows of two probes end some milliseconds apart: where one answer is to be
 * about the time of another, its range so touches windows that are not part of that time.
 */
static void slice_trim(const struct timeline_list *list, struct query_range *range,
		       struct slice *slice)
{
	const struct store_entry *entry = &list->entries[slice->first];

	if (slice->end - slice->first > 1 &&
	    store_entry_end(entry) - range->since < range->since - store_entry_start(entry)) {
		range->since = store_entry_end(entry);
		slice->first++;
	}
	entry = &list->entries[slice->end - 1];
	if (slice->end - slice->first > 1 &&
	    range->until - store_entry_start(entry) < store_entry_end(entry) - range->until) {
		range->until = store_entry_start(entry);
		slice->end--;
	}
}

int slices_make(const struct timeline_list *list, int64_t each_ns, struct slices *slices)
{
	size_t capacity = 0, i;
	int r;

	for (i = 0; i < list->n; i++) {
		if (i > 0 && slice_of(list, i, each_ns) == slice_of(list, i - 1, each_ns)) {
			slices->v[slices->n - 1].end++;
			continue;
		}
		r = array_reserve(slices->v, capacity, slices->n + 1);
		if (r)
			return r;
		slices->v[slices->n++] = (struct slice){ .first = i, .end = i + 1 };
	}
	if (!slices->n) {
		slices->v = calloc(1, sizeof(*slices->v));
		if (!slices->v)
			return -ENOMEM;
		slices->n = 1;
	}
	if (slices->question.follows_waits && list->n > 0)
		slice_trim(list, &slices->question.range, &slices->v[0]);
	times_set(list, slices);
	return 0;
}
