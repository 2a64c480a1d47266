/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/answer.h"
#include "daemon/query_history.h"
#include "daemon/query_notes.h"
#include "daemon/query_who.h"
#include "daemon/recorder.h"
#include "proto/base.h"

#define DEFAULT_WINDOW_NS (30 * NS_PER_S)

/* How long a query waits, and keeps a worker busy, for the cut it asked for and its names. */
#define CUT_TIMEOUT_NS (5 * NS_PER_S)

struct range {
	int64_t since;
	int64_t until;
	bool is_to_now;
	bool is_length; /* counted back from now */
	bool is_late;	/* the open window could not be had in time */
};

static int invalid_time(struct wire_error *error, const char *field, const char *text)
{
	return wire_error_set(error, -EINVAL, "io.stackd.InvalidTime", field, "%s: %s", field,
			      text);
}

static int range_resolve(const struct wire_snapshot_request *request, struct range *range,
			 struct wire_error *error)
{
	int64_t now = clock_ns(CLOCK_REALTIME), length = DEFAULT_WINDOW_NS;
	bool has_since = request->since_ns != WIRE_ABSENT;

	if (request->window_ns != WIRE_ABSENT) {
		if (has_since || request->until_ns != WIRE_ABSENT)
			return invalid_time(error, "window_ns",
					    "either a length up to now, or since and until");
		if (request->window_ns <= 0)
			return invalid_time(error, "window_ns", "must be more than 0");
		length = request->window_ns;
	}
	range->is_to_now = request->until_ns == WIRE_ABSENT || request->until_ns >= now;
	range->until = range->is_to_now ? now : request->until_ns;
	range->is_length = !has_since;
	range->since = has_since ? request->since_ns : range->until - length;
	if (has_since && range->since > now)
		return invalid_time(error, "since_ns", "is in the future");
	if (range->since >= range->until)
		return invalid_time(error, "since_ns", "must be before until_ns");
	return 0;
}

/* When the newest window ended, in ns since the epoch; 0 where there is none. */
static int64_t newest_end(struct recorder *recorder)
{
	struct history_list list;
	int64_t end = 0;

	if (history_range(recorder->history, INT64_MIN, INT64_MAX, &list))
		return 0;
	if (list.n > 0)
		end = list.windows[list.n - 1]->end_ns +
		      list.windows[list.n - 1]->real_offset_ns;
	history_list_fini(&list);
	return end;
}

/*
 * Up to now means up to the newest window: less than [window] min_length ago none is cut for a
 * question. A length of time is counted back from there.
 */
static void range_align(struct recorder *recorder, struct range *range)
{
	int64_t newest = newest_end(recorder);

	/* Older than that, the drain is late: then there is a gap, and it is said. */
	if (newest >= range->until ||
	    range->until - newest > recorder->config->window_min_length_ns ||
	    (!range->is_length && newest <= range->since))
		return;
	if (range->is_length)
		range->since -= range->until - newest;
	range->until = newest;
}

/*
 * A range that reaches into the open window ends it first. Where that takes too long the answer is
 * made of what there is: somebody asks because the host is in trouble.
 */
static int range_cut(struct recorder *recorder, struct range *range)
{
	int64_t until;
	uint64_t seq;
	int r;

	if (!recorder->drain || (!range->is_to_now && range->until <= newest_end(recorder)))
		return 0;
	until = clock_ns(CLOCK_MONOTONIC) + CUT_TIMEOUT_NS;
	r = drain_cut(recorder->drain, CUT_TIMEOUT_NS, &seq);
	if (!r)
		r = history_wait(recorder->history, seq, until - clock_ns(CLOCK_MONOTONIC));
	if (r == -ETIMEDOUT) {
		range->is_late = true;
		return 0;
	}
	if (!r)
		range_align(recorder, range);
	return r;
}

