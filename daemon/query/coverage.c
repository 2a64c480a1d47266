/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/query/range_windows.h"
#include "daemon/session/recorder.h"
#include "daemon/store/store.h"

/* Each window has its own offset: a hair between two is the clock's drift. */
#define DRIFT_NS NS_PER_MS

enum { REASON = 160 };

struct coverage {
	struct recorder *recorder;
	struct answer *answer;
	struct store_entry *entries; /* by start */
	size_t n;
	struct wire_gap *gaps;
	size_t n_gaps;
	uint64_t run; /* ours */
	int error;
};

static int by_start(const void *a, const void *b)
{
	int64_t x = store_entry_start(a), y = store_entry_start(b);

	return x < y ? -1 : x > y;
}

static int entries_make(struct coverage *coverage)
{
	const struct history_list *list = &coverage->answer->list;
	size_t i;

	coverage->entries = calloc(list->n + 1, sizeof(*coverage->entries));
	if (!coverage->entries)
		return -ENOMEM;
	for (i = 0; i < list->n; i++) {
		coverage->entries[i] = history_list_entry(list, i);
		if (!coverage->entries[i].run)
			coverage->entries[i].run = coverage->run;
	}
	coverage->n = list->n;
	qsort(coverage->entries, coverage->n, sizeof(*coverage->entries), by_start);
	return 0;
}

/* Whether windows of ours between two of them are there, under what the clock showed meanwhile. */
static bool is_elsewhere(struct coverage *coverage, const struct store_entry *before,
			 const struct store_entry *after)
{
	struct history_list list;
	bool found = false;
	size_t i;

	if (before->run != coverage->run ||
	    history_range(coverage->recorder->history, before->session, INT64_MIN, INT64_MAX,
			  &list))
		return false;
	for (i = 0; i < list.n && !found; i++)
		found = list.windows[i]->start_ns > before->start_ns &&
			list.windows[i]->start_ns < after->start_ns;
	history_list_fini(&list);
	return found;
}

/* Between two windows that one run of stackd cut. */
static const char *reason_within(struct coverage *coverage, const struct store_entry *before,
				 const struct store_entry *after)
{
	int64_t stepped = after->real_offset_ns - before->real_offset_ns;
	int64_t slept = after->boot_offset_ns - before->boot_offset_ns;

	if (after->start_ns < before->start_ns || is_elsewhere(coverage, before, after))
		return "the clock was set, and set again";
	if (after->start_ns - before->end_ns > DRIFT_NS || stepped <= DRIFT_NS)
		return "a window could not be kept";
	return slept > stepped / 2 ? "the host was suspended" : "the clock was set forward";
}

/* Of a run that has ended, and what came next, if anything did. */
static void reason_ended(const struct store_run *run, const struct store_run *next, char *reason)
{
	bool is_other_boot = next && strcmp(run->boot_id, next->boot_id) != 0;

	if (run->is_clean)
		snprintf(reason, REASON, "stackd was stopped%s",
			 is_other_boot ? ", and the host restarted" : "");
	else if (is_other_boot)
		snprintf(reason, REASON, "stackd was not stopped: the host went down");
	else
		snprintf(reason, REASON, "stackd was killed");
}

static bool reason_of_runs(struct coverage *coverage, const struct store_entry *before,
			   const struct store_entry *after, char *reason)
{
	struct store_reader *reader = coverage->answer->reader;
	struct store_run run, next = {};
	bool has_next;

	if (!reader || !before || store_reader_run(reader, before->run, &run))
		return false;
	has_next = after && store_reader_run(reader, after->run, &next) == 0;
	if (!has_next && !session_is_on(coverage->answer->session)) {
		/* Nobody records now: whoever did has ended. */
		snprintf(next.boot_id, sizeof(next.boot_id), "%s", coverage->recorder->boot_id);
		has_next = true;
	}
	if (!has_next && before->run == coverage->run)
		return false;
	reason_ended(&run, has_next ? &next : NULL, reason);
	return true;
}

static void reason_first(struct coverage *coverage, int64_t start, char *reason)
{
	const struct session_info *info = session_info(coverage->answer->session);
	struct history_stats stats;
	int64_t evicted = 0;

	if (coverage->answer->reader)
		evicted = store_reader_evicted(coverage->answer->reader, reason, REASON);
	if (start < evicted)
		return;
	history_stats(coverage->recorder->history, &stats);
	if (!coverage->answer->reader && stats.evicted_real_ns > start)
		snprintf(reason, REASON, "%s",
			 stats.evicted_by_bytes ? "dropped for [window] max_memory"
						: "older than [window] keep");
	else if (!info->is_always && start < info->since_real_ns)
		snprintf(reason, REASON, "the session had not begun");
	else
		snprintf(reason, REASON, "stackd was not running");
}

