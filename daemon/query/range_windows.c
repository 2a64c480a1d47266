/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/range_windows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base.h"
#include "daemon/base/log.h"
#include "daemon/session/recorder.h"
#include "daemon/store/prefetch.h"
#include "daemon/store/store.h"

/* How far behind a range the ends of its waits are looked for on disk. */
#define LATER_NS (120 * NS_PER_S)

/* What is wrong with the store is in the status; here it only means that there is less. */
struct store_reader *query_reader(struct recorder *recorder, struct answer *answer)
{
	if (!answer->reader && recorder->store) {
		answer->store = recorder->store;
		if (store_reader_begin(recorder->store, &answer->reader))
			answer->reader = NULL;
	}
	return answer->reader;
}

uint64_t query_run(struct recorder *recorder)
{
	struct store_stats stats;

	if (!recorder->store)
		return 0;
	store_stats(recorder->store, &stats);
	return stats.run;
}

/* The last of a long listing is asked for: the others will be. */
static void prefetch_begin(struct answer *answer, const struct store_entry *entry)
{
	const struct history_list *lists[] = { &answer->list, &answer->later };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(lists) && !answer->prefetch; i++) {
		if (lists[i]->n_stored < STORE_PREFETCH_MIN ||
		    entry != &lists[i]->stored[lists[i]->n_stored - 1])
			continue;
		/* Without one they are loaded all the same, one by one. */
		if (store_prefetch_start(answer->reader, lists[i]->stored, lists[i]->n_stored,
					 &answer->prefetch))
			answer->prefetch = NULL;
	}
}

/* From the thread that loads ahead; when it is of another listing, or at its end, it is over. */
static int window_get(struct answer *answer, const struct store_entry *entry, struct window **out)
{
	bool is_partial;
	int r = -ESPIPE;

	if (!answer->prefetch)
		prefetch_begin(answer, entry);
	if (answer->prefetch)
		r = store_prefetch_get(answer->prefetch, entry, out);
	if (r == -ESPIPE || entry == answer->list.stored || entry == answer->later.stored)
		answer->prefetch = store_prefetch_free(answer->prefetch);
	if (r == -ESPIPE)
		r = store_reader_load(answer->reader, entry, out, &is_partial);
	return r;
}

/* Each is tried once: a damaged one is a gap. */
static struct window *window_load(void *userdata, struct store_entry *entry)
{
	struct answer *answer = userdata;
	struct window *window;
	int r;

	if (entry->is_bad)
		return NULL;
	r = window_get(answer, entry, &window);
	if (!r)
		return window;
	entry->is_bad = true;
	log_err(r, "window %lld of the store", (long long)entry->id);
	return NULL;
}

/* Those that memory has as well are left to it. */
static size_t entries_keep(struct store_entry *entries, size_t n, uint64_t run, uint64_t memory_seq)
{
	size_t kept = 0, i;

	for (i = 0; i < n; i++) {
		if (run && entries[i].run == run && memory_seq &&
		    entries[i].seq + entries[i].parts > memory_seq)
			continue;
		entries[kept++] = entries[i];
	}
	return kept;
}

/* Of one more than a list takes the oldest goes. Returns whether there was one. */
static bool entries_cut(struct store_entry *entries, size_t *n)
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

/* Puts the windows on disk before those in memory. */
static int list_join(struct answer *answer, struct history_list *list, struct store_entry *entries,
		     size_t n)
{
	struct window **windows = calloc(list->n + n + 1, sizeof(*windows));
	size_t i;

	if (!windows)
		return -ENOMEM;
	for (i = 0; i < list->n; i++)
		windows[n + i] = list->windows[i];
	free(list->windows);
	list->windows = windows;
	list->n += n;
	list->stored = entries;
	list->n_stored = n;
	list->load = window_load;
	list->load_data = answer;
	return 0;
}