static int no_data(struct recorder *recorder, const struct range *range, struct wire_error *error)
{
	struct history_stats stats;
	int64_t now = clock_ns(CLOCK_REALTIME);
	char ended[MOMENT_TEXT], began[MOMENT_TEXT];

	history_stats(recorder->history, &stats);
	if (!probe_is_on(recorder->probe))
		return wire_error_set(error, -ENODATA, "io.stackd.NoData", "range",
				      "the probe offcpu is off: stackctl probes says why");
	if (!stats.windows)
		return wire_error_set(error, -ENODATA, "io.stackd.NoData", "range",
				      "no window is recorded yet");
	moment_text(range->until, now, ended);
	moment_text(stats.first_real_ns, now, began);
	return wire_error_set(error, -ENODATA, "io.stackd.NoData", "range",
			      "no window in the range, which ended %s; recording began %s%s", ended,
			      began,
			      stats.evicted_real_ns ? ", and the oldest windows have gone" : "");
}

/* After the merge, which is when it is known what could be read. */
static int coverage_make(struct recorder *recorder, struct answer *answer,
			 const struct range *range, struct query_coverage *found)
{
	struct wire_coverage *coverage = &answer->snapshot.coverage;
	int r = query_coverage(recorder, answer, range->since, range->until, found);

	if (r)
		return r;
	coverage->asked = (struct wire_range){ range->since, range->until };
	coverage->used = (struct wire_range){ found->used_start_ns, found->used_end_ns };
	coverage->asked_ns = range->until - range->since;
	coverage->covered_ns = found->covered_ns;
	coverage->windows = (int64_t)found->windows;
	coverage->gaps = found->gaps;
	return 0;
}

static int losses_make(struct answer *answer)
{
	struct wire_snapshot_reply *reply = &answer->snapshot;
	uint64_t lost[WINDOW_LOST_N] = {};
	unsigned int k;
	size_t i;
	int r;

	for (i = 0; i < answer->list.n; i++) {
		const struct store_entry entry = history_list_entry(&answer->list, i);

		for (k = 0; k < WINDOW_LOST_N && !entry.is_bad; k++)
			lost[k] += entry.lost[k];
	}
	r = answer_losses(answer->arena, lost, &reply->lost);
	reply->coverage.complete = reply->coverage.gaps.n == 0 && reply->lost.n == 0;
	return r;
}

struct order {
	int (*compare)(const void *a, const void *b);
};

static uint64_t group_total(const struct merge_group *group)
{
	return group->blocked_ns + group->runnable_ns;
}

static int compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? 1 : a > b ? -1 : 0;
}

/* Equal ones in a stable order, so that the same question has the same answer. */
static int compare_keys(const struct merge_group *a, const struct merge_group *b)
{
	return memcmp(&a->key, &b->key, sizeof(a->key));
}

static int by_total(const void *x, const void *y)
{
	const struct merge_group *const *a = x, *const *b = y;
	int r = compare_u64(group_total(*a), group_total(*b));

	return r ? r : compare_keys(*a, *b);
}

static int by_max(const void *x, const void *y)
{
	const struct merge_group *const *a = x, *const *b = y;
	int r = compare_u64((*a)->max_ns, (*b)->max_ns);

	return r ? r : by_total(x, y);
}

static int by_count(const void *x, const void *y)
{
	const struct merge_group *const *a = x, *const *b = y;
	int r = compare_u64((*a)->count, (*b)->count);

	return r ? r : by_total(x, y);
}

static int order_parse(const char *text, struct order *order, struct wire_error *error)
{
	if (!text || strcmp(text, "total") == 0)
		order->compare = by_total;
	else if (strcmp(text, "max") == 0)
		order->compare = by_max;
	else if (strcmp(text, "count") == 0)
		order->compare = by_count;
	else
		return wire_error_set(error, -EINVAL, "io.stackd.InvalidFilter", "sort",
				      "%.40s is no order: total, max or count", text);
	return 0;
}

