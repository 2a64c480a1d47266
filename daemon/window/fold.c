/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/window/fold.h"

#include <errno.h>
#include <string.h>

#include "daemon/window/fold_internal.h"

static bool has_many_images(const struct window *window, const struct window_fold_limits *limits)
{
	size_t n = 0, i;

	if (!limits->max_images)
		return window->n_images > 2 * limits->max_rows;
	for (i = 0; i < window->n_images; i++)
		n += !window->images[i].folded;
	return n > limits->max_images;
}

/* True if one of the window's arrays has more members than `limits` allow. */
static bool is_too_large(const struct window *window, const struct window_fold_limits *limits)
{
	size_t max = limits->max_rows;

	return window->n_rows > max || window->n_spans > max || window->n_opens > max ||
	       window->n_samples > max || window->n_ios > max || has_many_images(window, limits);
}

/*
 * Returns a new window that has all members of `in` except for the arrays; NULL when out of memory.
 */
static struct window *head_copy(const struct window *in)
{
	struct window *out = window_new();

	if (!out)
		return NULL;
	out->run = in->run;
	out->seq = in->seq;
	out->merged_from = in->merged_from;
	out->session = in->session;
	out->folding = in->folding;
	out->kind = in->kind;
	out->start_ns = in->start_ns;
	out->end_ns = in->end_ns;
	out->real_offset_ns = in->real_offset_ns;
	out->boot_offset_ns = in->boot_offset_ns;
	out->sample_below_ns = in->sample_below_ns;
	out->folded = in->folded;
	memcpy(out->lost, in->lost, sizeof(out->lost));
	out->lost_ns = in->lost_ns;
	out->switch_ins = in->switch_ins;
	out->sampled = in->sampled;
	out->cost = in->cost;
	if (window_pressure_add(&out->pressure, &in->pressure) ||
	    window_held_add(&out->held, &in->held)) {
		window_unref(out);
		return NULL;
	}
	window_spawns_add(&out->spawns, &in->spawns);
	window_spawns_limit(&out->spawns, WINDOW_SPAWNS_MAX);
	return out;
}

static int fold_run(struct fold *fold)
{
	int r = fold_images_init(fold);

	if (r)
		return r;
	r = fold_images_limit(fold);
	if (r)
		return r;
	r = fold_waits(fold);
	if (r)
		return r;
	r = fold_samples(fold);
	if (r)
		return r;
	r = fold_ios(fold);
	if (r)
		return r;
	r = row_sums_finish(&fold->sums, fold->out);
	if (r)
		return r;
	r = fold_images_finish(fold);
	return r ? r : fold_members_finish(fold);
}

static int window_rebuild(const struct window *in, const struct window_fold_limits *limits,
			  struct window **out)
{
	struct fold fold = {
		.in = in,
		.limits = limits,
		.out = head_copy(in),
		.slots = KEY_TABLE(struct fold_slot),
		.cgroups = KEY_TABLE(struct fold_slot),
		.sums = ROW_SUMS,
	};
	int r = fold.out ? fold_run(&fold) : -ENOMEM;

	fold_images_fini(&fold);
	row_sums_fini(&fold.sums);
	if (r) {
		window_unref(fold.out);
		return r;
	}
	window_seal(fold.out);
	*out = fold.out;
	return 0;
}

int window_fold(struct window *window, const struct window_fold_limits *limits, struct window **out)
{
	struct window view = *window, *rows = NULL;
	int r = 0;

	if (limits->max_rows)
		r = fold_preempted(window, limits->preempted_percent, &rows);
	if (r)
		return r;
	if (rows) {
		view.rows = rows->rows;
		view.n_rows = rows->n_rows;
		view.buckets = rows->buckets;
		view.n_buckets = rows->n_buckets;
	}
	if (rows || (limits->max_rows && is_too_large(&view, limits)))
		r = window_rebuild(&view, limits, out);
	else
		*out = window_ref(window);
	window_unref(rows);
	return r;
}
