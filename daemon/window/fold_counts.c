/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/base/hash.h"
#include "daemon/window/fold_internal.h"

static uint64_t sample_ns(const struct window_sample *sample)
{
	return sample->on_ns ? sample->on_ns : sample->count;
}

static void sample_items(const struct fold *fold, struct fold_item *items)
{
	const struct window *in = fold->in;
	size_t i;

	for (i = 0; i < in->n_samples; i++) {
		const struct window_sample *sample = &in->samples[i];

		items[i] = (struct fold_item){
			.source = (uint32_t)i,
			.ns = sample_ns(sample),
			.kernel = sample->kernel,
			.user = sample->user,
			/*
			 * Answers group samples by function: stacks with the same functions count
			 * as equal.
			 */
			.places = { stack_functions(sample->kernel),
				    stack_functions(sample->user) },
			.image = sample->image,
			.processes = sample->processes,
			.started = sample->started,
			.is_idle = fold->images[sample->image].is_alone,
		};
	}
}

static int sample_keep(struct fold *fold, uint32_t source)
{
	struct window_sample sample = fold->in->samples[source];
	int r = fold_image_keep(fold, sample.image, &sample.image);

	return r ? r : row_sums_add_sample(&fold->sums, &sample);
}

static int sample_fold(struct fold *fold, const struct fold_item *item, struct fold_target *target)
{
	struct window_sample sample = fold->in->samples[item->source];

	sample.kernel = target->kernel;
	sample.user = target->user;
	sample.image = target->image;
	sample.processes = target->processes;
	sample.started = target->started;
	target->processes = target->started = 0;
	fold->out->folded.ns += item->is_sum ? 0 : sample.on_ns;
	fold->out->folded.rows += !item->is_sum;
	return row_sums_add_sample(&fold->sums, &sample);
}

static uint64_t stack_id(const struct stack *stack)
{
	return stack ? stack->id : 0;
}

static int stack_id_compare(const struct fold_item *a, const struct fold_item *b)
{
	uint64_t x = stack_id(a->kernel), y = stack_id(b->kernel);

	if (x == y) {
		x = stack_id(a->user);
		y = stack_id(b->user);
	}
	return x < y ? -1 : x > y;
}

/*
 * Compares samples for sorting: puts samples of one entry of window.images next to each other if
 * their stacks have the same functions.
 */
static int function_compare(const void *x, const void *y)
{
	const struct fold_item *a = x, *b = y;
	int r;

	if (a->image != b->image)
		return a->image < b->image ? -1 : 1;
	r = memcmp(a->places, b->places, sizeof(a->places));
	if (r)
		return r;
	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return stack_id_compare(a, b);
}

/*
 * Adds up samples of the same entry of window.images if their stacks have the same functions and
 * differ only in the addresses within these functions. Answers add up such samples anyway, and
 * otherwise each address would take one of the rows that may stay. *view gets an array of samples
 * of its own, which the caller frees. 0 or -ENOMEM.
 */
static int samples_merge(const struct fold *fold, struct fold_item *items, struct window *view)
{
	size_t i, n = 0;

	view->samples = calloc(view->n_samples + 1, sizeof(*view->samples));
	if (!view->samples)
		return -ENOMEM;
	qsort(items, view->n_samples, sizeof(*items), function_compare);
	for (i = 0; i < view->n_samples; i++) {
		const struct window_sample *sample = &fold->in->samples[items[i].source];

		if (i == 0 || items[i].image != items[i - 1].image ||
		    items[i].processes != items[i - 1].processes ||
		    memcmp(items[i].places, items[i - 1].places, sizeof(items[i].places)) != 0) {
			view->samples[n++] = *sample;
			continue;
		}
		view->samples[n - 1].count += sample->count;
		view->samples[n - 1].on_ns += sample->on_ns;
	}
	view->n_samples = n;
	return 0;
}

/*
 * Sums up n items, which do not stay as they are. First finds the processes whose sums stay whole.
 * 0 or -ENOMEM.
 */
