/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/aggregate_internal.h"

#include "daemon/window/row_sums.h"

/*
 * True if the sampled rows of a thread take parts of the exact sum of its short waits, so that all
 * of its rows add up to that. Else they have estimates, of which the sum is exact for all threads
 * together only. Where rows are of threads or processes, what matters is how long each waited; the
 * rows of one thread only tell which part of that was idle, and for what. No use if the filter asks
 * for something that the sums do not tell.
 */
static bool uses_sums(const struct aggregate *aggregate, const struct window *window)
{
	enum group_by group = aggregate->options.group;
	enum aggregate_by by = aggregate->options.by;

	if (!probe_kind_has(window->kind, PROBE_OPEN_WAITS) ||
	    !filter_has_all_shorts(aggregate->filter))
		return false;
	if (group)
		return group == GROUP_BY_COMM || group_by_is_of_cgroup(group);
	return by == AGGREGATE_BY_THREAD || by == AGGREGATE_BY_PROCESS;
}

/*
 * Takes from an exact sum what belongs to a part of its estimate: *part is set to that, and added
 * to *taken. Rounds up, so that all parts together take all of it, and not more.
 */
static void take_part(uint64_t *part, uint64_t exact, uint64_t estimate, uint64_t *taken)
{
	__extension__ unsigned __int128 product = (unsigned __int128)*part * exact;
	uint64_t share = estimate ? (uint64_t)((product + estimate - 1) / estimate) : 0;

	*part = share < exact - *taken ? share : exact - *taken;
	*taken += *part;
}

/* Gives a sampled row its parts of the exact sums of its thread, see uses_sums(). */
static void sums_take(struct filter_sums *sums, const struct window_image *image,
		      struct window_estimate *taken)
{
	const struct thread_sums *exact = &image->sums;
	const struct window_estimate *estimate = &image->estimate;

	take_part(&sums->count, exact->short_count, estimate->count, &taken->count);
	take_part(&sums->blocked_ns, exact->short_blocked_ns, estimate->blocked_ns,
		  &taken->blocked_ns);
	take_part(&sums->runnable_ns, exact->short_runnable_ns, estimate->runnable_ns,
		  &taken->runnable_ns);
	if (sums->throttled_ns > sums->runnable_ns)
		sums->throttled_ns = sums->runnable_ns;
}

/*
 * Fills in an item for a row of waits, but for its stacks, and adds to it the figures of `sums`,
 * which are those of the row, or those of the waits in it that the filter selects.
 */
static void item_set_row(struct aggregate_item *item, const struct window *window, size_t i,
			 const struct aggregate_image_info *info, const struct filter_sums *sums)
{
	const struct window_row *row = &window->rows[i];

	item->image = &window->images[row->image];
	item->info = info;
	item->state = row->state & ~STATE_SAMPLED;
	item->waker = window_row_waker(window, i);
	item->processes = row->processes;
	item->started = row->started;
	WAIT_MEASURES_SET(item, sums);
	if (row->state & STATE_SAMPLED)
		item->sampled = (struct window_estimate){
			.count = sums->count,
			.blocked_ns = sums->blocked_ns,
			.runnable_ns = sums->runnable_ns,
		};
	item->max_ns = sums->max_ns;
	item->max_end_real_ns =
		sums->has_max ? row->max_end_ns + window->real_offset_ns : INT64_MAX;
	if (sums->has_max)
		item->culprits = row->culprits;
}

/* Adds the waits of a row of which the filter selects some lengths only. */
static void row_add_filtered(struct aggregate *aggregate, const struct window *window, size_t i,
			     const struct aggregate_image_info *info, struct filter_sums *sums)
{
	const struct window_row *row = &window->rows[i];
	struct aggregate_item item = {};
	struct aggregate_group *group;
	unsigned int k;

	window_row_add_buckets(window, row, sums->buckets);
	if (!filter_row(aggregate->filter, sums))
		return;
	item_set_row(&item, window, i, info, sums);
	if (!aggregate_item_set_stacks(aggregate, &item, row->kernel, row->user))
		return;
	aggregate->estimated += sums->is_estimate;
	group = aggregate_add(aggregate, &item);
	if (!group)
		return;
	group->is_estimate |= sums->is_estimate;
	for (k = 0; k < WAIT_BUCKETS; k++)
		group->buckets[k] += sums->buckets[k];
}

void aggregate_add_row(struct aggregate *aggregate, const struct window *window, size_t i,
		       struct aggregate_image_info *info)
{
	const struct window_row *row = &window->rows[i];
	struct filter_sums sums;
	struct aggregate_queued *queued;

