/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/base/log.h"
#include "daemon/store/history.h"
#include "daemon/store/timeline_internal.h"

/*
 * A wait that begins in the range may end later. Its end is searched for in windows on disk that
 * begin at most this long after the range.
 */
#define LATER_NS (120 * NS_PER_S)

static void list_fini(struct timeline_list *list)
{
	size_t i;

	/* There are entries without the array when there was no memory for it. */
	for (i = 0; list->windows && i < list->n; i++)
		window_unref(list->windows[i]);
	free(list->windows);
	free(list->entries);
	*list = (struct timeline_list){};
}

struct timeline *timeline_close(struct timeline *timeline)
{
	if (!timeline)
		return NULL;
	if (timeline->n_bad > 1)
		log_warning("could not read %zu windows of the store for one answer",
			    timeline->n_bad);
	store_prefetch_free(timeline->prefetch);
	list_fini(&timeline->memory);
	list_fini(&timeline->range);
	list_fini(&timeline->later);
	free(timeline->summarized);
	free(timeline);
	return NULL;
}

/*
 * Lists the session's windows in memory. Keeps references only to windows that ended after
 * since_ns; of earlier windows, keeps only the description (struct store_entry).
 */
static int memory_read(struct timeline *timeline, int64_t since_ns)
{
	struct timeline_list *memory = &timeline->memory;
	struct history_list list = {};
	size_t i;

	if (!timeline->source.history)
		return 0;
	if (history_range(timeline->source.history, timeline->session.id, INT64_MIN, INT64_MAX,
			  &list))
		return -ENOMEM;
	memory->entries = calloc(list.n + 1, sizeof(*memory->entries));
	if (!memory->entries) {
		history_list_fini(&list);
		return -ENOMEM;
	}
	for (i = 0; i < list.n; i++) {
		memory->entries[i] = store_entry_of(list.windows[i], timeline->source.run);
		if (store_entry_end(&memory->entries[i]) <= since_ns)
			list.windows[i] = window_unref(list.windows[i]);
	}
	memory->windows = list.windows;
	memory->n = list.n;
	return 0;
}

/* True if the session is of this run of stackd. Only such a session can have windows in memory. */
static bool is_of_this_run(const struct timeline *timeline)
{
	return !timeline->session.run;
}

/*
 * True if the session can have windows on disk. The windows of a client's session are found only if
 * the run of stackd that recorded it is known.
 */
static bool has_disk(const struct timeline *timeline)
{
	return timeline->source.reader && (timeline->session.probe || timeline->select.run);
}

/* Removes the oldest entry if there are more than STORE_LIST_MAX. Returns true if it did. */
static bool oldest_drop(struct store_entry *entries, size_t *n)
{
	size_t oldest = 0, i;

	if (*n <= STORE_LIST_MAX)
		return false;
	for (i = 1; i < *n; i++)
		if (store_entry_start(&entries[i]) < store_entry_start(&entries[oldest]))
			oldest = i;
	memmove(entries + oldest, entries + oldest + 1, (*n - oldest - 1) * sizeof(*entries));
	--*n;
	return true;
}

