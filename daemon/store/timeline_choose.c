/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/timeline_internal.h"

/*
 * Chooses between a window on disk and the windows in memory that have the same time. A window on
 * disk may be joined or merged from several, but no window in memory is only partly in it. Those in
 * memory are preferred: they have all rows, while the store folds windows when disk space is short.
 */

/* The windows [first, end) of a list. */
struct span {
	size_t first;
	size_t end;
};

/* Returns the index of the first of the windows in memory that begins at start_ns or later. */
static size_t memory_from(const struct timeline_list *memory, int64_t start_ns)
{
	size_t low = 0, high = memory->n, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (memory->entries[middle].start_ns < start_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Returns which windows in memory have the time of a window on disk, or a part of this time. */
static struct span memory_of(const struct timeline *timeline, const struct store_entry *entry)
{
	const struct timeline_list *memory = &timeline->memory;

	if (!timeline->source.run || entry->run != timeline->source.run || timeline->session.run)
		return (struct span){};
	return (struct span){
		.first = memory_from(memory, entry->start_ns),
		.end = memory_from(memory, entry->end_ns),
	};
}

size_t timeline_choose(struct timeline *timeline, struct store_entry *entries, size_t n,
		       bool *is_replaced)
{
	size_t kept = 0, i, k;
	struct span span;

	for (i = 0; i < n; i++) {
		span = memory_of(timeline, &entries[i]);
		/*
		 * If only the later part of the window is still in memory, the window on disk is
		 * listed.
		 */
		if (span.first < span.end &&
		    entries[i].start_ns >= timeline->memory.entries[0].start_ns)
			continue;
		for (k = span.first; k < span.end; k++)
			is_replaced[k] = true;
		entries[kept++] = entries[i];
	}
	return kept;
}
