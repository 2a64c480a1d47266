/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/base/hash.h"
#include "daemon/window/fold_internal.h"

/* A summed row while it is made: I/O operations are added to it one after the other. */
struct io_sum {
	struct window_io io;
	uint64_t buckets[IO_BUCKETS_N];
};

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
	struct window_sample *added = window_add_sample(fold->out);

	if (!added)
		return -ENOMEM;
	*added = fold->in->samples[source];
	stack_ref(added->kernel);
	stack_ref(added->user);
	return fold_image_keep(fold, added->image, &added->image);
}

static int samples_sum(struct fold *fold, struct fold_item *items, size_t n)
{
	size_t i, first = fold->out->n_samples;
	struct fold_targets targets = {};
	struct window_sample *added;
	int r = fold_items_group(fold, items, n, &targets);

	fold_lacks_note(fold, &targets);
	if (!r)
		r = fold_targets_count(fold, items, n, &targets);
	for (i = 0; i < targets.n && !r; i++) {
		added = window_add_sample(fold->out);
		if (!added) {
			r = -ENOMEM;
			break;
		}
		added->kernel = stack_ref(targets.v[i].kernel);
		added->user = stack_ref(targets.v[i].user);
		added->image = targets.v[i].image;
		added->processes = targets.v[i].processes;
		added->started = targets.v[i].started;
	}
	for (i = 0; i < n && !r; i++) {
		const struct window_sample *sample = &fold->in->samples[items[i].source];

		added = &fold->out->samples[first + items[i].target];
		added->count += sample->count;
		added->on_ns += sample->on_ns;
		fold->out->folded.ns += items[i].is_sum ? 0 : sample->on_ns;
		fold->out->folded.rows += !items[i].is_sum;
	}
	free(targets.v);
	return r;
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

static int samples_fold(struct fold *fold, struct fold_item *items)
{
	size_t n = fold->in->n_samples, stay = 0, i;
	int r;

	sample_items(fold, items);
	r = fold_items_choose(fold, items, n, false, &stay);
	for (i = 0; i < stay && !r; i++)
		r = sample_keep(fold, items[i].source);
	return r ? r : samples_sum(fold, items + stay, n - stay);
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

static int io_add(struct window *out, const struct window_io *io, const uint64_t *buckets)
{
	struct window_io *added = window_add_io(out);

	if (!added)
		return -ENOMEM;
	*added = *io;
	stack_ref(added->kernel);
	stack_ref(added->user);
	return window_io_set_buckets(out, added, buckets);
}

static int io_keep(struct fold *fold, uint32_t source)
{
	struct window_io io = fold->in->ios[source];
	uint64_t buckets[IO_BUCKETS_N] = {};
	int r = fold_image_keep(fold, io.image, &io.image);

	window_io_add_buckets(fold->in, &io, buckets);
	return r ? r : io_add(fold->out, &io, buckets);
}

/* Sets the values that all operations of a summed row have in common. */
static void io_sum_init(const struct fold *fold, const struct fold_target *target,
			const struct fold_item *items, struct io_sum *sum)
{
	const struct window_io *io = &fold->in->ios[items[target->item].source];

	sum->io = (struct window_io){
		.kernel = target->kernel,
		.user = target->user,
		.image = target->image,
		.dev = io->dev,
		.magic = io->magic,
		.call = io->call,
		.layer = io->layer,
		.op = io->op,
		.is_slow = io->is_slow,
	};
	memcpy(sum->io.device, io->device, sizeof(io->device));
}

static void io_sum_add(struct fold *fold, const struct fold_item *item, struct io_sum *sum)
{
	const struct window_io *io = &fold->in->ios[item->source];

	window_io_add(&sum->io, io);
	window_io_add_buckets(fold->in, io, sum->buckets);
	fold->out->folded.rows += !item->is_sum;
	/* Slow operations are also counted in other rows: do not count their time twice. */
	fold->out->folded.ns += item->is_sum || io->is_slow ? 0 : io->total_ns;
}

static int ios_sum(struct fold *fold, struct fold_item *items, size_t n)
{
	_cleanup_(freep) struct io_sum *sums = NULL;
	struct fold_targets targets = {};
	size_t i;
	int r = fold_items_group(fold, items, n, &targets);

	fold_lacks_note(fold, &targets);
	if (!r) {
		sums = calloc(targets.n + 1, sizeof(*sums));
		r = sums ? fold_targets_count(fold, items, n, &targets) : -ENOMEM;
	}
	for (i = 0; i < targets.n && !r; i++)
		io_sum_init(fold, &targets.v[i], items, &sums[i]);
	for (i = 0; i < n && !r; i++)
		io_sum_add(fold, &items[i], &sums[items[i].target]);
	for (i = 0; i < targets.n && !r; i++) {
		sums[i].io.processes = targets.v[i].processes;
		sums[i].io.started = targets.v[i].started;
		r = io_add(fold->out, &sums[i].io, sums[i].buckets);
	}
	free(targets.v);
	return r;
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
	return r ? r : ios_sum(fold, items + stay, n - stay);
}
