/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/aggregate.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/query/aggregate_internal.h"

/*
 * Returns the facts about the thread with this index in window->images; NULL if the filter leaves
 * the thread out.
 */
static const struct aggregate_image_info *info_wanted(const struct aggregate_image_info *infos,
						      uint32_t image)
{
	return infos[image].is_wanted ? &infos[image] : NULL;
}

static void add_images(struct aggregate *aggregate, const struct window *window,
		       const struct aggregate_image_info *infos)
{
	struct aggregate_totals *totals = &aggregate->totals;
	size_t i;

	for (i = 0; i < window->n_images; i++) {
		const struct thread_sums *sums = &window->images[i].sums;

		if (infos[i].is_excluded)
			totals->excluded_ns += probe_kind_has(window->kind, PROBE_SAMPLES)
						       ? sums->on_ns
						       : sums->blocked_ns + sums->runnable_ns;
		if (!infos[i].is_wanted)
			continue;
		totals->on_cpu_ns += sums->on_ns;
		totals->blocked_ns += sums->blocked_ns;
		totals->runnable_ns += sums->runnable_ns;
		totals->throttled_ns += sums->throttled_ns;
		totals->waits += sums->switches;
		totals->short_waits += sums->short_count;
		totals->short_ns += sums->short_blocked_ns + sums->short_runnable_ns;
		totals->sampled_ns += window->images[i].estimate.blocked_ns +
				      window->images[i].estimate.runnable_ns;
	}
}

static void add_shorts(struct aggregate *aggregate, const struct window *window,
		       const struct aggregate_image_info *infos)
{
	for (size_t i = 0; i < window->n_images; i++)
		if (infos[i].is_wanted)
			aggregate_add_short(aggregate, window, &window->images[i], &infos[i]);
	aggregate_queue_flush(aggregate);
}

static void add_opens(struct aggregate *aggregate, const struct window *window,
		      const struct aggregate_image_info *infos, struct stack *unread, bool is_last)
{
	const struct aggregate_image_info *info;
	size_t i;

	for (i = 0; i < window->n_opens; i++) {
		const struct window_open *open = &window->opens[i];

		info = info_wanted(infos, open->image);
		if (!info || (open->count && !is_last))
			continue;
		if (!open->count)
			aggregate_add_unseen(aggregate, window, open);
		if (!filter_has_state(aggregate->filter, open->state))
			continue;
		if (open->count)
			aggregate_add_folded_open(aggregate, open, &window->images[open->image],
						  info);
		else
			aggregate_add_open(aggregate, window, open, info, unread);
	}
}

static bool is_cancelled(const struct aggregate *aggregate)
{
	const atomic_bool *flag = aggregate->options.is_cancelled;

	return flag && atomic_load(flag);
}

/*
 * True if element i of a window is to be added. False if the client has hung up; this is looked at
 * now and then, because filters for functions can take long.
 */
static bool may_add(const struct aggregate *aggregate, size_t i)
{
	enum { CHECK_EACH = 64 };

	return i % CHECK_EACH || !is_cancelled(aggregate);
}

static void add_ended(struct aggregate *aggregate, const struct window *window,
		      struct aggregate_image_info *infos)
{
	const struct aggregate_image_info *info;
	size_t i;

	for (i = 0; i < window->n_rows && may_add(aggregate, i); i++)
		if (infos[window->rows[i].image].is_wanted &&
		    filter_has_state(aggregate->filter, window->rows[i].state))
			aggregate_add_row(aggregate, window, i, &infos[window->rows[i].image]);
	aggregate_queue_flush(aggregate);
	for (i = 0; i < window->n_spans && may_add(aggregate, i); i++) {
		info = info_wanted(infos, window->spans[i].image);
		if (info && filter_has_state(aggregate->filter, window->spans[i].state))
			aggregate_add_span(aggregate, window, &window->spans[i], info);
	}
}

static int add_window(struct aggregate *aggregate, const struct window *window, bool is_last,
		      struct stack *unread)
{
	_cleanup_(freep) struct aggregate_image_info *infos =
		aggregate_infos_make(aggregate, window);
	const struct aggregate_image_info *info;
	size_t i;

	if (!infos)
		return -ENOMEM;
	aggregate->n_windows++;
	window_folded_add(&aggregate->folded, &window->folded);
	window_cost_add(&aggregate->cost, &window->cost);
	if (window_pressure_add(&aggregate->pressure, &window->pressure))
		return -ENOMEM;
	window_spawns_add(&aggregate->spawns, &window->spawns);
	if (window_held_add(&aggregate->held, &window->held))
		return -ENOMEM;
	if (window->sample_below_ns > aggregate->sample_below_ns)
		aggregate->sample_below_ns = window->sample_below_ns;
	add_images(aggregate, window, infos);
	if (is_last || !aggregate->options.open_only)
		add_opens(aggregate, window, infos, unread, is_last);
	if (!aggregate->options.open_only) {
		add_ended(aggregate, window, infos);
		add_shorts(aggregate, window, infos);
	}
	for (i = 0; i < window->n_samples && may_add(aggregate, i); i++) {
		info = info_wanted(infos, window->samples[i].image);
		if (info)
			aggregate_add_sample(aggregate, window, &window->samples[i], info);
	}
	aggregate_queue_flush(aggregate);
	for (i = 0; i < window->n_ios && may_add(aggregate, i); i++) {
		info = info_wanted(infos, window->ios[i].image);
		if (info)
			aggregate_add_io(aggregate, window, &window->ios[i], info, is_last);
	}
	return is_cancelled(aggregate) ? -ECANCELED : aggregate->error;
}

