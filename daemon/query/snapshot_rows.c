/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/query/snapshot_internal.h"
#include "daemon/session/session.h"

static uint64_t group_total(const struct aggregate_group *group)
{
	return group->on_ns + group->blocked_ns + group->runnable_ns;
}

static int by_total(const void *x, const void *y)
{
	const struct aggregate_group *const *a = x, *const *b = y;
	int r = COMPARE_DESCENDING(group_total(*a), group_total(*b));

	if (!r && (*a)->name && (*b)->name)
		r = strcmp((*a)->name, (*b)->name);
	return r ? r : memcmp(&(*a)->key, &(*b)->key, sizeof((*a)->key));
}

static int by_max(const void *x, const void *y)
{
	const struct aggregate_group *const *a = x, *const *b = y;
	int r = COMPARE_DESCENDING((*a)->max_ns, (*b)->max_ns);

	return r ? r : by_total(x, y);
}

static int by_count(const void *x, const void *y)
{
	const struct aggregate_group *const *a = x, *const *b = y;
	int r = COMPARE_DESCENDING((*a)->count, (*b)->count);

	return r ? r : by_total(x, y);
}

void snapshot_rests_init(struct wire_snapshot_reply *reply)
{
	reply->shown = (struct wire_rest){ .threads = WIRE_ABSENT };
	reply->rest = (struct wire_rest){ .threads = WIRE_ABSENT };
	reply->idle = (struct wire_rest){ .threads = 0 };
}

void snapshot_rest_add(struct wire_rest *rest, int64_t total_ns)
{
	rest->rows++;
	rest->total_ns += total_ns;
}

/*
 * Sorts the groups into three sections of the array, in this order: first the groups to show; then
 * the groups with is_others, which are sums of groups that did not fit into memory; last the idle
 * groups, unless the client asked for them. An idle group is in the last section even if it has
 * is_others. Returns the number of groups in the first section, and sets *n_others to the number in
 * the second section.
 */
static size_t groups_part(struct aggregate_group **groups, size_t n, bool with_idle,
			  size_t *n_others)
{
	struct aggregate_group *others[2], *group;
	size_t i, wanted = 0;

	*n_others = 0;
	for (i = 0; i < n; i++) {
		group = groups[i];
		if (group->is_idle && !with_idle)
			continue;
		groups[i] = groups[wanted];
		groups[wanted++] = group;
	}
	for (i = wanted; i-- > 0;) {
		if (!groups[i]->is_others)
			continue;
		others[(*n_others)++] = groups[i];
		groups[i] = groups[--wanted];
	}
	for (i = 0; i < *n_others; i++)
		groups[wanted + i] = others[i];
	return wanted;
}

static uint64_t throttled_of(const struct aggregate_group *group)
{
	return group->throttled_ns < group->runnable_ns ? group->throttled_ns : group->runnable_ns;
}

static uint64_t runnable_of(const struct aggregate_group *group)
{
	return group->runnable_ns - throttled_of(group);
}

static uint64_t blocked_of(const struct aggregate_group *group)
{
	return group->blocked_ns;
}

static int by_throttled(const void *x, const void *y)
{
	const struct aggregate_group *const *a = x, *const *b = y;
	int r = COMPARE_DESCENDING(throttled_of(*a), throttled_of(*b));

	return r ? r : by_total(x, y);
}

static int by_runnable(const void *x, const void *y)
{
	const struct aggregate_group *const *a = x, *const *b = y;
	int r = COMPARE_DESCENDING(runnable_of(*a), runnable_of(*b));

	return r ? r : by_total(x, y);
}

static int by_blocked(const void *x, const void *y)
{
	const struct aggregate_group *const *a = x, *const *b = y;
	int r = COMPARE_DESCENDING(blocked_of(*a), blocked_of(*b));

	return r ? r : by_total(x, y);
}

static int by_first(const void *x, const void *y)
{
	const struct aggregate_group *const *a = x, *const *b = y;
	int r = (int)(*b)->is_first - (int)(*a)->is_first;

	return r ? r : by_total(x, y);
}

