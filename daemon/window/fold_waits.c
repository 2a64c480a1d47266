/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/shared.h"
#include "common/base.h"
#include "daemon/window/fold_internal.h"
#include "daemon/window/idle_wait.h"

/* The array of the window that has the item. */
enum { FROM_ROWS, FROM_SPANS, FROM_OPENS };

/* A summed row while it is made: waits are added to it one after the other. */
struct row_sum {
	struct window_row row;
	uint64_t buckets[WAIT_BUCKETS];
};

/*
 * The items to be folded: first those made of rows[], then those of spans[], then those of opens[].
 * Items that the folded window keeps as they are do not belong to it.
 */
struct wait_items {
	struct fold_item *v;
	size_t n;
};

static uint64_t part_ns(const struct window *in, int64_t from_ns, int64_t to_ns)
{
	return window_overlap_ns(from_ns, to_ns, in->start_ns, in->end_ns);
}

/* Returns a row with the part of a wait's time that is in the window. */
static struct window_row part_row(const struct window *in, int64_t start_ns, int64_t wake_ns,
				  int64_t end_ns, uint64_t throttled_ns)
{
	struct window_row row = {
		.blocked_ns = part_ns(in, start_ns, wake_ns < end_ns ? wake_ns : end_ns),
		.runnable_ns = part_ns(in, wake_ns, end_ns),
	};

	if (throttled_ns)
		row.throttled_ns = part_ns(in, wake_ns, wake_ns + (int64_t)throttled_ns);
	return row;
}

static struct window_row span_row(const struct window *in, const struct window_span *span)
{
	struct window_row row =
		part_row(in, span->start_ns, span->wake_ns, span->end_ns, span->throttled_ns);

	row.count = 1;
	row.max_ns = (uint64_t)(span->end_ns - span->start_ns);
	row.max_end_ns = span->end_ns;
	return row;
}

/*
 * Returns a row with the part of the wait's time that is in the window. Returns an empty row for
 * waits that were folded before: their time is in other rows already.
 */
static struct window_row open_row(const struct window *in, const struct window_open *open)
{
	if (open->count)
		return (struct window_row){};
	return part_row(in, open->start_ns, open->wake_ns, in->end_ns, open->throttled_ns);
}

static uint64_t row_ns(const struct window_row *row)
{
	return row->blocked_ns + row->runnable_ns;
}

static void item_set(const struct fold *fold, struct fold_item *item, uint32_t image,
		     uint32_t state, struct stack *kernel, struct stack *user)
{
	item->image = image;
	item->state = state;
	item->kernel = kernel;
	item->user = user;
	item->places[0] = stack_place(kernel);
	item->places[1] = stack_place(user);
	item->is_idle = wait_is_idle(state, fold->images[image].process.is_kernel, kernel, user);
	item->is_disk = wait_is_uninterruptible(state);
}

static size_t row_items(const struct fold *fold, struct fold_item *items)
{
	const struct window *in = fold->in;
	size_t i;

	for (i = 0; i < in->n_rows; i++) {
		const struct window_row *row = &in->rows[i];

		items[i] = (struct fold_item){
			.array = FROM_ROWS,
			.source = (uint32_t)i,
			.ns = row_ns(row),
			.waker = window_waker_id(window_row_waker(in, i), true, true),
			.processes = row->processes,
			.started = row->started,
		};
		item_set(fold, &items[i], row->image, row->state, row->kernel, row->user);
	}
	return in->n_rows;
}

static size_t span_items(const struct fold *fold, struct fold_item *items)
{
	const struct window *in = fold->in;
	size_t i;

	for (i = 0; i < in->n_spans; i++) {
		const struct window_span *span = &in->spans[i];

		items[i] = (struct fold_item){
			.array = FROM_SPANS,
			.source = (uint32_t)i,
			.ns = (uint64_t)(span->end_ns - span->start_ns),
		};
		item_set(fold, &items[i], span->image, span->state, span->kernel, span->user);
	}
	return in->n_spans;
}

/*
 * Makes items of the waits that have not ended. Waits of threads that have been made runnable get
 * another value of `extra`, so that they are not summed up with the others: they only wait for a
 * CPU.
 */
static size_t open_items(const struct fold *fold, struct fold_item *items)
{
	const struct window *in = fold->in;
	size_t i;

	for (i = 0; i < in->n_opens; i++) {
		const struct window_open *open = &in->opens[i];

		items[i] = (struct fold_item){
			.array = FROM_OPENS,
			.source = (uint32_t)i,
			.ns = open->count ? open->whole_ns
					  : (uint64_t)(in->end_ns - open->start_ns),
			.extra = open->wake_ns < in->end_ns,
			.processes = open->processes,
			.started = open->started,
		};
		item_set(fold, &items[i], open->image, open->state, open->kernel, open->user);
	}
	return in->n_opens;
}

/*
 * Adds a row to `out` and takes references to its stacks. Also adds the waker, if it is not NULL.
 */
