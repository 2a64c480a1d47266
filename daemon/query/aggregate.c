/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/aggregate.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/query/aggregate_internal.h"

static void add_image(struct aggregate *aggregate, const struct window_image *image,
		      struct aggregate_image_info *info)
{
	const struct thread_sums *sums = &image->sums;

	aggregate->totals.on_cpu_ns += sums->on_ns;
	aggregate->totals.blocked_ns += sums->blocked_ns;
	aggregate->totals.runnable_ns += sums->runnable_ns;
	aggregate->totals.throttled_ns += sums->throttled_ns;
	aggregate->totals.waits += sums->switches;
	aggregate->totals.short_waits += sums->short_count;
	aggregate->totals.short_ns += sums->short_blocked_ns + sums->short_runnable_ns;
	aggregate_add_short(aggregate, image, info);
}

/* Who the window's images are; NULL in the place of those that are not asked for. */
static struct aggregate_image_info **infos_find(struct aggregate *aggregate,
						const struct window *window)
{
	struct aggregate_image_info **infos = calloc(window->n_images + 1, sizeof(*infos)), *info;
	size_t i;

	for (i = 0; infos && i < window->n_images; i++) {
		info = aggregate_image_info_get(aggregate, &window->images[i]);
		if (!info) {
			free(infos);
			return NULL;
		}
		infos[i] = info->is_wanted ? info : NULL;
	}
	return infos;
}

static void add_opens(struct aggregate *aggregate, const struct window *window,
		      struct aggregate_image_info **infos, struct stack *unread)
{
	struct aggregate_image_info *info;
	size_t i;

	for (i = 0; i < window->n_opens; i++) {
		info = infos[window->opens[i].image];
		if (info)
			aggregate_add_unseen(aggregate, window, &window->opens[i]);
		if (info && filter_has_state(aggregate->filter, window->opens[i].state))
			aggregate_add_open(aggregate, window, &window->opens[i], info, unread);
	}
}

static void add_ended(struct aggregate *aggregate, const struct window *window,
		      struct aggregate_image_info **infos)
{
	struct aggregate_image_info *info;
	size_t i;

	for (i = 0; i < window->n_rows; i++) {
		info = infos[window->rows[i].image];
		if (info && filter_has_state(aggregate->filter, window->rows[i].state))
			aggregate_add_row(aggregate, window, i, info);
	}
	for (i = 0; i < window->n_spans; i++) {
		info = infos[window->spans[i].image];
		if (info && filter_has_state(aggregate->filter, window->spans[i].state))
			aggregate_add_span(aggregate, window, &window->spans[i], info);
	}
}

static void add_samples(struct aggregate *aggregate, const struct window *window,
			struct aggregate_image_info **infos)
{
	struct aggregate_image_info *info;
	size_t i;

	for (i = 0; i < window->n_samples; i++) {
		info = infos[window->samples[i].image];
		if (info)
			aggregate_add_sample(aggregate, window, &window->samples[i], info);
	}
}

static void add_ios(struct aggregate *aggregate, const struct window *window,
		    struct aggregate_image_info **infos, bool is_last)
{
	struct aggregate_image_info *info;
	size_t i;

	for (i = 0; i < window->n_ios; i++) {
		info = infos[window->ios[i].image];
		if (info)
			aggregate_add_io(aggregate, window, &window->ios[i], info, is_last);
	}
}

static int add_window(struct aggregate *aggregate, const struct window *window, bool is_last,
		      struct stack *unread)
{
	_cleanup_(freep) struct aggregate_image_info **infos = infos_find(aggregate, window);
	size_t i;

	if (!infos)
		return -ENOMEM;
	for (i = 0; i < window->n_images; i++)
		if (infos[i])
			add_image(aggregate, &window->images[i], infos[i]);
	if (is_last || !aggregate->options.open_only)
		add_opens(aggregate, window, infos, unread);
	if (!aggregate->options.open_only)
		add_ended(aggregate, window, infos);
	add_samples(aggregate, window, infos);
	add_ios(aggregate, window, infos, is_last);
	return aggregate->error;
}

static int finish(struct aggregate *aggregate)
{
	struct aggregate_group *group, *next;
	struct aggregate_task *task, *next_task;
	size_t i = 0;

	aggregate->array =
		calloc(HASH_COUNT(aggregate->groups) + 1, sizeof(struct aggregate_group *));
	if (!aggregate->array)
		return -ENOMEM;
	HASH_ITER (hh, aggregate->groups, group, next)
		aggregate->array[i++] = group;
	HASH_ITER (hh, aggregate->threads, task, next_task)
		aggregate->totals.idle_threads += task->is_idle;
	aggregate->totals.threads = HASH_COUNT(aggregate->threads);
	aggregate->totals.processes = HASH_COUNT(aggregate->processes);
	return aggregate->error;
}

/* How the waits ended that were open at the end of the list. */
static void index_later(struct aggregate *aggregate, const struct history_list *later)
{
	struct window *window;
	size_t i;

	for (i = later->n; i-- > 0;) {
		window = history_list_get(later, i);
		if (window)
			aggregate_spans_index(aggregate, window);
		window_unref(window);
	}
}

/* The newest window of the list that can be had says which waits are open at the end. */
static int add_next(struct aggregate *aggregate, const struct window *window, bool is_last,
		    struct stack *unread)
{
	int r;

	if (is_last) {
		aggregate->end_ns = window->end_ns;
		aggregate_opens_index(aggregate, window);
	}
	/* Clocks and waits go on over windows of one run only. */
	if (is_last || window->run != aggregate->run)
		aggregate->run_end_ns = window->end_ns;
	aggregate->run = window->run;
	aggregate_spans_index(aggregate, window);
	r = add_window(aggregate, window, is_last, unread);
	aggregate_waits_forget(aggregate, window);
	return r;
}

int aggregate_new(const struct history_list *list, const struct history_list *later,
		  const struct filter *filter, const struct aggregate_options *options,
		  struct stack *unread, struct aggregate **out)
{
	struct aggregate *aggregate = calloc(1, sizeof(*aggregate));
	bool is_last = true;
	size_t i;
	int r = 0;

	if (!aggregate)
		return -ENOMEM;
	aggregate->arena = arena_new();
	if (!aggregate->arena) {
		free(aggregate);
		return -ENOMEM;
	}
	aggregate->filter = filter;
	aggregate->options = *options;
	index_later(aggregate, later);
	for (i = list->n; i-- > 0 && !r;) {
		struct window *window = history_list_get(list, i);

		if (!window)
			continue;
		r = add_next(aggregate, window, is_last, unread);
		is_last = false;
		window_unref(window);
	}
	if (!r)
		r = finish(aggregate);
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
	arena_free(aggregate->arena);
	free(aggregate);
	return NULL;
}

struct aggregate_group **aggregate_groups(struct aggregate *aggregate, size_t *n_out)
{
	*n_out = HASH_COUNT(aggregate->groups);
	return aggregate->array;
}

const struct aggregate_totals *aggregate_totals(const struct aggregate *aggregate)
{
	return &aggregate->totals;
}

uint64_t aggregate_estimated(const struct aggregate *aggregate)
{
	return aggregate->estimated;
}
