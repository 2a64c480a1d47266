/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>

#include "common/base.h"
#include "fleet/serve/internal.h"

static int64_t on_cpu_of(const struct group *group)
{
	return group->total_ns;
}

static int64_t throttled_of(const struct group *group)
{
	return group->throttled_ns < group->runnable_ns ? group->throttled_ns : group->runnable_ns;
}

static int64_t runnable_of(const struct group *group)
{
	return group->runnable_ns - throttled_of(group);
}

static int64_t blocked_of(const struct group *group)
{
	return group->blocked_ns;
}

/* Compares groups by their time in a part: the greater one comes first. */
static int compare_parts(const void *x, const void *y, int64_t (*ns)(const struct group *group))
{
	int64_t a = ns(*(struct group *const *)x), b = ns(*(struct group *const *)y);

	return groups_by_place(*(struct group *const *)x, *(struct group *const *)y)
		?: (a < b) - (a > b)
		?: groups_by_total(x, y);
}

static int by_throttled(const void *x, const void *y)
{
	return compare_parts(x, y, throttled_of);
}

static int by_runnable(const void *x, const void *y)
{
	return compare_parts(x, y, runnable_of);
}

/* Urgent waits come first, as in the daemon. */
static int by_blocked(const void *x, const void *y)
{
	const struct group *a = *(struct group *const *)x, *b = *(struct group *const *)y;

	return (int)b->is_urgent - (int)a->is_urgent ?: compare_parts(x, y, blocked_of);
}

/* The parts of the time, those of the daemon's overview. */
static const struct time_part {
	const char *name;
	bool is_sampled;
	int64_t (*ns)(const struct group *group);
	int (*compare)(const void *x, const void *y);
} time_parts[] = {
	{ "on CPU", true, on_cpu_of, groups_by_total },
	{ "runnable", false, runnable_of, by_runnable },
	{ "throttled", false, throttled_of, by_throttled },
	{ "blocked", false, blocked_of, by_blocked },
};

/*
 * Sums up one part of the time. How much of a part was sampled is not known: sampled_ns is the most
 * that it can be.
 */
static struct wire_part part_sum(const struct time_part *part, struct group **groups, size_t n)
{
	struct wire_part wire = { .name = part->name, .sampled_ns = WIRE_ABSENT };
	int64_t sampled_ns = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		int64_t ns = part->ns(groups[i]);

		wire.rows += ns > 0;
		sum_add(&wire.total_ns, ns);
		sum_add(&sampled_ns, groups[i]->sampled_ns < ns ? groups[i]->sampled_ns : ns);
	}
	if (sampled_ns)
		wire.sampled_ns = sampled_ns;
	return wire;
}

/* Marks the `top` groups that have the most time in a part. Those of stackd itself do not count. */
static void part_mark(const struct time_part *part, struct group **groups, size_t n, int64_t top)
{
	size_t i;

	if (n)
		qsort(groups, n, sizeof(struct group *), part->compare);
	for (i = 0; i < n && top > 0; i++) {
		if (groups[i]->own || part->ns(groups[i]) <= 0)
			continue;
		groups[i]->is_first = true;
		top--;
	}
}

int snapshot_parts_make(struct snapshot *snapshot, struct group **groups, size_t n)
{
	struct arena *arena = snapshot->answer->arena;
	struct wire_part *parts = arena_array(arena, ARRAY_SIZE(time_parts), sizeof(*parts));
	struct group **seen = arena_array(arena, n + 1, sizeof(struct group *));
	size_t i, n_parts = 0, n_seen = 0;

	if (!parts || !seen)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		if (!groups[i]->idle || snapshot->with_idle)
			seen[n_seen++] = groups[i];
	for (i = 0; i < ARRAY_SIZE(time_parts); i++) {
		if (time_parts[i].is_sampled != snapshot->question.is_sampled)
			continue;
		parts[n_parts++] = part_sum(&time_parts[i], seen, n_seen);
		if (snapshot->asked->is_of_overview)
			part_mark(&time_parts[i], seen, n_seen, snapshot->request->top);
	}
	snapshot->answer->reply.snapshot.parts = (struct wire_parts){ .v = parts, .n = n_parts };
	return 0;
}
