/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/downsample.h"
#include "daemon/store/timeline_internal.h"

/*
 * Chooses between a window on disk and the windows in memory that have the same time. A window on
 * disk may be joined or merged from several, but no window in memory is only partly in it. Both
 * have the same rows unless one of them was folded after the cut: the history folds windows when
 * memory is short, the store when disk space is.
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

/* True if the windows in memory have all of the time of the window on disk. */
static bool is_whole(const struct timeline *timeline, const struct store_entry *entry,
		     struct span span)
{
	const struct store_entry *entries = timeline->memory.entries;

	return span.first < span.end && entries[span.first].start_ns == entry->start_ns &&
	       entries[span.end - 1].end_ns == entry->end_ns;
}

/* True if a window in memory was folded to fewer rows than the window on disk. */
static bool is_richer(const struct timeline *timeline, const struct store_entry *entry,
		      struct span span)
{
	uint32_t in_memory = 0, on_disk, limit;
	size_t i;

	for (i = span.first; i < span.end; i++) {
		limit = timeline->memory.entries[i].row_limit;
		if (limit && (!in_memory || limit < in_memory))
			in_memory = limit;
	}
	if (!in_memory || store_reader_row_limit(timeline->source.reader, entry->id, &on_disk))
		return false;
	return !on_disk || on_disk > in_memory;
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
		    entries[i].start_ns >= timeline->memory.entries[0].start_ns &&
		    !is_richer(timeline, &entries[i], span))
			continue;
		for (k = span.first; k < span.end; k++)
			is_replaced[k] = true;
		entries[kept++] = entries[i];
	}
	return kept;
}

struct window *timeline_remake(const struct timeline *timeline, const struct store_entry *entry)
{
	const struct timeline_list *memory = &timeline->memory;
	struct span span = memory_of(timeline, entry);
	struct window *window = NULL;
	size_t i;

	if (!is_whole(timeline, entry, span))
		return NULL;
	for (i = span.first; i < span.end; i++)
		if (!memory->windows[i])
			return NULL;
	if (span.end - span.first == 1)
		return window_ref(memory->windows[span.first]);
	return store_downsample(&memory->windows[span.first], span.end - span.first, &window)
		       ? NULL
		       : window;
}
