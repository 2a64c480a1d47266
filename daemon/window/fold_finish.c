/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>

#include "common/base.h"
#include "daemon/window/fold_internal.h"

/*
 * Folds the entry of a thread in in.images, if the folded window keeps no row of this thread: adds
 * the entry's times to an entry of out.images that stands for several threads.
 */
static int image_fold(struct fold *fold, const struct fold_item *item, bool is_others)
{
	const struct window_image *from = &fold->in->images[item->image];
	struct fold_item use = { .image = item->image, .processes = from->folded };
	uint32_t slot;
	int r = fold_image_slot(fold, item->image, is_others, &slot);

	use.started = from->started;
	if (r)
		return r;
	thread_sums_add(&fold->out->images[slot].sums, &from->sums);
	window_estimate_add(&fold->out->images[slot].estimate, &from->estimate);
	fold->out->folded.rows += !from->folded;
	return fold_use_add(fold, slot, &use);
}

/* True if out.images has an entry for processes with the comm, exe and cgroup of this one. */
static bool has_slot(const struct fold *fold, uint32_t image)
{
	return key_table_find(&fold->slots, &fold->images[image].hash);
}

/*
 * Folds the entries of in.images for which the items were made. If max_images is set, only rows and
 * waits may need an entry of their own for a comm.
 */
static int images_fold(struct fold *fold, struct fold_item *items, size_t n)
{
	struct fold_targets targets = {};
	size_t i;
	int r = 0;

	if (fold->limits->max_images) {
		for (i = 0; i < n && !r; i++)
			r = image_fold(fold, &items[i], !has_slot(fold, items[i].image));
		return r;
	}
	r = fold_items_group(fold, items, n, &targets);
	for (i = 0; i < n && !r; i++)
		r = image_fold(fold, &items[i], targets.v[items[i].target].is_others);
	free(targets.v);
	return r;
}

/*
 * Makes items of those entries of in.images that are not in out.images so far, and stores the
 * number of items in *n_out. Entries with is_alone always stay, so this function first puts them
 * into out.images. Stores in *kept_out how many entries of in.images are in out.images then. 0 or
 * -ENOMEM.
 */
static int images_collect(struct fold *fold, struct fold_item *items, size_t *n_out,
			  size_t *kept_out)
{
	const struct window *in = fold->in;
	uint32_t i, out;
	int r;

	for (i = 0; i < in->n_images; i++) {
		if (fold->images[i].is_alone) {
			r = fold_image_keep(fold, i, &out);
			if (r)
				return r;
		}
		if (fold->images[i].kept != FOLD_NONE)
			(*kept_out)++;
		else
			items[(*n_out)++] = (struct fold_item){
				.image = i,
				.processes = in->images[i].folded,
				.ns = in->images[i].sums.on_ns,
				.waker = in->images[i].uid,
			};
	}
	return 0;
}

/*
 * Decides about those entries of in.images (threads or processes) of which no row was kept. Keeps
 * the ones with the most CPU time, until max_images entries of in.images are kept in all, and folds
 * the others. If all of them were folded, a thread that never waits would be missing in a window of
 * waits. If max_images is 0, max_rows entries are kept in its place; and if in.images has at most
 * twice max_rows entries, none of them is folded, unless it was folded before.
 */
int fold_images_finish(struct fold *fold)
{
	_cleanup_(freep) struct fold_item *items = calloc(fold->in->n_images + 1, sizeof(*items));
	size_t max = fold->limits->max_images, n = 0, kept = 0, stay, i;
	uint32_t out;
	int r = items ? images_collect(fold, items, &n, &kept) : -ENOMEM;

	if (r)
		return r;
	if (!max) {
		max = fold->limits->max_rows;
		if (fold->in->n_images <= 2 * max)
			max *= 2;
	}
	stay = fold_items_sort(fold, items, n);
	if (kept >= max || stay > max - kept)
		stay = kept < max ? max - kept : 0;
	for (i = 0; i < n && !r; i++) {
		items[i].waker = 0;
		if (i < stay)
			r = fold_image_keep(fold, items[i].image, &out);
	}
	return r ? r : images_fold(fold, items + stay, n - stay);
}
