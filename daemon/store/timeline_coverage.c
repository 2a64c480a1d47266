/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/history.h"
#include "daemon/store/timeline_internal.h"

/* A shorter time between two windows is no gap: the real clock drifts against the monotonic one. */
#define DRIFT_NS NS_PER_MS

enum { REASON = 160 };

struct coverage {
	struct timeline *timeline;
	struct arena *arena;
	const struct store_entry **entries; /* the range's windows, sorted by start */
	size_t n;
	bool has_oldest; /* `entries` has the oldest window of the range */
	struct timeline_gap *gaps;
	size_t n_gaps;
	size_t n_unlisted; /* gaps that did not fit */
	int error;
};

static int by_start(const void *a, const void *b)
{
	const struct store_entry *const *x = a, *const *y = b;
	int64_t p = store_entry_start(*x), q = store_entry_start(*y);

	return p < q ? -1 : p > q;
}

static int entries_sort(struct coverage *coverage, size_t first, size_t end)
{
	int r = timeline_windows(coverage->timeline, first, end, &coverage->entries, &coverage->n);

	if (!r)
		qsort(coverage->entries, coverage->n, sizeof(struct store_entry *), by_start);
	return r;
}

/*
 * True if, by the monotonic clock, this run of stackd recorded another window between the windows
 * `before` and `after`. The list of windows is sorted by the real clock and has no window between
 * the two, so the real clock was set in the meantime.
 */
static bool is_elsewhere(const struct coverage *coverage, const struct store_entry *before,
			 const struct store_entry *after)
{
	const struct timeline_list *memory = &coverage->timeline->memory;
	size_t i;

	if (before->run != coverage->timeline->source.run)
		return false;
	for (i = 0; i < memory->n; i++)
		if (memory->entries[i].start_ns > before->start_ns &&
		    memory->entries[i].start_ns < after->start_ns)
			return true;
	return false;
}

/*
 * Returns the reason of a gap between the windows `before` and `after`, which are of the same run
 * of stackd.
 */