	sums = (struct filter_sums){
		.max_ns = row->max_ns,
		.has_max = true,
		.stands_ns = row->state & STATE_SAMPLED ? (uint64_t)window->sample_below_ns : 0,
	};
	WAIT_MEASURES_SET(&sums, row);
	if (row->state & STATE_SAMPLED && uses_sums(aggregate, window))
		sums_take(&sums, &window->images[row->image], &info->taken);
	if (!filter_has_whole_row(aggregate->filter, row->max_ns)) {
		row_add_filtered(aggregate, window, i, info, &sums);
		return;
	}
	queued = aggregate_queue_place(aggregate);
	item_set_row(&queued->item, window, i, info, &sums);
	if (!aggregate_item_set_stacks(aggregate, &queued->item, row->kernel, row->user))
		return;
	queued->row = row;
	queued->window = window;
	aggregate_queue_put(aggregate);
}

void aggregate_add_span(struct aggregate *aggregate, const struct window *window,
			const struct window_span *span, const struct aggregate_image_info *info)
{
	const struct window_row part = row_of_span(window, span);
	struct aggregate_item item = {
		.image = &window->images[span->image],
		.info = info,
		.state = span->state,
		.max_ns = part.max_ns,
		.max_end_real_ns = span->end_ns + window->real_offset_ns,
		.culprits = span->culprits,
	};
	struct aggregate_group *group;

	if (!filter_has_duration(aggregate->filter, part.max_ns))
		return;
	WAIT_MEASURES_SET(&item, &part);
	if (!aggregate_item_set_stacks(aggregate, &item, span->kernel, span->user))
		return;
	group = aggregate_add(aggregate, &item);
	if (group)
		group->buckets[wait_bucket(part.max_ns)]++;
}

/*
 * True if the wait may have been over at the end of this window: its thread could not be inspected,
 * and nothing later shows that it still waited.
 */
static bool is_doubtful(const struct window_open *open, const struct aggregate_wait *wait)
{
	if (!(open->state & STATE_UNSEEN))
		return false;
	return !wait || (!wait->has_span && (!wait->is_open_at_end || wait->is_unseen));
}

void aggregate_add_unseen(struct aggregate *aggregate, const struct window *window,
			  const struct window_open *open)
{
	const struct aggregate_wait *wait;

	if (open->wake_ns >= window->end_ns)
		return;
	wait = aggregate_wait_find(aggregate, window->images[open->image].uid, open->start_ns);
	if (is_doubtful(open, wait))
		aggregate->totals.unseen_ns += window_overlap_ns(open->wake_ns, INT64_MAX,
								 window->start_ns, window->end_ns);
}

/*
 * Sets the times of the item to the part of a wait that lies in the window. The wait `open` had not
 * ended at the end of the window.
 */
static void item_set_part(struct aggregate_item *item, const struct window *window,
			  const struct window_open *open, const struct window_span *span)
{
	const struct window_row part = row_of_wait(
		open->start_ns, span ? span->wake_ns : open->wake_ns,
		span ? span->throttled_ns : open->throttled_ns, window->start_ns, window->end_ns);

	WAIT_MEASURES_SET(item, &part);
}

/*
 * Sets the times of the item to the whole time of a wait that has not ended: from start_ns, which
 * may be before the range, to end_ns.
 */
static void item_set_whole(struct aggregate_item *item, const struct window_open *open,
			   int64_t start_ns, int64_t wake_ns, int64_t end_ns)
{
	int64_t blocked_until = wake_ns < end_ns ? wake_ns : end_ns;

	item->blocked_ns = (uint64_t)(blocked_until - start_ns);
	item->runnable_ns = (uint64_t)(end_ns - blocked_until);
	item->throttled_ns = open->throttled_ns;
}

/*
 * Sets the stacks of an item for a wait that has not ended, or that ended in a later window.
 * Returns false if the filter leaves it out because of its reason.
 */
static bool item_set_open_stacks(struct aggregate *aggregate, struct aggregate_item *item,
				 const struct window_open *open, const struct aggregate_wait *wait,
				 struct stack *unread)
{
	struct stack *user = open->user;

	if (wait && wait->has_span)
		return aggregate_item_set_stacks(aggregate, item, wait->span.kernel,
						 wait->span.user);
	/*
	 * The wait has not ended. If its user stack was read in any window, the wait's entry in the
	 * last window has this stack.
	 */
	if (!user && wait && wait->is_open_at_end)
		user = wait->user;
	if (!user && !item->info->process.is_kernel)
		user = unread;
	return aggregate_item_set_stacks(aggregate, item, open->kernel, user);
}

/*
 * Counts a wait that had not ended at the end of the range. Counts it only once, even if several
 * windows have it.
 */
static void count_open(struct aggregate *aggregate, struct aggregate_group *group,
		       struct aggregate_wait *wait)
{
	if (wait->is_counted)
		return;
	wait->is_counted = true;
	group->open++;
	group->unseen += wait->is_unseen;
	aggregate->totals.open_waits++;
	aggregate->totals.unseen += wait->is_unseen;
}

