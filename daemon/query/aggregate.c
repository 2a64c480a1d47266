/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/aggregate.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/query/aggregate_internal.h"

static void merge_image(struct merge *merge, const struct window_image *image,
			struct image_info *info)
{
	const struct thread_sums *sums = &image->sums;

	merge->totals.on_cpu_ns += sums->on_ns;
	merge->totals.blocked_ns += sums->blocked_ns;
	merge->totals.runnable_ns += sums->runnable_ns;
	merge->totals.throttled_ns += sums->throttled_ns;
	merge->totals.waits += sums->switches;
	merge->totals.short_waits += sums->short_count;
	merge->totals.short_ns += sums->short_blocked_ns + sums->short_runnable_ns;
	merge_short(merge, image, info);
}

/* Who the window's images are; NULL in the place of those that are not asked for. */
static struct image_info **infos_make(struct merge *merge, const struct window *window)
{
	struct image_info **infos = calloc(window->n_images + 1, sizeof(*infos)), *info;
	size_t i;

	for (i = 0; infos && i < window->n_images; i++) {
		info = info_get(merge, &window->images[i]);
		if (!info) {
			free(infos);
			return NULL;
		}
		infos[i] = info->is_wanted ? info : NULL;
	}
	return infos;
}

static void merge_opens(struct merge *merge, const struct window *window, struct image_info **infos,
			struct stack *unread)
{
	struct image_info *info;
	size_t i;

	for (i = 0; i < window->n_opens; i++) {
		info = infos[window->opens[i].image];
		if (info)
			merge_doubt(merge, window, &window->opens[i]);
		if (info && filter_has_state(merge->filter, window->opens[i].state))
			merge_open(merge, window, &window->opens[i], info, unread);
	}
}

static void merge_ended(struct merge *merge, const struct window *window, struct image_info **infos)
{
	struct image_info *info;
	size_t i;

	for (i = 0; i < window->n_rows; i++) {
		info = infos[window->rows[i].image];
		if (info && filter_has_state(merge->filter, window->rows[i].state))
			merge_row(merge, window, i, info);
	}
	for (i = 0; i < window->n_spans; i++) {
		info = infos[window->spans[i].image];
		if (info && filter_has_state(merge->filter, window->spans[i].state))
			merge_span(merge, window, &window->spans[i], info);
	}
}

static void merge_samples(struct merge *merge, const struct window *window,
			  struct image_info **infos)
{
	struct image_info *info;
	size_t i;

	for (i = 0; i < window->n_samples; i++) {
		info = infos[window->samples[i].image];
		if (info)
			merge_sample(merge, window, &window->samples[i], info);
	}
}

static void merge_window_ios(struct merge *merge, const struct window *window,
			     struct image_info **infos, bool is_last)
{
	struct image_info *info;
	size_t i;

	for (i = 0; i < window->n_ios; i++) {
		info = infos[window->ios[i].image];
		if (info)
			merge_io(merge, window, &window->ios[i], info, is_last);
	}
}

static int merge_window(struct merge *merge, const struct window *window, bool is_last,
			struct stack *unread)
{
	_cleanup_(freep) struct image_info **infos = infos_make(merge, window);
	size_t i;

	if (!infos)
		return -ENOMEM;
	for (i = 0; i < window->n_images; i++)
		if (infos[i])
			merge_image(merge, &window->images[i], infos[i]);
	if (is_last || !merge->options.open_only)
		merge_opens(merge, window, infos, unread);
	if (!merge->options.open_only)
		merge_ended(merge, window, infos);
	merge_samples(merge, window, infos);
	merge_window_ios(merge, window, infos, is_last);
	return merge->error;
}

static int merge_finish(struct merge *merge)
{
	struct merge_group *group, *next;
	struct seen *seen, *next_seen;
	size_t i = 0;

	merge->array = calloc(HASH_COUNT(merge->groups) + 1, sizeof(struct merge_group *));
	if (!merge->array)
		return -ENOMEM;
	HASH_ITER (hh, merge->groups, group, next)
		merge->array[i++] = group;
	HASH_ITER (hh, merge->threads, seen, next_seen)
		merge->totals.idle_threads += seen->is_idle;
	merge->totals.threads = HASH_COUNT(merge->threads);
	merge->totals.processes = HASH_COUNT(merge->processes);
	return merge->error;
}

/* How the waits ended that were open at the end of the list. */
static void later_index(struct merge *merge, const struct history_list *later)
{
	struct window *window;
	size_t i;

	for (i = later->n; i-- > 0;) {
		window = history_list_get(later, i);
		if (window)
			spans_index(merge, window);
		window_unref(window);
	}
}

/* The newest window of the list that can be had says which waits are open at the end. */
static int merge_next(struct merge *merge, const struct window *window, bool is_last,
		      struct stack *unread)
{
	int r;

	if (is_last) {
		merge->end_ns = window->end_ns;
		opens_index(merge, window);
	}
	/* Clocks and waits go on over windows of one run only. */
	if (is_last || window->run != merge->run)
		merge->run_end_ns = window->end_ns;
	merge->run = window->run;
	spans_index(merge, window);
	r = merge_window(merge, window, is_last, unread);
	spans_forget(merge, window);
	return r;
}

int merge_run(const struct history_list *list, const struct history_list *later,
	      const struct filter *filter, const struct merge_options *options,
	      struct stack *unread, struct merge **out)
{
	struct merge *merge = calloc(1, sizeof(*merge));
	bool is_last = true;
	size_t i;
	int r = 0;

	if (!merge)
		return -ENOMEM;
	merge->arena = arena_new();
	if (!merge->arena) {
		free(merge);
		return -ENOMEM;
	}
	merge->filter = filter;
	merge->options = *options;
	later_index(merge, later);
	for (i = list->n; i-- > 0 && !r;) {
		struct window *window = history_list_get(list, i);

		if (!window)
			continue;
		r = merge_next(merge, window, is_last, unread);
		is_last = false;
		window_unref(window);
	}
	if (!r)
		r = merge_finish(merge);
	if (r) {
		merge_free(merge);
		return r;
	}
	*out = merge;
	return 0;
}

struct merge *merge_free(struct merge *merge)
{
	if (!merge)
		return NULL;
	groups_free(merge);
	merge_ios_free(merge);
	index_free(merge);
	free(merge->array);
	arena_free(merge->arena);
	free(merge);
	return NULL;
}

struct merge_group **merge_groups(struct merge *merge, size_t *n_out)
{
	*n_out = HASH_COUNT(merge->groups);
	return merge->array;
}

const struct merge_totals *merge_totals(const struct merge *merge)
{
	return &merge->totals;
}

uint64_t merge_estimated(const struct merge *merge)
{
	return merge->estimated;
}