static int counts_sum(struct fold *fold, struct fold_item *items, size_t n, fold_add add)
{
	_cleanup_(freep) uint64_t *rest_ns = calloc(fold->in->n_images + 1, sizeof(*rest_ns));
	size_t i;
	int r;

	if (!n)
		return 0;
	if (!rest_ns)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		rest_ns[items[i].image] += items[i].ns;
	r = fold_own_find(fold, rest_ns);
	return r ? r : fold_items_sum(fold, items, n, true, add);
}

static int samples_fold(struct fold *fold, struct fold_item *items)
{
	size_t n = fold->in->n_samples, stay = 0, i;
	int r;

	sample_items(fold, items);
	r = fold_items_choose(fold, items, n, false, &stay);
	for (i = 0; i < stay && !r; i++)
		r = sample_keep(fold, items[i].source);
	return r ? r : counts_sum(fold, items + stay, n - stay, sample_fold);
}

int fold_samples(struct fold *fold)
{
	const struct window *in = fold->in;
	_cleanup_(freep) struct fold_item *items = calloc(in->n_samples + 1, sizeof(*items));
	struct window view = *in;
	int r = 0;

	if (!items)
		return -ENOMEM;
	if (in->n_samples > fold->limits->max_rows) {
		sample_items(fold, items);
		r = samples_merge(fold, items, &view);
		fold->in = &view;
	}
	if (!r)
		r = samples_fold(fold, items);
	fold->in = in;
	if (view.samples != in->samples)
		free(view.samples);
	return r;
}

/*
 * Returns a hash of the values that must be equal in rows of I/O operations that are summed up into
 * one row. The hash does not include the stacks.
 */
static uint64_t io_extra(const struct window_io *io)
{
	const uint32_t words[] = { io->layer, io->op,	   io->call,	 io->dev,
				   io->magic, io->is_slow, io->open != 0 };

	return hash64(hash64(HASH64_SEED, words, sizeof(words)), io->device, sizeof(io->device));
}

static void io_items(const struct fold *fold, struct fold_item *items)
{
	const struct window *in = fold->in;
	size_t i;

	for (i = 0; i < in->n_ios; i++) {
		const struct window_io *io = &in->ios[i];

		items[i] = (struct fold_item){
			.source = (uint32_t)i,
			.ns = io->total_ns > io->oldest_ns ? io->total_ns : io->oldest_ns,
			.kernel = io->kernel,
			.user = io->user,
			.places = { stack_place(io->kernel), stack_place(io->user) },
			.extra = io_extra(io),
			.image = io->image,
			.processes = io->processes,
			.started = io->started,
		};
	}
}

static int io_keep(struct fold *fold, uint32_t source)
{
	struct window_io io = fold->in->ios[source];
	int r = fold_image_keep(fold, io.image, &io.image);

	return r ? r : row_sums_add_io(&fold->sums, fold->in, &io);
}

static int io_fold(struct fold *fold, const struct fold_item *item, struct fold_target *target)
{
	struct window_io io = fold->in->ios[item->source];

	io.kernel = target->kernel;
	io.user = target->user;
	io.image = target->image;
	io.processes = target->processes;
	io.started = target->started;
	target->processes = target->started = 0;
	fold->out->folded.rows += !item->is_sum;
	/* Slow operations are also counted in other rows: do not count their time twice. */
	fold->out->folded.ns += item->is_sum || io.is_slow ? 0 : io.total_ns;
	return row_sums_add_io(&fold->sums, fold->in, &io);
}

int fold_ios(struct fold *fold)
{
	size_t n = fold->in->n_ios, stay = 0, i;
	_cleanup_(freep) struct fold_item *items = calloc(n + 1, sizeof(*items));
	int r;

	if (!items)
		return -ENOMEM;
	io_items(fold, items);
	r = fold_items_choose(fold, items, n, false, &stay);
	for (i = 0; i < stay && !r; i++)
		r = io_keep(fold, items[i].source);
	return r ? r : counts_sum(fold, items + stay, n - stay, io_fold);
}
