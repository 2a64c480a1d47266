/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/aggregate_internal.h"

void aggregate_add_row(struct aggregate *aggregate, const struct window *window, size_t place,
		       struct aggregate_image_info *info)
{
	const struct window_row *row = &window->rows[place];
	struct filter_part part = {
		.count = row->count,
		.blocked_ns = row->blocked_ns,
		.runnable_ns = row->runnable_ns,
		.throttled_ns = row->throttled_ns,
		.max_ns = row->max_ns,
		.has_max = true,
	};
	struct aggregate_item c = {
		.image = &window->images[row->image],
		.info = info,
		.state = row->state,
		.waker = window_row_waker(window, place),
	};
	struct aggregate_group *group;
	unsigned int i;

	window_row_add_buckets(window, row, part.buckets);
	if (!filter_row(aggregate->filter, &part))
		return;
	aggregate->estimated += part.is_estimate;
	c.count = part.count;
	c.blocked_ns = part.blocked_ns;
	c.runnable_ns = part.runnable_ns;
	c.throttled_ns = part.throttled_ns;
	c.max_ns = part.max_ns;
	c.max_end_real_ns = part.has_max ? row->max_end_ns + window->real_offset_ns : INT64_MAX;
	aggregate_item_set_stacks(aggregate, &c, row->kernel, row->user);
	group = aggregate_add(aggregate, &c);
	for (i = 0; group && i < WAIT_BUCKETS; i++)
		group->buckets[i] += part.buckets[i];
}

static uint64_t overlap(int64_t from, int64_t to, const struct window *window)
{
	if (from < window->start_ns)
		from = window->start_ns;
	if (to > window->end_ns)
		to = window->end_ns;
	return to > from ? (uint64_t)(to - from) : 0;
}

/* The first of what it waited for a CPU. */
static uint64_t throttled(int64_t wake_ns, uint64_t ns, const struct window *window)
{
	return ns ? overlap(wake_ns, wake_ns + (int64_t)ns, window) : 0;
}

void aggregate_add_span(struct aggregate *aggregate, const struct window *window,
			const struct window_span *span, struct aggregate_image_info *info)
{
	uint64_t ns = (uint64_t)(span->end_ns - span->start_ns);
	struct aggregate_item c = {
		.image = &window->images[span->image],
		.info = info,
		.state = span->state,
		.count = 1,
		.blocked_ns = overlap(span->start_ns, span->wake_ns, window),
		.runnable_ns = overlap(span->wake_ns, span->end_ns, window),
		.throttled_ns = throttled(span->wake_ns, span->throttled_ns, window),
		.max_ns = ns,
		.max_end_real_ns = span->end_ns + window->real_offset_ns,
	};
	struct aggregate_group *group;

	if (!filter_has_duration(aggregate->filter, ns))
		return;
	aggregate_item_set_stacks(aggregate, &c, span->kernel, span->user);
	group = aggregate_add(aggregate, &c);
	if (group)
		group->buckets[wait_bucket(ns)]++;
}

/* As the sums that it is a part of, whatever state and length are asked for. */
void aggregate_add_unseen(struct aggregate *aggregate, const struct window *window,
			  const struct window_open *open)
{
	const struct aggregate_wait *wait;

	if (open->wake_ns >= window->end_ns)
		return;
	wait = aggregate_wait_get(aggregate, window->images[open->image].uid, open->start_ns,
				  false);
	if (wait && wait->is_open_at_end && wait->is_unseen)
		aggregate->totals.unseen_ns += overlap(open->wake_ns, window->end_ns, window);
}

/*
 * The part of a wait in a window it did not end in. If it is known how it ended, it goes to the
 * stack it ended with, which is whole; else to the kernel stack taken while it lasted.
 */
void aggregate_add_open(struct aggregate *aggregate, const struct window *window,
			const struct window_open *open, struct aggregate_image_info *info,
			struct stack *unread)
{
	const struct window_image *image = &window->images[open->image];
	struct aggregate_wait *wait =
		aggregate_wait_get(aggregate, image->uid, open->start_ns, false);
	const struct window_span *span = wait && wait->has_span ? &wait->span : NULL;
	bool is_open = wait && wait->is_open_at_end;
	int64_t wake = span ? span->wake_ns : open->wake_ns;
	int64_t end = is_open ? aggregate->end_ns : span ? span->end_ns : aggregate->run_end_ns;
	struct stack *user = open->user;
	struct aggregate_item c = {
		.image = image,
		.info = info,
		.state = open->state,
		.blocked_ns = overlap(open->start_ns, wake, window),
		.runnable_ns = overlap(wake, window->end_ns, window),
		.max_ns = is_open ? (uint64_t)(aggregate->end_ns - open->start_ns) : 0,
		.max_end_real_ns = INT64_MAX,
	};
	struct aggregate_group *group;

	c.throttled_ns = throttled(wake, span ? span->throttled_ns : open->throttled_ns, window);
	if ((aggregate->options.open_only && !is_open) ||
	    !filter_has_duration(aggregate->filter, (uint64_t)(end - open->start_ns)))
		return;
	if (aggregate->options.open_only) {
		/* How long it waits, not how much of that is in the range. */
		c.blocked_ns = (uint64_t)((wake < aggregate->end_ns ? wake : aggregate->end_ns) -
					  open->start_ns);
		c.runnable_ns = c.max_ns - c.blocked_ns;
		c.throttled_ns = open->throttled_ns;
	}
	/* The last window knows it if any does. */
	if (!user && is_open)
		user = wait->user;
	if (!info->process.is_kernel && !user)
		user = unread;
	aggregate_item_set_stacks(aggregate, &c, span ? span->kernel : open->kernel,
				  span ? span->user : user);
	group = aggregate_add(aggregate, &c);
	if (!group || !is_open)
		return;
	group->open_ns += c.blocked_ns + c.runnable_ns;
	if (!wait->is_counted) {
		wait->is_counted = true;
		group->open++;
		aggregate->totals.open_waits++;
		group->unseen += wait->is_unseen;
		aggregate->totals.unseen += wait->is_unseen;
	}
}

void aggregate_add_short(struct aggregate *aggregate, const struct window_image *image,
			 struct aggregate_image_info *info)
{
	const struct thread_sums *sums = &image->sums;
	struct aggregate_item c = {
		.image = image,
		.info = info,
		.is_short = true,
		.count = sums->short_count,
		.blocked_ns = sums->short_blocked_ns,
		.runnable_ns = sums->short_runnable_ns,
	};

	if (sums->short_count && filter_has_shorts(aggregate->filter) &&
	    !aggregate->options.open_only)
		aggregate_add(aggregate, &c);
}