static int by_parse(const char *text, enum merge_by *by, struct wire_error *error)
{
	if (!text || strcmp(text, "stack") == 0)
		*by = MERGE_BY_STACK;
	else if (strcmp(text, "thread") == 0)
		*by = MERGE_BY_THREAD;
	else if (strcmp(text, "process") == 0)
		*by = MERGE_BY_PROCESS;
	else
		return wire_error_set(error, -EINVAL, "io.stackd.InvalidFilter", "by",
				      "%.40s: stack, thread or process", text);
	return 0;
}

/* Sorts groups; idle ones that are not wanted go behind the others. Returns how many are wanted. */
static size_t groups_sort(struct merge_group **groups, size_t n, const struct order *order,
			  bool with_idle)
{
	struct merge_group *group;
	size_t i, wanted = 0;

	for (i = 0; i < n; i++) {
		if (groups[i]->is_idle && !with_idle)
			continue;
		group = groups[wanted];
		groups[wanted++] = groups[i];
		groups[i] = group;
	}
	qsort(groups, wanted, sizeof(*groups), order->compare);
	return wanted;
}

static void groups_reverse(struct merge_group **groups, size_t n)
{
	struct merge_group *group;
	size_t i;

	for (i = 0; i < n / 2; i++) {
		group = groups[i];
		groups[i] = groups[n - 1 - i];
		groups[n - 1 - i] = group;
	}
}

static void rest_add(struct wire_rest *rest, const struct merge_group *group)
{
	rest->rows++;
	rest->total_ns += (int64_t)group_total(group);
}

static int rows_make(struct answer *answer, const struct wire_snapshot_request *request,
		     const struct order *order, const struct answer_row_options *options)
{
	struct wire_snapshot_reply *reply = &answer->snapshot;
	size_t n, i, wanted, top;
	struct merge_group **groups = merge_groups(answer->merge, &n);

	wanted = groups_sort(groups, n, order, request->idle == 1);
	top = request->top != WIRE_ABSENT && request->top > 0 && (uint64_t)request->top < wanted
		      ? (size_t)request->top
		      : wanted;
	for (i = 0; i < n; i++)
		rest_add(i < top      ? &reply->shown
			 : i < wanted ? &reply->rest
				      : &reply->idle,
			 groups[i]);
	reply->idle.threads = (int64_t)merge_totals(answer->merge)->idle_threads;
	if (request->idle == 1)
		reply->idle.threads = 0;
	if (request->reverse == 1)
		groups_reverse(groups, top);
	return answer_rows(answer, groups, top, options);
}

static void totals_make(struct answer *answer)
{
	const struct merge_totals *totals = merge_totals(answer->merge);

	answer->snapshot.totals = (struct wire_totals){
		.processes = (int64_t)totals->processes,
		.threads = (int64_t)totals->threads,
		.on_cpu_ns = (int64_t)totals->on_cpu_ns,
		.runnable_ns = (int64_t)totals->runnable_ns,
		.blocked_ns = (int64_t)totals->blocked_ns,
		.waits = (int64_t)totals->waits,
		.short_waits = (int64_t)totals->short_waits,
		.short_ns = (int64_t)totals->short_ns,
		.open_waits = (int64_t)totals->open_waits,
		.cpus = sysconf(_SC_NPROCESSORS_ONLN),
		.unseen = totals->unseen ? (int64_t)totals->unseen : WIRE_ABSENT,
		.unseen_ns = totals->unseen ? (int64_t)totals->unseen_ns : WIRE_ABSENT,
	};
}

static int windows_find(struct recorder *recorder, struct answer *answer, struct range *range,
			struct wire_error *error)
{
	int r = range_cut(recorder, range);

	if (!r)
		r = query_history_range(recorder, answer, range->since, range->until,
					&answer->list);
	if (r)
		return r;
	if (answer->list.n == 0)
		return no_data(recorder, range, error);
	return query_history_later(recorder, answer, range->until, &answer->later);
}