static int by_start(const void *a, const void *b)
{
	const struct store_entry *x = a, *y = b;

	return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

/*
 * Adds the session's windows in memory that overlap [since_ns, until_ns) to the entries of the
 * list, except for those with is_replaced. Sorts the entries whose windows are also in memory. The
 * entries before these are of earlier times.
 */
static void memory_append(const struct timeline *timeline, int64_t since_ns, int64_t until_ns,
			  const bool *is_replaced, struct timeline_list *list)
{
	const struct timeline_list *memory = &timeline->memory;
	size_t first = list->n_stored, i;

	list->n = first;
	for (i = 0; i < memory->n && is_of_this_run(timeline); i++) {
		if (store_entry_end(&memory->entries[i]) <= since_ns ||
		    store_entry_start(&memory->entries[i]) >= until_ns || is_replaced[i])
			continue;
		list->entries[list->n++] = memory->entries[i];
	}
	if (list->n == list->n_stored)
		return;
	while (first && list->entries[first - 1].run == timeline->source.run &&
	       list->entries[first - 1].start_ns > list->entries[list->n_stored].start_ns)
		first--;
	qsort(list->entries + first, list->n - first, sizeof(*list->entries), by_start);
}

/*
 * Sets list->windows to references to the windows in memory that the list has. Returns 0 or
 * -ENOMEM.
 */
static int windows_ref(const struct timeline *timeline, struct timeline_list *list)
{
	const struct timeline_list *memory = &timeline->memory;
	size_t i, k = 0;

	list->windows = calloc(list->n + 1, sizeof(*list->windows));
	if (!list->windows)
		return -ENOMEM;
	for (i = 0; i < list->n; i++) {
		if (list->entries[i].id)
			continue;
		while (memory->entries[k].seq != list->entries[i].seq)
			k++;
		list->windows[i] = window_ref(memory->windows[k]);
	}
	return 0;
}

/* Makes the list of its windows on disk, which `list` has already, and of the windows in memory. */
static int list_finish(struct timeline *timeline, int64_t since_ns, int64_t until_ns,
		       struct timeline_list *list)
{
	_cleanup_(freep) bool *is_replaced = calloc(timeline->memory.n + 1, sizeof(*is_replaced));
	size_t capacity = list->n_stored + timeline->memory.n + 1;
	struct store_entry *entries = reallocarray(list->entries, capacity, sizeof(*entries));

	if (entries)
		list->entries = entries;
	if (!entries || !is_replaced)
		return -ENOMEM;
	list->n_stored = timeline_choose(timeline, list->entries, list->n_stored, is_replaced);
	memory_append(timeline, since_ns, until_ns, is_replaced, list);
	return windows_ref(timeline, list);
}

static int list_read(struct timeline *timeline, int64_t since_ns, int64_t until_ns,
		     int64_t disk_until_ns, struct timeline_list *list, bool *is_truncated_out)
{
	int r = 0;

	list->timeline = timeline;
	if (has_disk(timeline))
		r = store_reader_list(timeline->source.reader, &timeline->select, since_ns,
				      disk_until_ns, STORE_LIST_MAX + 1, &list->entries,
				      &list->n_stored);
	if (r == -ENOMEM)
		return r;
	timeline->disk_error = r;
	*is_truncated_out = oldest_drop(list->entries, &list->n_stored);
	return list_finish(timeline, since_ns, until_ns, list);
}

int timeline_open(const struct timeline_source *source, const struct timeline_session *session,
		  int64_t since_ns, int64_t until_ns, struct timeline **out)
{
	struct timeline *timeline = calloc(1, sizeof(*timeline));
	int r;

	if (!timeline)
		return -ENOMEM;
	timeline->source = *source;
	timeline->session = *session;
	timeline->select.run = session->run ? session->run : source->run;
	timeline->select.probe = session->probe;
	timeline->select.session = session->probe ? 0 : session->id;
	r = memory_read(timeline, since_ns);
	if (!r)
		r = list_read(timeline, since_ns, until_ns, until_ns, &timeline->range,
			      &timeline->is_truncated);
	if (r) {
		timeline_close(timeline);
		return r;
	}
	*out = timeline;
	return 0;
}

int timeline_read_later(struct timeline *timeline, int64_t until_ns)
{
	bool is_truncated;

	return list_read(timeline, until_ns, INT64_MAX, until_ns + LATER_NS, &timeline->later,
			 &is_truncated);
}

const struct timeline_list *timeline_range(const struct timeline *timeline)
{
	return &timeline->range;
}

const struct timeline_list *timeline_later(const struct timeline *timeline)
{
	return &timeline->later;
}

bool timeline_is_truncated(const struct timeline *timeline)
{
	return timeline->is_truncated;
}

/* Returns the list's first entry of a window on disk; NULL if it has none. */
static const struct store_entry *stored_first(const struct timeline_list *list)
{
	size_t i = 0;

	if (!list->n_stored)
		return NULL;
	while (!list->entries[i].id)
		i++;
	return &list->entries[i];
}

/*
 * If `entry` is the last of a list's windows on disk, starts a thread that loads all windows of
 * this list: a caller that begins with the last window will ask for all. If no thread can be
 * started, stored_load() loads the windows one by one.
 */
static void prefetch_start(struct timeline *timeline, const struct store_entry *entry)
{
	struct timeline_list *lists[] = { &timeline->range, &timeline->later };
	size_t i, n;

	for (i = 0; i < ARRAY_SIZE(lists) && !timeline->prefetch; i++) {
		if (lists[i]->n_stored < STORE_PREFETCH_MIN)
			continue;
		n = lists[i]->n;
		while (!lists[i]->entries[n - 1].id)
			n--;
		if (entry == &lists[i]->entries[n - 1] &&
		    store_prefetch_start(timeline->source.reader, lists[i]->entries, n,
					 &timeline->prefetch))
			timeline->prefetch = NULL;
	}
}

/*
 * Returns a window that is on disk. Takes it from the prefetch thread if there is one for this
 * list; otherwise loads it here. Ends the thread after the first window of the list, for which
 * callers ask last.
 */
static int stored_load(struct timeline *timeline, const struct store_entry *entry,
		       struct window **out)
{
	int r = -ESPIPE;

	if (!timeline->prefetch)
		prefetch_start(timeline, entry);
	if (timeline->prefetch)
		r = store_prefetch_get(timeline->prefetch, entry, out);
	if (r == -ESPIPE || entry == stored_first(&timeline->range) ||
	    entry == stored_first(&timeline->later))
		timeline->prefetch = store_prefetch_free(timeline->prefetch);
	if (r == -ESPIPE)
		r = store_reader_load(timeline->source.reader, entry, out);
	return r;
}

struct window *timeline_window(const struct timeline_list *list, size_t i)
{
	struct window *window = NULL;
	int r;

	if (list->windows[i])
		return window_ref(list->windows[i]);
	if (list->entries[i].bad)
		return NULL;
	r = stored_load(list->timeline, &list->entries[i], &window);
	if (!r)
		return window;
	/*
	 * Log one line for each query, not for each window: a long range may have hundreds of
	 * windows that cannot be read.
	 */
	if (list->entries[i].summarized)
		list->timeline->has_bad_summary = true;
	if (!list->timeline->n_bad++)
		log_err(r, "cannot read window %lld of the store", (long long)list->entries[i].id);
	list->entries[i].bad = r;
	return NULL;
}

void timeline_pause(struct timeline *timeline)
{
	store_prefetch_pause(timeline->prefetch);
}

bool timeline_before(struct timeline *timeline, int64_t at_ns, struct store_entry *out)
{
	_cleanup_(freep) struct store_entry *stored = NULL;
	const struct timeline_list *memory = &timeline->memory;
	const struct store_entry *best = NULL;
	size_t i, n = 0;

	for (i = 0; i < memory->n && is_of_this_run(timeline); i++) {
		const struct store_entry *entry = &memory->entries[i];

		if (store_entry_end(entry) > 0 && store_entry_start(entry) < at_ns &&
		    (!best || store_entry_start(entry) > store_entry_start(best)))
			best = entry;
	}
	if (has_disk(timeline) && store_reader_list(timeline->source.reader, &timeline->select, 0,
						    at_ns, 1, &stored, &n) == -ENOMEM)
		return false;
	if (n && (!best || store_entry_start(stored) > store_entry_start(best)))
		best = stored;
	if (best)
		*out = *best;
	return best;
}

int64_t timeline_first_start(const struct timeline *timeline)
{
	int64_t start = store_entry_start(timeline->range.entries);

	if (!timeline->is_truncated)
		return start;
	return timeline->session.probe
		       ? store_reader_first(timeline->source.reader, timeline->session.probe, start)
		       : timeline->session.since_ns;
}

bool timeline_has_memory(const struct timeline *timeline)
{
	return is_of_this_run(timeline) && timeline->memory.n > 0;
}

int64_t timeline_memory_evicted(const struct timeline *timeline)
{
	struct history_stats stats = {};

	if (timeline->source.history)
		history_stats(timeline->source.history, &stats);
	return stats.evicted_real_ns;
}
