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

static int rows_by_total(const void *x, const void *y)
{
	const struct wire_row *a = x, *b = y;
	int r = COMPARE_DESCENDING(a->total_ns, b->total_ns);

	if (!r)
		r = strcmp(a->key, b->key);
	return r ? r : (int)a->idle - (int)b->idle;
}

static int rows_by_max(const void *x, const void *y)
{
	const struct wire_row *a = x, *b = y;
	int r = COMPARE_DESCENDING(a->max_ns, b->max_ns);

	return r ? r : rows_by_total(x, y);
}

static int rows_by_count(const void *x, const void *y)
{
	const struct wire_row *a = x, *b = y;
	int r = COMPARE_DESCENDING(a->count, b->count);

	return r ? r : rows_by_total(x, y);
}

void snapshot_rest_add(struct wire_rest *rest, int64_t total_ns)
{
	rest->rows++;
	rest->total_ns += total_ns;
}

/*
 * Moves idle groups behind the others unless the client asked for idle ones. Returns the number of
 * groups to show, which are now the first ones.
 */
static size_t hide_idle(struct aggregate_group **groups, size_t n, bool with_idle)
{
	size_t i, wanted = 0;

	for (i = 0; i < n; i++) {
		struct aggregate_group *group = groups[i];

		if (group->is_idle && !with_idle)
			continue;
		groups[i] = groups[wanted];
		groups[wanted++] = group;
	}
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
	size_t n, i, wanted, top;
	struct aggregate_group **groups = aggregate_groups(answer->aggregate, &n), *group;

	wanted = hide_idle(groups, n, question->with_idle);
	qsort(groups, wanted, sizeof(*groups), compare[question->order]);
	top = question->top < wanted ? question->top : wanted;
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

/*
 * Sorts the rows, removes idle ones unless the client asked for them, and keeps the first
 * question->top.
 */
static void rows_select(struct answer *answer, const struct snapshot_question *question,
			struct wire_row *rows, size_t n)
{
	static int (*const compare[])(const void *a, const void *b) = {
		[SNAPSHOT_BY_TOTAL] = rows_by_total,
		[SNAPSHOT_BY_MAX] = rows_by_max,
		[SNAPSHOT_BY_COUNT] = rows_by_count,
	};
	struct wire_snapshot_reply *reply = &answer->reply.snapshot;
	size_t i, wanted = 0, top;

	for (i = 0; i < n; i++) {
		if (rows[i].idle && !question->with_idle)
			snapshot_rest_add(&reply->idle, rows[i].total_ns);
		else
			rows[wanted++] = rows[i];
	}
	if (!question->with_idle)
		reply->idle.threads = (int64_t)aggregate_totals(answer->aggregate)->idle_threads;
	qsort(rows, wanted, sizeof(*rows), compare[question->order]);
	top = question->top < wanted ? question->top : wanted;
	for (i = 0; i < wanted; i++)
		snapshot_rest_add(i < top ? &reply->shown : &reply->rest, rows[i].total_ns);
	for (i = 0; question->is_reversed && i < top / 2; i++) {
		struct wire_row row = rows[i];

		rows[i] = rows[top - 1 - i];
		rows[top - 1 - i] = row;
	}
	reply->rows = (struct wire_rows){ .v = rows, .n = top };
}

int snapshot_grouped_rows(struct answer *answer, const struct snapshot_question *question,
			  struct answer_stacks *stacks)
{
	struct aggregate_group **groups;
	struct wire_rows grouped;
	struct wire_row *rows;
	size_t n;
	int r;

	/*
	 * Make a row of each group first: rows can be grouped by function or module only when their
	 * frames have names.
	 */
	groups = aggregate_groups(answer->aggregate, &n);
	r = answer_rows(answer, groups, n, stacks);
	if (!r)
		r = group_rows(answer->arena, question->group, &answer->reply.snapshot.rows,
			       &grouped);
	if (r)
		return r;
	rows = arena_array(answer->arena, grouped.n + 1, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	for (n = 0; n < grouped.n; n++)
		rows[n] = grouped.v[n];
	rows_select(answer, question, rows, n);
	return 0;
}