static int merge_make(struct recorder *recorder, struct answer *answer, const struct filter *filter,
		      const struct merge_options *options, struct wire_error *error)
{
	struct stack *unread = stack_table_get(recorder->stacks, STACK_UNREAD, true);
	int r = merge_run(&answer->list, &answer->later, filter, options, unread, &answer->merge);

	stack_unref(unread);
	if (!r && filter_selects_threads(filter) && !merge_totals(answer->merge)->threads)
		return who_error(answer->merge, filter->wire, error);
	return r;
}

static int request_check(const struct wire_snapshot_request *request, struct wire_error *error)
{
	if (!request->probe || strcmp(request->probe, "offcpu") != 0)
		return wire_error_set(error, -ENOENT, "io.stackd.UnknownProbe",
				      request->probe ? request->probe : "",
				      "no probe %.40s; there is: offcpu",
				      request->probe ? request->probe : "(none)");
	if (request->top != WIRE_ABSENT && request->top < 0)
		return wire_error_set(error, -EINVAL, "io.stackd.InvalidFilter", "top",
				      "%" PRId64 ": a number of rows, 0 for all", request->top);
	return 0;
}

/* A request, checked. */
struct question {
	struct filter filter;
	struct order order;
	struct range range;
	struct merge_options options;
};

static int question_parse(const struct wire_snapshot_request *request, struct question *question,
			  struct wire_error *error)
{
	int r = request_check(request, error);

	if (!r)
		r = filter_init(&question->filter, request->filter, error);
	if (!r)
		r = by_parse(request->by, &question->options.by, error);
	if (!r)
		r = order_parse(request->sort, &question->order, error);
	if (!r)
		r = range_resolve(request, &question->range, error);
	question->options.open_only = request->open == 1;
	if (question->options.open_only && !request->by)
		question->options.by = MERGE_BY_THREAD;
	return r;
}

int query_snapshot(struct recorder *recorder, const struct query_peer *peer,
		   const struct wire_snapshot_request *request, struct answer **out,
		   struct wire_error *error)
{
	struct answer_row_options rows = { .min_wait_ns = recorder->config->offcpu_min_wait_ns };
	_cleanup_(answer_freep) struct answer *answer = answer_new();
	struct question question = {};
	struct notes_facts facts;
	struct query_coverage found = {};
	struct probe_status status;
	int r = question_parse(request, &question, error);

	if (!answer)
		return -ENOMEM;
	if (!r)
		r = windows_find(recorder, answer, &question.range, error);
	if (!r)
		r = merge_make(recorder, answer, &question.filter, &question.options, error);
	if (!r)
		r = coverage_make(recorder, answer, &question.range, &found);
	if (!r)
		r = losses_make(answer);
	if (r)
		return r;
	probe_status(recorder->probe, &status);
	answer->snapshot.probe = "offcpu";
	answer->snapshot.hook = status.hook ? status.hook : "none";
	answer->snapshot.min_wait_ns = rows.min_wait_ns;
	rows.by_thread = question.options.by == MERGE_BY_THREAD;
	rows.kernel_addresses = peer->is_root;
	totals_make(answer);
	facts = (struct notes_facts){
		.min_wait_ns = rows.min_wait_ns,
		.short_waits = merge_totals(answer->merge)->short_waits,
		.has_estimates = merge_estimated(answer->merge) > 0,
		.open_only = question.options.open_only,
		.is_late = question.range.is_late,
		.kernel_names_error =
			recorder->resolver ? resolver_kernel_status(recorder->resolver) : 0,
		.merged = found.merged,
		.bad = found.bad,
	};
	r = who_note(answer->arena, answer->merge, request->filter, &facts.unseen);
	if (!r)
		r = notes_make(answer->arena, &question.filter, &facts, &answer->snapshot.notes);
	if (!r)
		r = rows_make(answer, request, &question.order, &rows);
	if (r)
		return r;
	*out = TAKE(answer);
	return 0;
}