static int row_add(struct window *out, const struct window_row *row, const uint64_t *buckets,
		   const struct window_waker *waker)
{
	struct window_row *added = window_add_row(out);
	struct window_waker *added_waker;
	uint32_t narrow[WAIT_BUCKETS];
	int r;

	if (!added)
		return -ENOMEM;
	window_buckets_narrow(buckets, narrow);
	*added = *row;
	stack_ref(row->kernel);
	stack_ref(row->user);
	r = window_row_set_buckets(out, added, narrow);
	if (r || !waker)
		return r;
	added_waker = window_add_waker(out);
	if (!added_waker)
		return -ENOMEM;
	*added_waker = *waker;
	stack_ref(waker->kernel);
	stack_ref(waker->user);
	return 0;
}

static int row_keep(struct fold *fold, uint32_t source)
{
	struct window_row row = fold->in->rows[source];
	uint64_t buckets[WAIT_BUCKETS] = {};
	int r = fold_image_keep(fold, row.image, &row.image);

	window_row_add_buckets(fold->in, &fold->in->rows[source], buckets);
	return r ? r : row_add(fold->out, &row, buckets, window_row_waker(fold->in, source));
}

static int span_keep(struct fold *fold, uint32_t source)
{
	struct window_span *added = window_add_span(fold->out);

	if (!added)
		return -ENOMEM;
	*added = fold->in->spans[source];
	stack_ref(added->kernel);
	stack_ref(added->user);
	return fold_image_keep(fold, added->image, &added->image);
}

static int open_keep(struct fold *fold, uint32_t source)
{
	struct window_open *added = window_add_open(fold->out);

	if (!added)
		return -ENOMEM;
	*added = fold->in->opens[source];
	stack_ref(added->kernel);
	stack_ref(added->user);
	return fold_image_keep(fold, added->image, &added->image);
}

static int item_keep(struct fold *fold, const struct fold_item *item)
{
	if (item->array == FROM_ROWS)
		return row_keep(fold, item->source);
	return item->array == FROM_SPANS ? span_keep(fold, item->source)
					 : open_keep(fold, item->source);
}

static void row_sum(struct row_sum *sum, const struct window_row *row)
{
	sum->row.count += row->count;
	sum->row.blocked_ns += row->blocked_ns;
	sum->row.runnable_ns += row->runnable_ns;
	sum->row.throttled_ns += row->throttled_ns;
	if (row->max_ns < sum->row.max_ns ||
	    (row->max_ns == sum->row.max_ns && row->max_end_ns <= sum->row.max_end_ns))
		return;
	sum->row.max_ns = row->max_ns;
	sum->row.max_end_ns = row->max_end_ns;
}

/* Adds an item to a summed row: a whole row, or the part of a wait that is in the window. */
static void item_sum(struct fold *fold, const struct fold_item *item, struct row_sum *sum)
{
	const struct window *in = fold->in;
	struct window_row row;

	if (item->array == FROM_ROWS) {
		row = in->rows[item->source];
		window_row_add_buckets(in, &row, sum->buckets);
	} else if (item->array == FROM_SPANS) {
		row = span_row(in, &in->spans[item->source]);
		sum->buckets[wait_bucket(row.max_ns)]++;
	} else {
		row = open_row(in, &in->opens[item->source]);
	}
	row_sum(sum, &row);
	if (!item->is_sum)
		fold->out->folded.ns += row_ns(&row);
}

/*
 * Returns the waker of a summed row. This is an empty one if the waits of the row have several
 * wakers, and NULL if the window has no wakers.
 */
static const struct window_waker *target_waker(const struct fold *fold,
					       const struct fold_target *target,
					       const struct fold_item *items)
{
	static const struct window_waker nobody = {};

	if (!fold->in->n_wakers)
		return NULL;
	return target->is_others ? &nobody : window_row_waker(fold->in, items[target->item].source);
}

static int sums_add(struct fold *fold, const struct fold_item *items,
		    const struct fold_targets *targets, struct row_sum *sums)
{
	size_t i;
	int r = 0;

	for (i = 0; i < targets->n && !r; i++) {
		const struct fold_target *target = &targets->v[i];

		sums[i].row.kernel = target->kernel;
		sums[i].row.user = target->user;
		sums[i].row.image = target->image;
		sums[i].row.state = target->state;
		sums[i].row.processes = target->processes;
		sums[i].row.started = target->started;
		r = row_add(fold->out, &sums[i].row, sums[i].buckets,
			    target_waker(fold, target, items));
	}
	return r;
}

