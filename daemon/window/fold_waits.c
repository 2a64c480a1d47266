/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>

#include "common/base.h"
#include "daemon/window/fold_internal.h"
#include "daemon/window/idle_wait.h"

/* The array of the window that has the item. */
enum { FROM_ROWS, FROM_SPANS, FROM_OPENS };

/*
 * The items to be folded: first those made of rows[], then those of spans[], then those of opens[].
 * Items that the folded window keeps as they are do not belong to it.
 */
struct wait_items {
	struct fold_item *v;
	size_t n;
};

/* Returns a row with the part of an item's time that is in the window. */
static struct window_row item_row(const struct window *in, const struct fold_item *item)
{
	const struct window_open *open;

	if (item->array == FROM_ROWS)
		return in->rows[item->source];
	if (item->array == FROM_SPANS)
		return row_of_span(in, &in->spans[item->source]);
	open = &in->opens[item->source];
	return row_of_wait(open->start_ns, open->wake_ns, open->throttled_ns, in->start_ns,
			   in->end_ns);
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

static int row_keep(struct fold *fold, uint32_t source)
{
	struct window_row row = fold->in->rows[source];
	int r = fold_image_keep(fold, row.image, &row.image);

	return r ? r
		 : row_sums_add(&fold->sums, fold->in, &row, window_row_waker(fold->in, source));
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

/*
 * Returns the waker of a summed row. This is an empty one if the waits of the row have several
 * wakers, and NULL if the window has no wakers.
 */
static const struct window_waker *target_waker(const struct fold *fold,
					       const struct fold_item *item,
					       const struct fold_target *target)
{
	static const struct window_waker nobody = {};

	if (!fold->in->n_wakers)
		return NULL;
	return target->is_others ? &nobody : window_row_waker(fold->in, item->source);
}

/* Returns the summed row that an item is the first to be added to; NULL when out of memory. */
static struct row_sum *sum_begin(struct fold *fold, const struct fold_item *item,
				 const struct fold_target *target)
{
	const struct window_row row = {
		.kernel = target->kernel,
		.user = target->user,
		.image = target->image,
		.state = target->state,
	};
	struct row_sum *sum = row_sums_get(&fold->sums, &row, target_waker(fold, item, target));

	if (sum) {
		sum->row.processes = target->processes;
		sum->row.started = target->started;
	}
	return sum;
}

/* Adds an item to a summed row: a whole row, or the part of a wait that is in the window. */
static int row_fold(struct fold *fold, const struct fold_item *item, struct fold_target *target)
{
	struct window_row row = item_row(fold->in, item);
	struct row_sum *sum = target->sum;

	if (!sum)
		sum = target->sum = sum_begin(fold, item, target);
	if (!sum)
		return -ENOMEM;
	/* The processes were counted before. */
	row.processes = row.started = 0;
	row_sum_add(sum, fold->in, &row);
	if (item->array == FROM_SPANS)
		sum->buckets[wait_bucket(row.max_ns)]++;
	if (!item->is_sum)
		fold->out->folded.ns += row_ns(&row);
	return 0;
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
 * Adds a wait that has not ended to a member of opens[] that stands for several ones. The time of
 * these waits in the window is in rows[].
 */
static int open_fold(struct fold *fold, const struct fold_item *item, struct fold_target *target)
{
	struct window_open *added;

	if (!target->open) {
		added = window_add_open(fold->out);
		if (!added)
			return -ENOMEM;
		added->kernel = stack_ref(target->kernel);
		added->user = stack_ref(target->user);
		added->image = target->image;
		added->state = target->state;
		added->processes = target->processes;
		added->started = target->started;
		target->open = fold->out->n_opens;
	}
	open_sum(fold->in, &fold->in->opens[item->source], &fold->out->opens[target->open - 1]);
	return 0;
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
		row = item_row(in, &items[i]);
		items[left] = items[i];
		items[left].ns = row_ns(&row);
		items[left++].extra = 0;
	}
	return left;
}

/* Finds the processes whose sums stay whole, by the items that are to be folded. 0 or -ENOMEM. */
static int waits_own(struct fold *fold, const struct wait_items *rest)
{
	const struct window *in = fold->in;
	_cleanup_(freep) uint64_t *rest_ns = calloc(in->n_images + 1, sizeof(*rest_ns));
	struct window_row row;
	size_t i;

	if (!rest->n)
		return 0;
	if (!rest_ns)
		return -ENOMEM;
	for (i = 0; i < rest->n; i++) {
		const struct fold_item *item = &rest->v[i];

		/* The time of waits that were folded before is in rows. */
		if (item->array == FROM_OPENS && in->opens[item->source].count)
			continue;
		row = item_row(in, item);
		rest_ns[item->image] += row_ns(&row);
	}
	return fold_own_find(fold, rest_ns);
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
	if (r)
		return r;
	added = span_items(fold, items + rest.n);
	r = items_split(fold, items + rest.n, added, &rest);
	if (r)
		return r;
	ended = rest.n;
	added = open_items(fold, items + rest.n);
	r = items_split(fold, items + rest.n, added, &rest);
	if (r)
		return r;
	r = waits_own(fold, &rest);
	if (r)
		return r;
	r = fold_items_sum(fold, items + ended, rest.n - ended, false, open_fold);
	if (r)
		return r;
	return fold_items_sum(fold, items, items_to_rows(in, items, rest.n), true, row_fold);
}