/* Whose windows on disk; false where none can be. */
static bool select_make(struct recorder *recorder, const struct session_info *info,
			struct store_select *out)
{
	*out = (struct store_select){ .run = info->run ? info->run : query_run(recorder) };
	if (info->is_always)
		out->probe = probe_kind_name(info->kind);
	else
		out->session = info->id;
	return info->is_always || out->run;
}

/* Those in memory are all of this run. */
static int memory_range(struct recorder *recorder, const struct session_info *info,
			int64_t since_ns, int64_t until_ns, struct history_list *out)
{
	if (!info->run)
		return history_range(recorder->history, info->id, since_ns, until_ns, out);
	*out = (struct history_list){ .windows = calloc(1, sizeof(struct window *)) };
	return out->windows ? 0 : -ENOMEM;
}

static int range_read(struct recorder *recorder, struct answer *answer, int64_t since_ns,
		      int64_t until_ns, int64_t disk_until_ns, struct history_list *out)
{
	struct history_list list;
	struct store_entry *entries = NULL;
	size_t n = 0;
	const struct session_info *info = session_info(answer->session);
	struct store_select select;
	int r = memory_range(recorder, info, since_ns, until_ns, &list);

	if (r)
		return r;
	if (select_make(recorder, info, &select) && query_reader(recorder, answer))
		r = store_reader_list(answer->reader, &select, since_ns, disk_until_ns,
				      STORE_LIST_MAX + 1, &entries, &n);
	list.is_cut = entries_cut(entries, &n);
	if (r == 0 && n)
		n = entries_keep(entries, n, query_run(recorder), list.memory_seq);
	if (r == 0 && n)
		r = list_join(answer, &list, entries, n);
	if (r || !n)
		free(entries);
	if (r == -ENOMEM) {
		history_list_fini(&list);
		return r;
	}
	*out = list;
	return 0;
}

int query_history_range(struct recorder *recorder, struct answer *answer, int64_t since_ns,
			int64_t until_ns, struct history_list *out)
{
	return range_read(recorder, answer, since_ns, until_ns, until_ns, out);
}

int query_history_later(struct recorder *recorder, struct answer *answer, int64_t until_ns,
			struct history_list *out)
{
	return range_read(recorder, answer, until_ns, INT64_MAX, until_ns + LATER_NS, out);
}

/* Of two, the one that began later by the clock of its time. */
static void later_take(struct store_entry *best, bool *is_found, const struct store_entry *entry)
{
	if (!*is_found || store_entry_start(entry) > store_entry_start(best))
		*best = *entry;
	*is_found = true;
}

int query_history_before(struct recorder *recorder, struct answer *answer, int64_t at_ns,
			 struct store_entry *out)
{
	const struct session_info *info = session_info(answer->session);
	_cleanup_(freep) struct store_entry *stored = NULL;
	struct store_entry entry, best = {};
	struct history_list list;
	struct store_select select;
	bool is_found = false;
	size_t i, n = 0;
	int r = memory_range(recorder, info, 0, at_ns, &list);

	if (r)
		return r;
	for (i = 0; i < list.n; i++) {
		entry = history_list_entry(&list, i);
		entry.run = query_run(recorder);
		later_take(&best, &is_found, &entry);
	}
	history_list_fini(&list);
	if (select_make(recorder, info, &select) && query_reader(recorder, answer))
		r = store_reader_list(answer->reader, &select, 0, at_ns, 1, &stored, &n);
	if (r == -ENOMEM)
		return r;
	for (i = 0; i < n; i++)
		later_take(&best, &is_found, &stored[i]);
	if (is_found)
		*out = best;
	return is_found ? 0 : -ENOENT;
}

void query_store_stats(struct recorder *recorder, struct answer *answer, struct store_stats *out)
{
	struct stat st;

	store_stats(recorder->store, out);
	if (!recorder->is_serve_only || !query_reader(recorder, answer))
		return;
	store_reader_count(answer->reader, out);
	if (stat(store_path(recorder->store), &st) == 0)
		out->bytes = (uint64_t)st.st_size;
}