/*
 * Aggregates the windows [first, end) of the list, the newest one first. Only the newest window has
 * the waits that have not ended by the end of the range, and these must be known before the other
 * windows are read.
 */
static int add_windows(struct aggregate *aggregate, const struct timeline_list *list, size_t first,
		       size_t end, struct stack *unread)
{
	bool is_last = true;
	uint64_t run;
	size_t i;
	int r = 0;

	for (i = end; i-- > first && !r;) {
		struct window *window;

		if (is_cancelled(aggregate))
			return -ECANCELED;
		window = timeline_window(list, i);
		if (!window)
			continue;
		if (is_last) {
			aggregate->end_ns = window->end_ns;
			aggregate->end_real_ns = window->end_ns + window->real_offset_ns;
			aggregate_opens_index(aggregate, window);
		}
		/*
		 * Waits are not followed from one run of stackd to the next. A wait that did not
		 * end in its run is assumed to last until the end of the newest window of that run.
		 */
		run = list->entries ? list->entries[i].run : window->run;
		if (is_last || run != aggregate->run)
			aggregate->run_end_ns = window->end_ns;
		aggregate->run = run;
		aggregate_slots_next(aggregate, window);
		aggregate_spans_index(aggregate, window);
		r = add_window(aggregate, window, is_last, unread);
		aggregate_waits_drop(aggregate, window);
		is_last = false;
		window_unref(window);
	}
	return r;
}

static void index_later(struct aggregate *aggregate, const struct timeline_list *later)
{
	struct window *window;
	size_t i;

	for (i = later->n; i-- > 0 && !is_cancelled(aggregate);) {
		window = timeline_window(later, i);
		if (window)
			aggregate_spans_index(aggregate, window);
		window_unref(window);
	}
}

/*
 * Adds folded processes to the totals. A folded entry of window->images stands for several
 * processes, but the totals count it as one process with one thread so far. Adds its other
 * processes, each with one thread, because a process has at least one.
 */
static void count_folded(struct aggregate *aggregate)
{
	const struct aggregate_folded *folded, *next;
	uint32_t more;

	HASH_ITER (hh, aggregate->folded_images, folded, next) {
		more = window_processes(folded->processes, folded->started) - 1;
		aggregate->totals.threads += more;
		aggregate->totals.processes += more;
	}
}

/*
 * True if nothing is left of a group of short waits, because other groups have all of it. Of a
 * line, which is about time, nothing is left without time, whatever its number of waits.
 */
static bool short_is_empty(const struct aggregate_group *group)
{
	return group->is_short && !group->blocked_ns && !group->runnable_ns &&
	       (!group->count || group->line);
}

/* Removes from aggregate->array the groups of short waits of which nothing is left. */
static void shorts_drop(struct aggregate *aggregate)
{
	size_t i, n = 0;

	for (i = 0; i < aggregate->n_groups; i++)
		if (!short_is_empty(aggregate->array[i]))
			aggregate->array[n++] = aggregate->array[i];
	aggregate->n_groups = n;
}

/* Sets the numbers of threads and processes in the totals, and makes the array of groups. */
static int finish(struct aggregate *aggregate)
{
	struct aggregate_group *group;
	size_t i = 0, k, at = 0;

	aggregate->array = calloc(aggregate->groups.n + 2, sizeof(struct aggregate_group *));
	if (!aggregate->array)
		return -ENOMEM;
	while ((group = key_index_next(&aggregate->groups, &at)))
		aggregate->array[i++] = group;
	for (k = 0; k < ARRAY_SIZE(aggregate->rest); k++)
		if (aggregate->rest[k])
			aggregate->array[i++] = aggregate->rest[k];
	aggregate->n_groups = i;
	aggregate_estimates_settle(aggregate);
	shorts_drop(aggregate);
	aggregate->totals.idle_threads = aggregate_set_marked(&aggregate->threads);
	aggregate->totals.threads = aggregate_set_count(&aggregate->threads);
	aggregate->totals.processes = aggregate_set_count(&aggregate->processes);
	/* The rows may be read for minutes yet, and do not need the sets. */
	aggregate_set_fini(&aggregate->threads);
	aggregate_set_fini(&aggregate->processes);
	count_folded(aggregate);
	return aggregate->error;
}

