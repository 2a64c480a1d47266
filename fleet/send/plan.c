/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fleet/send/plan.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "common/arena.h"
#include "common/array.h"
#include "common/base.h"
#include "common/search.h"

/* Stretches that are shorter than this are no gaps: times of windows are rounded. */
#define LEAST_GAP_NS (10 * NS_PER_MS)

/* The state while a plan is made. */
struct planning {
	const struct wire_gaps *gaps;
	const struct plan_spans *known;
	struct plan_item *items; /* malloc'ed */
	size_t n, capacity;
	struct plan_span lost;
};

static void planning_fini(struct planning *planning)
{
	free(planning->items);
}

/* Windows that are sent as one. */
struct group {
	struct plan_item item;
	bool has_overlap; /* some of them are of the same time */
};

static int item_add(struct planning *planning, int64_t start, int64_t end, int64_t seq,
		    const char *reason)
{
	int r = array_reserve(planning->items, planning->capacity, planning->n + 1);

	if (r < 0)
		return r;
	planning->items[planning->n++] = (struct plan_item){ start, end, seq, reason };
	return 0;
}

/* Returns why the daemon has no window in a stretch of time. */
static const char *gap_reason(const struct planning *planning, int64_t start, int64_t end)
{
	for (size_t i = 0; i < planning->gaps->n; i++) {
		const struct wire_gap *gap = &planning->gaps->v[i];

		if (gap->start < end && gap->end > start)
			return gap->reason;
	}
	return PLAN_AGED;
}

/* Returns the number of the first span that ends after a time. */
static size_t span_after(const struct plan_spans *known, int64_t time)
{
	/* Spans may overlap after a step of the clock; then some are looked at twice. */
	return SEARCH(known->n, i, known->v[i].end_ns <= time);
}

/*
 * Adds gaps for the parts of a stretch that the server has nothing about. `reason` is NULL if the
 * daemon says why there is a gap.
 */
static int gaps_add(struct planning *planning, int64_t start, int64_t end, const char *reason)
{
	size_t i = span_after(planning->known, start);
	int r;

	while (start < end) {
		bool has_span = i < planning->known->n && planning->known->v[i].start_ns < end;
		int64_t until = has_span ? planning->known->v[i].start_ns : end;

		if (until - start >= LEAST_GAP_NS) {
			r = item_add(planning, start, until, 0,
				     reason ? reason : gap_reason(planning, start, until));
			if (r < 0)
				return r;
		}
		if (!has_span)
			break;
		if (planning->known->v[i].end_ns > start)
			start = planning->known->v[i].end_ns;
		i++;
	}
	return 0;
}

/* True if the server has something about a part of a stretch. */
static bool is_touched(const struct planning *planning, int64_t start, int64_t end)
{
	size_t i = span_after(planning->known, start + LEAST_GAP_NS / 2);

	return i < planning->known->n && planning->known->v[i].start_ns < end - LEAST_GAP_NS / 2;
}

/* Returns the number of the slice that a window belongs to. */
static int64_t slice_of(const struct wire_window *window, int64_t each_ns)
{
	return (window->start + (window->end - window->start) / 2) / each_ns;
}

/*
 * Finds the windows that are sent as one, from number *i on: those of one slice, or those that
 * overlap, as after a step of the clock. Moves *i behind them.
 */
static struct group group_next(const struct wire_windows *windows, int64_t each_ns, size_t *i)
{
	const struct wire_window *first = &windows->v[*i];
	struct group group = { .item = { first->start, first->end, first->seq, NULL } };
	struct plan_item *item = &group.item;

	for (++*i; *i < windows->n; ++*i) {
		const struct wire_window *next = &windows->v[*i];
		bool same = each_ns > 0 && slice_of(next, each_ns) == slice_of(first, each_ns);

		if (!same && next->start >= item->end_ns)
			break;
		group.has_overlap |= next->start < item->end_ns - LEAST_GAP_NS;
		if (next->end > item->end_ns)
			item->end_ns = next->end;
	}
	return group;
}

/* True if one span that the server has is about all of a stretch. */
static bool is_whole(const struct planning *planning, const struct plan_item *item)
{
	size_t i = span_after(planning->known, item->start_ns + LEAST_GAP_NS / 2);

	return i < planning->known->n &&
	       planning->known->v[i].start_ns <= item->start_ns + LEAST_GAP_NS &&
	       planning->known->v[i].end_ns >= item->end_ns - LEAST_GAP_NS;
}

/* Plans one group, and the stretch before it, which begins at *cursor. */
static int group_plan(struct planning *planning, const struct group *group, int64_t *cursor)
{
	const struct plan_item *item = &group->item;
	bool is_lost = group->has_overlap && !is_whole(planning, item);
	int r = gaps_add(planning, *cursor, item->start_ns, NULL);

	if (r < 0)
		return r;
	if (*cursor < item->end_ns)
		*cursor = item->end_ns;
	if (!is_touched(planning, item->start_ns, item->end_ns))
		return item_add(planning, item->start_ns, item->end_ns, item->seq, NULL);
	if (is_lost)
		planning->lost = (struct plan_span){ item->start_ns, item->end_ns };
	return gaps_add(planning, item->start_ns, item->end_ns, is_lost ? PLAN_BACK : PLAN_MERGED);
}

int plan_make(const struct wire_windows_reply *windows, const struct plan_spans *known,
	      int64_t each_ns, int64_t until_ns, struct arena *arena, struct plan *out)
{
	_cleanup_(planning_fini) struct planning planning = { .gaps = &windows->gaps,
							      .known = known };
	const struct wire_windows *list = &windows->windows;
	int64_t cursor = list->n > 0 ? list->v[0].start : 0;
	size_t i = 0;
	int r;

	if (known->n > 0 && known->v[0].start_ns < cursor)
		cursor = known->v[0].start_ns;
	while (i < list->n) {
		const struct wire_window *first = &list->v[i];
		struct group group = group_next(list, each_ns, &i);

		if (each_ns > 0 && i == list->n &&
		    (slice_of(first, each_ns) + 1) * each_ns > until_ns)
			break;
		r = group_plan(&planning, &group, &cursor);
		if (r < 0)
			return r;
	}
	out->v = arena_array(arena, planning.n + 1, sizeof(*out->v));
	if (!out->v)
		return -ENOMEM;
	if (planning.n > 0)
		memcpy(out->v, planning.items, planning.n * sizeof(*out->v));
	out->n = planning.n;
	out->lost = planning.lost;
	return 0;
}

void plan_limit(struct plan *plan, int64_t since_ns)
{
	while (plan->n > 0 && plan->v->end_ns <= since_ns) {
		plan->v++;
		plan->n--;
	}
	for (size_t i = 0; i < plan->n && plan->v[i].start_ns < since_ns; i++)
		if (plan->v[i].reason)
			plan->v[i].start_ns = since_ns;
}