/* The parts into which an overview divides the time of threads. */
static const struct overview_part {
	const char *name;
	bool is_of_samples;
	uint64_t (*ns)(const struct aggregate_group *group);
	int (*compare)(const void *a, const void *b);
} overview_parts[] = {
	{ "on CPU", true, group_total, by_total },
	{ "runnable", false, runnable_of, by_runnable },
	{ "throttled", false, throttled_of, by_throttled },
	{ "blocked", false, blocked_of, by_blocked },
};

/*
 * Returns the sums of one part of the time, such as "blocked", over all n + n_others groups. Unless
 * `top` is 0, sorts the first n groups by their time in this part, and sets is_first of the `top`
 * groups that have the most.
 */
static struct wire_part part_make(const struct overview_part *part, struct aggregate_group **groups,
				  size_t n, size_t n_others, size_t top)
{
	struct wire_part wire = { .name = part->name };
	uint64_t ns;
	size_t i;

	if (top)
		qsort(groups, n, sizeof(*groups), part->compare);
	for (i = 0; i < n + n_others; i++) {
		ns = part->ns(groups[i]);
		if (i < n && i < top && ns)
			groups[i]->is_first = true;
		wire.rows += ns > 0;
		wire.total_ns += (int64_t)ns;
	}
	return wire;
}

/*
 * Moves the groups that an overview shows to the front, and sets reply.snapshot.parts. Returns the
 * number of these groups, or -ENOMEM.
 */
static ssize_t parts_make(struct answer *answer, struct aggregate_group **groups, size_t n,
			  size_t n_others, size_t top)
{
	bool is_of_samples = probe_kind_has(session_info(answer->session)->kind, PROBE_SAMPLES);
	struct wire_part *parts =
		arena_array(answer->arena, ARRAY_SIZE(overview_parts), sizeof(*parts));
	size_t i, n_parts = 0, first = 0;

	if (!parts)
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(overview_parts); i++)
		if (overview_parts[i].is_of_samples == is_of_samples)
			parts[n_parts++] = part_make(&overview_parts[i], groups, n, n_others, top);
	answer->reply.snapshot.parts = (struct wire_parts){ .v = parts, .n = n_parts };
	if (top)
		qsort(groups, n, sizeof(*groups), by_first);
	while (first < n && groups[first]->is_first)
		first++;
	return (ssize_t)first;
}

int snapshot_rows(struct answer *answer, const struct snapshot_question *question)
{
	static int (*const compare[])(const void *a, const void *b) = {
		[SNAPSHOT_BY_TOTAL] = by_total,
		[SNAPSHOT_BY_MAX] = by_max,
		[SNAPSHOT_BY_COUNT] = by_count,
	};
	struct wire_snapshot_reply *reply = &answer->reply.snapshot;
	size_t n, i, wanted, top, n_others;
	struct aggregate_group **groups = aggregate_groups(answer->aggregate, &n), *group;
	ssize_t first = 0;

	wanted = groups_part(groups, n, question->with_idle, &n_others);
	qsort(groups, wanted, sizeof(*groups), compare[question->order]);
	if (question->has_parts)
		first = parts_make(answer, groups, wanted, n_others,
				   question->by_parts ? question->top : 0);
	if (first < 0)
		return -ENOMEM;
	/*
	 * If all rows are shown, the sums of merged groups are shown, too, so that the rows add up
	 * to the totals.
	 */
	wanted += n_others;
	top = question->top < wanted ? question->top : wanted;
	if (top > wanted - n_others && question->top != SIZE_MAX)
		top = wanted - n_others;
	if (question->by_parts && question->top != SIZE_MAX)
		top = (size_t)first;
	snapshot_rests_init(reply);
	for (i = 0; i < n; i++)
		snapshot_rest_add(i < top      ? &reply->shown
				  : i < wanted ? &reply->rest
					       : &reply->idle,
				  (int64_t)group_total(groups[i]));
	if (!question->with_idle)
		reply->idle.threads = (int64_t)aggregate_totals(answer->aggregate)->idle_threads;
	for (i = 0; question->is_reversed && i < top / 2; i++) {
		group = groups[i];
		groups[i] = groups[top - 1 - i];
		groups[top - 1 - i] = group;
	}
	answer->source.groups = groups;
	answer->source.n = top;
	return 0;
}