/*
 * Returns when a wait began: in answers about waits that have not ended, one that is a later step
 * began with the first one.
 */
static int64_t start_of(struct aggregate *aggregate, const struct window *window,
			const struct window_open *open)
{
	const int64_t offset_ns = window->real_offset_ns;
	int64_t start_ns;

	if (!aggregate->options.open_only || !window->held.n)
		return open->start_ns;
	start_ns = window_held_first_step(&window->held, window->images[open->image].tid,
					  open->start_ns + offset_ns, window->end_ns + offset_ns);
	return start_ns - offset_ns;
}

void aggregate_add_open(struct aggregate *aggregate, const struct window *window,
			const struct window_open *open, const struct aggregate_image_info *info,
			struct stack *unread)
{
	const struct window_image *image = &window->images[open->image];
	struct aggregate_wait *wait = aggregate_wait_find(aggregate, image->uid, open->start_ns);
	const struct window_span *span = wait && wait->has_span ? &wait->span : NULL;
	bool is_open = wait && wait->is_open_at_end;
	int64_t end_ns = is_open ? aggregate->end_ns : span ? span->end_ns : aggregate->run_end_ns;
	int64_t start_ns = start_of(aggregate, window, open);
	struct aggregate_item item = {
		.image = image,
		.info = info,
		.state = open->state,
		.max_ns = is_open ? (uint64_t)(end_ns - start_ns) : 0,
		.max_end_real_ns = INT64_MAX,
		.is_step = start_ns < open->start_ns,
	};
	struct aggregate_group *group;

	if (!filter_has_duration(aggregate->filter, (uint64_t)(end_ns - start_ns)))
		return;
	if (!aggregate->options.open_only)
		item_set_part(&item, window, open, span);
	else if (is_open)
		item_set_whole(&item, open, start_ns, span ? span->wake_ns : open->wake_ns, end_ns);
	else
		return;
	if (is_doubtful(open, wait))
		item.runnable_ns = item.throttled_ns = 0; /* it may have run since its wakeup */
	if (!item_set_open_stacks(aggregate, &item, open, wait, unread))
		return;
	group = aggregate_add(aggregate, &item);
	if (!group || !is_open)
		return;
	group->open_ns += item.blocked_ns + item.runnable_ns;
	aggregate->totals.step_waits += item.is_step;
	count_open(aggregate, group, wait);
}

void aggregate_add_folded_open(struct aggregate *aggregate, const struct window_open *open,
			       const struct window_image *image,
			       const struct aggregate_image_info *info)
{
	bool is_unseen = open->state & STATE_UNSEEN;
	struct aggregate_item item = {
		.image = image,
		.info = info,
		.state = open->state,
		.max_ns = (uint64_t)(aggregate->end_ns - open->start_ns),
		.max_end_real_ns = INT64_MAX,
		.processes = open->processes,
		.started = open->started,
	};
	struct aggregate_group *group;

	if (!filter_has_duration(aggregate->filter, item.max_ns))
		return;
	if (aggregate->options.open_only) {
		item.blocked_ns = open->whole_ns - open->whole_runnable_ns;
		item.runnable_ns = is_unseen ? 0 : open->whole_runnable_ns;
		item.throttled_ns = is_unseen ? 0 : open->throttled_ns;
	}
	if (!aggregate_item_set_stacks(aggregate, &item, open->kernel, open->user))
		return;
	group = aggregate_add(aggregate, &item);
	if (!group)
		return;
	group->open_ns += item.blocked_ns + item.runnable_ns;
	group->open += open->count;
	aggregate->totals.open_waits += open->count;
	if (!is_unseen)
		return;
	group->unseen += open->count;
	aggregate->totals.unseen += open->count;
	aggregate->totals.unseen_ns += open->whole_runnable_ns;
}

void aggregate_add_short(struct aggregate *aggregate, const struct window *window,
			 const struct window_image *image, const struct aggregate_image_info *info)
{
	const struct thread_sums *sums = &image->sums;
	struct aggregate_item *item;

	if (!probe_kind_has(window->kind, PROBE_OPEN_WAITS))
		return; /* offwake has no exact sums */
	if ((!sums->short_count && !image->estimate.count) ||
	    !filter_has_shorts(aggregate->filter) || aggregate->options.open_only)
		return;
	item = &aggregate_queue_place(aggregate)->item;
	item->image = image;
	item->info = info;
	item->is_short = true;
	item->count = sums->short_count - info->taken.count;
	item->blocked_ns = sums->short_blocked_ns - info->taken.blocked_ns;
	item->runnable_ns = sums->short_runnable_ns - info->taken.runnable_ns;
	item->processes = image->folded;
	item->started = image->started;
	if (!uses_sums(aggregate, window))
		item->deducted = image->estimate;
	aggregate_queue_put(aggregate);
}