int aggregate_new(const struct timeline_list *list, const struct timeline_list *later,
		  const struct filter *filter, const struct aggregate_options *options,
		  struct stack *unread, struct aggregate **out)
{
	return aggregate_new_part(list, 0, list->n, later, NULL, filter, options, unread, out);
}

/* Does the work of aggregate_new_part() on a new object, which has the filter and the options. */
static int aggregate_fill(struct aggregate *aggregate, const struct timeline_list *list,
			  size_t first, size_t end, const struct timeline_list *later,
			  struct aggregate *newer, struct stack *unread)
{
	const struct filter *filter = aggregate->filter;
	int r = aggregate_seen_init(aggregate);

	if (r)
		return r;
	if (filter_selects_functions(filter)) {
		aggregate->functions = function_search_new(filter->wire, aggregate->arena);
		if (!aggregate->functions)
			return -ENOMEM;
	}
	if (newer)
		aggregate_waits_take(aggregate, newer);
	else
		index_later(aggregate, later);
	r = add_windows(aggregate, list, first, end, unread);
	if (r)
		return r;
	return finish(aggregate);
}

int aggregate_new_part(const struct timeline_list *list, size_t first, size_t end,
		       const struct timeline_list *later, struct aggregate *newer,
		       const struct filter *filter, const struct aggregate_options *options,
		       struct stack *unread, struct aggregate **out)
{
	struct aggregate *aggregate = calloc(1, sizeof(*aggregate));
	int r;

	if (!aggregate)
		return -ENOMEM;
	aggregate->arena = arena_new();
	if (!aggregate->arena) {
		free(aggregate);
		return -ENOMEM;
	}
	aggregate->filter = filter;
	aggregate->options = *options;
	aggregate->needs_reasons = aggregate_needs_reasons(filter, options);
	aggregate->needs_functions = aggregate_needs_functions(filter, options);
	aggregate->last_counted.pid = -1;
	aggregate_groups_limit(aggregate);
	aggregate_slots_init(aggregate, list, first, end);
	r = aggregate_fill(aggregate, list, first, end, later, newer, unread);
	if (r) {
		aggregate_free(aggregate);
		return r;
	}
	*out = aggregate;
	return 0;
}

struct aggregate *aggregate_free(struct aggregate *aggregate)
{
	if (!aggregate)
		return NULL;
	aggregate_groups_free(aggregate);
	aggregate_io_groups_free(aggregate);
	aggregate_index_free(aggregate);
	free(aggregate->array);
	window_pressure_fini(&aggregate->pressure);
	window_spawns_fini(&aggregate->spawns);
	window_held_fini(&aggregate->held);
	arena_free(aggregate->arena);
	free(aggregate);
	return NULL;
}

struct aggregate_group **aggregate_groups(struct aggregate *aggregate, size_t *n_out)
{
	*n_out = aggregate->n_groups;
	return aggregate->array;
}

struct aggregate_others aggregate_others(const struct aggregate *aggregate)
{
	return (struct aggregate_others){
		.groups = aggregate->others.groups,
		.bound_ns = aggregate->lacks.bound_ns,
		.bound_count = aggregate->lacks.bound_count,
	};
}

uint64_t aggregate_missing_ns(const struct aggregate *aggregate)
{
	uint64_t whole = aggregate->totals.blocked_ns + aggregate->totals.runnable_ns, ns = 0;
	size_t i;

	for (i = 0; i < aggregate->n_groups; i++)
		ns += aggregate->array[i]->blocked_ns + aggregate->array[i]->runnable_ns;
	return whole > ns ? whole - ns : 0;
}

bool aggregate_has_others(const struct aggregate *aggregate)
{
	return aggregate->has_others;
}

const struct window_folded *aggregate_folded(const struct aggregate *aggregate)
{
	return &aggregate->folded;
}

const struct window_cost *aggregate_cost(const struct aggregate *aggregate)
{
	return &aggregate->cost;
}

const struct window_pressure *aggregate_pressure(const struct aggregate *aggregate)
{
	return &aggregate->pressure;
}

const struct window_spawns *aggregate_spawns(const struct aggregate *aggregate)
{
	return &aggregate->spawns;
}

const struct window_held *aggregate_held(const struct aggregate *aggregate)
{
	return &aggregate->held;
}

int64_t aggregate_longest_since(const struct aggregate *aggregate,
				const struct aggregate_group *group)
{
	if (!group->max_ns)
		return 0;
	if (group->max_end_real_ns != INT64_MAX)
		return group->max_end_real_ns - (int64_t)group->max_ns;
	return group->open ? aggregate->end_real_ns - (int64_t)group->max_ns : 0;
}

const struct aggregate_totals *aggregate_totals(const struct aggregate *aggregate)
{
	return &aggregate->totals;
}

int64_t aggregate_sample_below(const struct aggregate *aggregate)
{
	return aggregate->sample_below_ns;
}

uint64_t aggregate_estimated(const struct aggregate *aggregate)
{
	return aggregate->estimated;
}
