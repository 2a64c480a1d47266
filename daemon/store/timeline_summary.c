/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/timeline_internal.h"

/*
 * True if the list has all windows of the summary, beginning with entries[i]. The list may lack the
 * first or the last of them, which are outside of the range, or have some of them from memory.
 */
static bool is_whole(const struct timeline_list *list, size_t i, const struct store_entry *summary)
{
	const struct store_entry *first = &list->entries[i], *last;
	size_t k;

	if (summary->summarized > list->n - i)
		return false;
	last = &first[summary->summarized - 1];
	for (k = 0; k < summary->summarized; k++)
		if (!first[k].id || first[k].run != summary->run ||
		    first[k].session != summary->session)
			return false;
	return first->id == summary->id && last->id == summary->last_id &&
	       first->start_ns == summary->start_ns && last->end_ns == summary->end_ns;
}

/*
 * Finds the summary of the windows that begin with entries[i]. summaries[n] and the entries of
 * windows on disk are sorted by id; `at` is the index of the summary to begin with, and is moved
 * on. Returns NULL if there is none.
 */
static const struct store_entry *summary_of(const struct timeline_list *list, size_t i,
					    const struct store_entry *summaries, size_t n,
					    size_t *at)
{
	int64_t id = list->entries[i].id;

	while (*at < n && id && summaries[*at].id < id)
		++*at;
	if (*at == n || !id || summaries[*at].id != id || !is_whole(list, i, &summaries[*at]))
		return NULL;
	return &summaries[*at];
}

static void summaries_place(struct timeline *timeline, const struct store_entry *summaries,
			    size_t n, struct timeline_summaries *out)
{
	struct timeline_list *list = &timeline->range;
	const struct store_entry *summary;
	size_t kept = 0, i = 0, at = 0;

	while (i < list->n) {
		summary = summary_of(list, i, summaries, n, &at);
		if (!summary) {
			list->windows[kept] = list->windows[i];
			list->entries[kept++] = list->entries[i++];
			continue;
		}
		memcpy(timeline->summarized + timeline->n_summarized, list->entries + i,
		       summary->summarized * sizeof(*summary));
		timeline->n_summarized += summary->summarized;
		i += summary->summarized;
		list->n_stored -= summary->summarized - 1;
		list->windows[kept] = NULL;
		list->entries[kept++] = *summary;
		out->n++;
		out->lacks_ns += summary->lacks_ns;
	}
	list->n = kept;
	out->windows = timeline->n_summarized;
}

int timeline_summarize(struct timeline *timeline, struct timeline_summaries *out)
{
	_cleanup_(freep) struct store_entry *summaries = NULL;
	struct timeline_list *list = &timeline->range;
	int64_t since = INT64_MAX, until = INT64_MIN;
	size_t n = 0, i;
	int r;

	*out = (struct timeline_summaries){};
	if (!timeline->session.probe || !list->n_stored)
		return 0;
	for (i = 0; i < list->n; i++) {
		int64_t start = store_entry_start(&list->entries[i]);

		since = start < since ? start : since;
		until = start > until ? start : until;
	}
	/* Without summaries, the answer is the same: an error of the database is none here. */
	r = store_reader_summaries(timeline->source.reader, timeline->session.probe, since - 1,
				   until + 1, &summaries, &n);
	if (r || !n)
		return r == -ENOMEM ? r : 0;
	timeline->summarized = calloc(list->n, sizeof(*timeline->summarized));
	if (!timeline->summarized)
		return -ENOMEM;
	summaries_place(timeline, summaries, n, out);
	return 0;
}

bool timeline_has_bad_summary(const struct timeline *timeline)
{
	return timeline->has_bad_summary;
}

int timeline_windows(const struct timeline *timeline, size_t first, size_t end,
		     const struct store_entry ***out, size_t *n_out)
{
	const struct store_entry *entries = timeline->range.entries, **windows;
	size_t n = 0, at = 0, i, k;

	windows = calloc(end - first + timeline->n_summarized + 1, sizeof(*windows));
	if (!windows)
		return -ENOMEM;
	for (i = 0; i < end; i++) {
		for (k = 0; k < entries[i].summarized && i >= first; k++)
			windows[n++] = &timeline->summarized[at + k];
		at += entries[i].summarized;
		if (i >= first && !entries[i].summarized)
			windows[n++] = &entries[i];
	}
	*out = windows;
	*n_out = n;
	return 0;
}
