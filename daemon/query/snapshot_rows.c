/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/query/snapshot_internal.h"

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

void snapshot_rest_add(struct wire_rest *rest, int64_t total_ns)
{
	rest->rows++;
	rest->total_ns += total_ns;
}

/*
 * Divides the groups into three parts, in this order: groups to show; groups that are sums of
 * others (is_others); idle groups of both kinds, unless the client asked for them. Returns the
 * number of groups in the first part, and sets *n_others to the number in the second part.
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

int snapshot_rows(struct answer *answer, const struct snapshot_question *question,
		  struct answer_stacks *stacks)
{
	static int (*const compare[])(const void *a, const void *b) = {
		[SNAPSHOT_BY_TOTAL] = by_total,
		[SNAPSHOT_BY_MAX] = by_max,
		[SNAPSHOT_BY_COUNT] = by_count,
	};
	struct wire_snapshot_reply *reply = &answer->reply.snapshot;
	size_t n, i, wanted, top, n_others;
	struct aggregate_group **groups = aggregate_groups(answer->aggregate, &n), *group;

	wanted = groups_part(groups, n, question->with_idle, &n_others);
	qsort(groups, wanted, sizeof(*groups), compare[question->order]);
	/*
	 * If all rows are shown, the sums of merged groups are shown, too, so that the rows add up
	 * to the totals.
	 */
	wanted += n_others;
	top = question->top < wanted ? question->top : wanted;
	if (top > wanted - n_others && question->top != SIZE_MAX)
		top = wanted - n_others;
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
	return answer_rows(answer, groups, top, stacks);
}