/* Adds summed rows of the items to the folded window. */
static int rows_sum(struct fold *fold, struct fold_item *items, size_t n)
{
	_cleanup_(freep) struct row_sum *sums = NULL;
	struct fold_targets targets = {};
	size_t i;
	int r = fold_items_group(fold, items, n, &targets);

	fold_lacks_note(fold, &targets);
	if (!r) {
		sums = calloc(targets.n + 1, sizeof(*sums));
		r = sums ? fold_targets_count(fold, items, n, &targets) : -ENOMEM;
	}
	for (i = 0; i < n && !r; i++)
		item_sum(fold, &items[i], &sums[items[i].target]);
	if (!r)
		r = sums_add(fold, items, &targets, sums);
	free(targets.v);
	return r;
}

static void open_sum(const struct window *in, const struct window_open *open,
		     struct window_open *sum)
{
	uint64_t whole_ns = (uint64_t)(in->end_ns - open->start_ns);

	if (!sum->count || open->start_ns < sum->start_ns)
		sum->start_ns = open->start_ns;
	if (!sum->count || open->wake_ns < sum->wake_ns)
		sum->wake_ns = open->wake_ns;
	sum->throttled_ns += open->throttled_ns;
	sum->count += open->count ? open->count : 1;
	sum->whole_ns += open->count ? open->whole_ns : whole_ns;
	sum->whole_runnable_ns +=
		open->count ? open->whole_runnable_ns
			    : window_overlap_ns(open->wake_ns, in->end_ns, INT64_MIN, INT64_MAX);
}

/*
 * Adds members of opens[] that each stand for several waits which have not ended. The time of these
 * waits in the window is in rows[].
 */
static int opens_sum(struct fold *fold, struct fold_item *items, size_t n)
{
	struct fold_targets targets = {};
	size_t i, first = fold->out->n_opens;
	struct window_open *added;
	int r = fold_items_group(fold, items, n, &targets);

	if (!r)
		r = fold_targets_count(fold, items, n, &targets);
	for (i = 0; i < targets.n && !r; i++) {
		added = window_add_open(fold->out);
		if (!added) {
			r = -ENOMEM;
			break;
		}
		added->kernel = stack_ref(targets.v[i].kernel);
		added->user = stack_ref(targets.v[i].user);
		added->image = targets.v[i].image;
		added->state = targets.v[i].state;
		added->processes = targets.v[i].processes;
		added->started = targets.v[i].started;
	}
	for (i = 0; i < n && !r; i++)
		open_sum(fold->in, &fold->in->opens[items[i].source],
			 &fold->out->opens[first + items[i].target]);
	free(targets.v);
	return r;
}

/*
 * Adds to the folded window those items of an array that stay as they are, and appends the others
 * to *rest.
 */
static int items_split(struct fold *fold, struct fold_item *items, size_t n,
		       struct wait_items *rest)
{
	const bool is_opens = n && items[0].array == FROM_OPENS;
	size_t stay = 0, i;
	int r = fold_items_choose(fold, items, n, is_opens, &stay);

	for (i = 0; i < stay && !r; i++)
		r = item_keep(fold, &items[i]);
	for (; i < n; i++) {
		fold->out->folded.rows += !items[i].is_sum;
		rest->v[rest->n++] = items[i];
	}
	return r;
}

/*
 * So far, the waits were compared by their whole length. Sets the time of each item to the part
 * that is in the window, because the items become parts of rows now. Removes waits whose time is in
 * rows already. Returns the number of items left.
 */
static size_t items_to_rows(const struct window *in, struct fold_item *items, size_t n)
{
	struct window_row row;
	size_t i, left = 0;

	for (i = 0; i < n; i++) {
		if (items[i].array == FROM_OPENS && in->opens[items[i].source].count)
			continue;
		if (items[i].array == FROM_ROWS)
			row = in->rows[items[i].source];
		else if (items[i].array == FROM_SPANS)
			row = span_row(in, &in->spans[items[i].source]);
		else
			row = open_row(in, &in->opens[items[i].source]);
		items[left] = items[i];
		items[left].ns = row_ns(&row);
		items[left++].extra = 0;
	}
	return left;
}

int fold_waits(struct fold *fold)
{
	const struct window *in = fold->in;
	size_t n = in->n_rows + in->n_spans + in->n_opens, added, ended;
	_cleanup_(freep) struct fold_item *items = calloc(n + 1, sizeof(*items));
	struct wait_items rest = { .v = items };
	int r;

	if (!items)
		return -ENOMEM;
	/*
	 * items[] is filled with the items of rows[], spans[] and opens[], one array after the
	 * other. After each array, items_split() moves those items that are to be folded to the
	 * front of items[]; the items of the next array are put behind them.
	 */
	added = row_items(fold, items);
	r = items_split(fold, items, added, &rest);
	added = r ? 0 : span_items(fold, items + rest.n);
	if (!r)
		r = items_split(fold, items + rest.n, added, &rest);
	ended = rest.n;
	added = r ? 0 : open_items(fold, items + rest.n);
	if (!r)
		r = items_split(fold, items + rest.n, added, &rest);
	if (!r)
		r = opens_sum(fold, items + ended, rest.n - ended);
	return r ? r : rows_sum(fold, items, items_to_rows(in, items, rest.n));
}