static const char *reason_within(const struct coverage *coverage, const struct store_entry *before,
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

/*
 * Finds out how the run of stackd that recorded the window `before` has ended, and sets `reason` to
 * that. Returns false if the store does not know the run, or if the run has not ended. If the
 * session is not being recorded and no later run is known, the boot id of the host shows whether
 * the host was restarted. The last run in a file that is only read may have gone on after the file
 * was copied.
 */
static bool reason_run_ended(const struct coverage *coverage, const struct store_entry *before,
			     const struct store_entry *after, char *reason)
{
	const struct timeline *timeline = coverage->timeline;
	struct store_reader *reader = timeline->source.reader;
	struct store_run run, next = {};
	bool has_next, is_other_boot, is_end_of_file;

	if (!reader || !before || store_reader_run(reader, before->run, &run))
		return false;
	has_next = after && store_reader_run(reader, after->run, &next) == 0;
	is_end_of_file = !after && !timeline->source.run;
	if (!has_next && !timeline->session.is_recording) {
		snprintf(next.boot_id, sizeof(next.boot_id), "%s", timeline->source.boot_id);
		has_next = true;
	}
	if (!has_next && before->run == timeline->source.run)
		return false;
	is_other_boot = has_next && strcmp(run.boot_id, next.boot_id) != 0;
	if (run.is_clean)
		snprintf(reason, REASON, "stackd was stopped%s",
			 is_other_boot ? ", and the host restarted" : "");
	else if (is_end_of_file)
		snprintf(reason, REASON,
			 "the file ends here: it is a copy, or stackd was killed or crashed, or "
			 "the host went down");
	else if (is_other_boot)
		snprintf(reason, REASON, "stackd was not stopped: the host went down");
	else
		snprintf(reason, REASON, "stackd was killed or crashed");
	return true;
}

/*
 * Sets `reason` to why the range has nothing before its first window: evicted, or never recorded.
 */
static void reason_first(const struct coverage *coverage, int64_t start, char *reason)
{
	const struct timeline *timeline = coverage->timeline;
	struct history_stats stats = {};

	if (timeline->source.reader &&
	    start < store_reader_evicted(timeline->source.reader, reason, REASON))
		return;
	if (timeline->source.history)
		history_stats(timeline->source.history, &stats);
	if (!timeline->source.reader && stats.evicted_real_ns > start)
		snprintf(reason, REASON, "%s",
			 stats.evicted_by_bytes ? "dropped for [window] max_memory"
						: "older than [window] keep");
	else if (!timeline->session.probe && start < timeline->session.since_ns)
		snprintf(reason, REASON, "the session had not begun");
	else
		snprintf(reason, REASON, "stackd was not running");
}

/*
 * Sets `reason` to why nothing was recorded between the windows `before` and `after`, each of which
 * may be NULL (none).
 */
static void reason_find(const struct coverage *coverage, const struct store_entry *before,
			const struct store_entry *after, int64_t start, char *reason)
{
	if (before && after && before->run == after->run)
		snprintf(reason, REASON, "%s", reason_within(coverage, before, after));
	else if (before && after && before->run > after->run)
		snprintf(reason, REASON, "the clock was set back");
	else if (reason_run_ended(coverage, before, after, reason))
		return;
	else if (!before)
		reason_first(coverage, start, reason);
	else if (!after && coverage->timeline->session.is_recording)
		snprintf(reason, REASON, "stackd is too busy to end the window");
	else
		snprintf(reason, REASON, "not recorded");
}

/*
 * Adds a gap, or makes the last gap longer if the new one follows it and has the same reason, or if
 * the list is full: see gaps_join().
 */
static void gap_add(struct coverage *coverage, int64_t start, int64_t end, const char *reason)
{
	struct timeline_gap *last = coverage->n_gaps ? &coverage->gaps[coverage->n_gaps - 1] : NULL;
	char *copy;

	if (last && last->reason && start <= last->end_ns + DRIFT_NS && end > last->end_ns &&
	    strcmp(last->reason, reason) == 0) {
		last->end_ns = end;
		return;
	}
	if (end <= start + DRIFT_NS)
		return;
	if (last && coverage->n_gaps == TIMELINE_GAPS_MAX) {
		last->end_ns = end;
		coverage->n_unlisted++;
		return;
	}
	copy = arena_strdup(coverage->arena, reason);
	if (!copy)
		coverage->error = -ENOMEM;
	coverage->gaps[coverage->n_gaps++] =
		(struct timeline_gap){ .start_ns = start, .end_ns = end, .reason = copy };
}

/* Says in the last gap of a full list that it stands for those that did not fit, too. */
static void gaps_join(struct coverage *coverage)
{
	struct timeline_gap *last = &coverage->gaps[coverage->n_gaps - 1];

	if (coverage->n_unlisted == 0)
		return;
	last->reason = arena_printf(coverage->arena,
				    "%zu gaps with windows between them: more than are listed",
				    coverage->n_unlisted + 1);
	if (!last->reason)
		coverage->error = -ENOMEM;
}

/*
 * Returns why a window on disk, or the list of them, could not be read. The reason is "damaged"
 * only if the data differs from what was written.
 */
static const char *reason_bad(int error)
{
	switch (error) {
	case -ENOMEM:
		return "not read: stackd ran out of memory; ask for a shorter range";
	case -EBADMSG:
	case -EUCLEAN:
		return "unreadable on disk";
	default:
		return "not read: the database could not be used";
	}
}

/* Adds a gap between the windows `before` and `after` for which the table `gaps` has no reason. */
static void gap_explain(struct coverage *coverage, const struct store_entry *before,
			const struct store_entry *after, int64_t start, int64_t end)
{
	char reason[REASON] = "";

	if (end <= start + DRIFT_NS)
		return;
	reason_find(coverage, before, after, start, reason);
	gap_add(coverage, start, end, reason);
}

/*
 * Adds the gap between the windows `before` and `after`, each of which may be NULL (none). If the
 * table `gaps` has a reason for a part of it, that part is a gap with this reason.
 */
static void gap_between(struct coverage *coverage, const struct store_entry *before,
			const struct store_entry *after, int64_t start, int64_t end)
{
	const struct timeline *timeline = coverage->timeline;
	int64_t noted_start = start, noted_end = end;
	char reason[REASON] = "";

	if (end <= start + DRIFT_NS)
		return;
	if (timeline->disk_error) {
		gap_add(coverage, start, end, reason_bad(timeline->disk_error));
		return;
	}
	if (!timeline->source.reader ||
	    !store_reader_gap(timeline->source.reader, &noted_start, &noted_end, reason, REASON)) {
		gap_explain(coverage, before, after, start, end);
		return;
	}
	gap_explain(coverage, before, after, start, noted_start);
	gap_add(coverage, noted_start, noted_end, reason);
	gap_explain(coverage, before, after, noted_end, end);
}

/*
 * Adds the gap before the first window. If the list is truncated, the reason is that older windows
 * are left out.
 */
static void gap_first(struct coverage *coverage, const struct store_entry *before,
		      const struct store_entry *first, int64_t since)
{
	if (coverage->timeline->is_truncated && coverage->has_oldest)
		gap_add(coverage, since, store_entry_start(first),
			"more windows than one answer reads: ask for a shorter range");
	else
		gap_between(coverage, before, first, since, store_entry_start(first));
}

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
	return value < low ? low : value > high ? high : value;
}