static void reason_find(struct coverage *coverage, const struct store_entry *before,
			const struct store_entry *after, int64_t start, char *reason)
{
	if (before && after && before->run == after->run)
		snprintf(reason, REASON, "%s", reason_within(coverage, before, after));
	else if (before && after && before->run > after->run)
		snprintf(reason, REASON, "the clock was set back");
	else if (reason_of_runs(coverage, before, after, reason))
		return;
	else if (!before)
		reason_first(coverage, start, reason);
	else if (!after && session_is_on(coverage->answer->session))
		snprintf(reason, REASON, "stackd is too busy to end the window");
	else
		snprintf(reason, REASON, "not recorded");
}

static void gap_add(struct coverage *coverage, int64_t start, int64_t end, const char *reason)
{
	char *copy;

	if (end <= start + DRIFT_NS || coverage->n_gaps == QUERY_GAPS_MAX)
		return;
	copy = arena_strdup(coverage->answer->arena, reason);
	if (!copy)
		coverage->error = -ENOMEM;
	coverage->gaps[coverage->n_gaps++] =
		(struct wire_gap){ .start = start, .end = end, .reason = copy };
}

/* The run that cut the window before has ended since. */
static bool has_ended(const struct coverage *coverage, const struct store_entry *before,
		      const struct store_entry *after)
{
	return before && before->run != (after ? after->run : coverage->run);
}

static void gap_between(struct coverage *coverage, const struct store_entry *before,
			const struct store_entry *after, int64_t start, int64_t end)
{
	struct store_reader *reader = coverage->answer->reader;
	char reason[REASON] = "";
	int64_t known_end;

	if (end <= start + DRIFT_NS)
		return;
	if (reader && store_reader_gap(reader, start, end, reason, REASON, &known_end)) {
		/* What a run wrote down tells nothing of the time after its own end. */
		if (!has_ended(coverage, before, after) || known_end >= end)
			known_end = end;
		gap_add(coverage, start, known_end, reason);
		if (end <= known_end + DRIFT_NS)
			return;
		start = known_end;
	}
	reason_find(coverage, before, after, start, reason);
	gap_add(coverage, start, end, reason);
}

/* Before the first window: there may be more than a list takes. */
static void gap_first(struct coverage *coverage, const struct store_entry *before,
		      const struct store_entry *first, int64_t since)
{
	if (coverage->answer->list.is_cut)
		gap_add(coverage, since, store_entry_start(first),
			"more windows than one answer reads: ask for a shorter range");
	else
		gap_between(coverage, before, first, since, store_entry_start(first));
}

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
	return value < low ? low : value > high ? high : value;
}

/* Walks the windows over the range; what is between them is a gap, and so is a damaged one. */
static void coverage_walk(struct coverage *coverage, int64_t since, int64_t until,
			  struct query_coverage *out)
{
	const struct store_entry *before = NULL;
	struct store_entry earlier;
	int64_t at = since;
	size_t i;

	/* What a range begins with is told by what was before it. */
	if ((!coverage->n || store_entry_start(coverage->entries) > since + DRIFT_NS) &&
	    query_history_before(coverage->recorder, coverage->answer, since, &earlier) == 0)
		before = &earlier;
	for (i = 0; i < coverage->n; i++) {
		const struct store_entry *entry = &coverage->entries[i];
		int64_t start = store_entry_start(entry), end = store_entry_end(entry);

		if (i == 0)
			gap_first(coverage, before, entry, at);
		else
			gap_between(coverage, before, entry, at, start);
		before = entry;
		if (entry->is_bad) {
			out->bad++;
			gap_add(coverage, clamp(start, at, until), clamp(end, at, until),
				"unreadable on disk");
			at = end > at ? end : at;
			continue;
		}
		if (!out->windows++)
			out->used_start_ns = start;
		out->merged += entry->parts > 1;
		if (end > at)
			out->covered_ns += clamp(end, at, until) - clamp(start, at, until);
		at = end > at ? end : at;
		out->used_end_ns = end > out->used_end_ns ? end : out->used_end_ns;
	}
	gap_between(coverage, before, NULL, at, until);
	if (out->windows)
		return;
	/* None could be read: the range was looked at all the same. */
	out->used_start_ns = since;
	out->used_end_ns = until;
}

int query_coverage(struct recorder *recorder, struct answer *answer, int64_t since_ns,
		   int64_t until_ns, struct query_coverage *out)
{
	struct coverage coverage = { .recorder = recorder, .answer = answer };
	struct query_coverage result = { .used_end_ns = INT64_MIN };
	struct store_stats stats = {};
	size_t room;
	int r;

	if (recorder->store)
		store_stats(recorder->store, &stats);
	coverage.run = stats.run;
	r = entries_make(&coverage);
	if (r)
		return r;
	room = 2 * coverage.n + 2 < QUERY_GAPS_MAX ? 2 * coverage.n + 2 : QUERY_GAPS_MAX;
	coverage.gaps = arena_array(answer->arena, room, sizeof(*coverage.gaps));
	if (coverage.gaps)
		coverage_walk(&coverage, since_ns, until_ns, &result);
	free(coverage.entries);
	result.gaps = (struct wire_gaps){ .v = coverage.gaps, .n = coverage.n_gaps };
	*out = result;
	return coverage.gaps ? coverage.error : -ENOMEM;
}