/*
 * Adds a window to the coverage; adds a gap instead if the window could not be read. The time
 * before `at` is part of the coverage already. Returns the new value of `at`.
 */
static int64_t window_cover(struct coverage *coverage, const struct store_entry *entry, int64_t at,
			    int64_t until, struct timeline_coverage *out)
{
	int64_t start = store_entry_start(entry), end = store_entry_end(entry);

	if (entry->bad) {
		out->bad++;
		gap_add(coverage, clamp(start, at, until), clamp(end, at, until),
			reason_bad(entry->bad));
		return end > at ? end : at;
	}
	if (!out->windows++)
		out->used_start_ns = out->used_end_ns = start;
	if (end > out->used_end_ns) {
		out->used_ns += end - (start > out->used_end_ns ? start : out->used_end_ns);
		out->used_end_ns = end;
	}
	out->compacted +=
		entry->merged_from > 1 &&
		entry->end_ns - entry->start_ns >= 2 * coverage->timeline->source.window_ns;
	if (end > at)
		out->covered_ns += clamp(end, at, until) - clamp(start, at, until);
	return end > at ? end : at;
}

/* Adds each window of the range to the coverage. Adds the time between two windows as a gap. */
static void coverage_walk(struct coverage *coverage, int64_t since, int64_t until,
			  struct timeline_coverage *out)
{
	const struct store_entry *before = NULL;
	struct store_entry earlier;
	int64_t at = since;
	size_t i;

	/* If the range begins with a gap, its reason depends on the window before the range. */
	if ((!coverage->n || store_entry_start(coverage->entries[0]) > since + DRIFT_NS) &&
	    timeline_before(coverage->timeline, since, &earlier))
		before = &earlier;
	for (i = 0; i < coverage->n; i++) {
		const struct store_entry *entry = coverage->entries[i];

		if (i == 0)
			gap_first(coverage, before, entry, at);
		else
			gap_between(coverage, before, entry, at, store_entry_start(entry));
		at = window_cover(coverage, entry, at, until, out);
		before = entry;
	}
	gap_between(coverage, before, NULL, at, until);
	if (out->windows)
		return;
	out->used_start_ns = since;
	out->used_end_ns = until;
}

int timeline_coverage(struct timeline *timeline, struct arena *arena, int64_t since_ns,
		      int64_t until_ns, struct timeline_coverage *out)
{
	return timeline_coverage_of(timeline, arena, 0, timeline->range.n, since_ns, until_ns, out);
}

int timeline_coverage_of(struct timeline *timeline, struct arena *arena, size_t first, size_t end,
			 int64_t since_ns, int64_t until_ns, struct timeline_coverage *out)
{
	struct coverage coverage = {
		.timeline = timeline,
		.arena = arena,
		.has_oldest = first == 0,
	};
	struct timeline_coverage result = { 0 };
	int r = entries_sort(&coverage, first, end);
	size_t capacity;

	if (r)
		return r;
	/* Each gap has three parts at most, and each window may be one that cannot be read. */
	capacity = 4 * coverage.n + 3;
	if (capacity > TIMELINE_GAPS_MAX)
		capacity = TIMELINE_GAPS_MAX;
	coverage.gaps = arena_array(arena, capacity, sizeof(*coverage.gaps));
	if (coverage.gaps)
		coverage_walk(&coverage, since_ns, until_ns, &result);
	if (coverage.n_gaps > 0)
		gaps_join(&coverage);
	free(coverage.entries);
	if (!coverage.gaps || coverage.error)
		return -ENOMEM;
	result.gaps = coverage.gaps;
	result.n_gaps = coverage.n_gaps;
	*out = result;
	return 0;
}

int timeline_losses(const struct timeline *timeline, size_t first, size_t end, uint64_t *lost)
{
	_cleanup_(freep) const struct store_entry **entries = NULL;
	unsigned int k;
	size_t n, i;
	int r = timeline_windows(timeline, first, end, &entries, &n);

	for (i = 0; !r && i < n; i++)
		for (k = 0; k < WINDOW_LOST_N && !entries[i]->bad; k++)
			lost[k] += entries[i]->lost[k];
	return r;
}
