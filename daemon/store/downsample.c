/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/downsample.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/base/hash_table.h"

struct image_entry {
	uint64_t key[4]; /* uid, process, comm */
	uint32_t image;
	UT_hash_handle hh;
};

struct row_entry {
	uint64_t key[5]; /* image, state, kernel, user, waker */
	struct window_row row;
	const struct window_waker *waker; /* borrowed, or NULL */
	uint64_t buckets[WAIT_BUCKETS];
	UT_hash_handle hh;
};

struct sample_entry {
	uint64_t key[3]; /* image, kernel, user */
	struct window_sample sample;
	UT_hash_handle hh;
};

/* A wait over a cut that shows up again: ended in a later window, or open at the end. */
struct wait_entry {
	uint64_t key[2]; /* uid, start */
	UT_hash_handle hh;
};

struct combine {
	struct window *out;
	struct image_entry *images;
	struct row_entry *rows;
	struct wait_entry *waits;
	struct sample_entry *samples;
	struct io_entry *ios;
	uint32_t *map; /* images of the window at hand to those of out */
	int error;
};

static int image_place(struct combine *combine, const struct window_image *image, uint32_t *out)
{
	uint64_t key[4] = { image->uid, (uintptr_t)image->process };
	struct image_entry *entry;
	struct window_image *added;

	_Static_assert(COMM_LEN == 2 * sizeof(uint64_t), "a comm is two words");
	memcpy(&key[2], image->comm, COMM_LEN);
	HASH_FIND(hh, combine->images, key, sizeof(key), entry);
	if (entry) {
		*out = entry->image;
		return 0;
	}
	added = window_add_image(combine->out);
	if (!added)
		return -ENOMEM;
	*added = *image;
	added->sums = (struct thread_sums){};
	process_ref(image->process);
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	memcpy(entry->key, key, sizeof(key));
	entry->image = *out = (uint32_t)combine->out->n_images - 1;
	HASH_ADD(hh, combine->images, key, sizeof(entry->key), entry);
	if (HASH_HAS(entry))
		return 0;
	free(entry);
	return -ENOMEM;
}

static void sums_add(struct thread_sums *a, const struct thread_sums *b)
{
	uint64_t *x = (uint64_t *)a;
	const uint64_t *y = (const uint64_t *)b;
	size_t i;

	for (i = 0; i < sizeof(*a) / sizeof(uint64_t); i++)
		x[i] += y[i];
}

static int images_add(struct combine *combine, const struct window *window)
{
	size_t i;
	int r;

	free(combine->map);
	combine->map = calloc(window->n_images + 1, sizeof(*combine->map));
	if (!combine->map)
		return -ENOMEM;
	for (i = 0; i < window->n_images; i++) {
		r = image_place(combine, &window->images[i], &combine->map[i]);
		if (r)
			return r;
		sums_add(&combine->out->images[combine->map[i]].sums, &window->images[i].sums);
	}
	return 0;
}

static struct row_entry *row_get(struct combine *combine, const struct window_row *row,
				 const struct window_waker *waker)
{
	uint64_t key[5] = { row->image, row->state, (uintptr_t)row->kernel, (uintptr_t)row->user,
			    window_waker_id(waker, true, true) };
	struct row_entry *entry;

	HASH_FIND(hh, combine->rows, key, sizeof(key), entry);
	if (entry)
		return entry;
	entry = calloc(1, sizeof(*entry));
	if (!entry) {
		combine->error = -ENOMEM;
		return NULL;
	}
	memcpy(entry->key, key, sizeof(key));
	entry->waker = waker;
	entry->row = (struct window_row){
		.image = row->image,
		.state = row->state,
		.kernel = row->kernel,
		.user = row->user,
	};
	HASH_ADD(hh, combine->rows, key, sizeof(entry->key), entry);
	if (!HASH_HAS(entry)) {
		free(entry);
		combine->error = -ENOMEM;
		return NULL;
	}
	return entry;
}

/* row is of the window at hand but for its image; its stacks are borrowed from there. */
static struct row_entry *row_add(struct combine *combine, const struct window_row *row,
				 const struct window_waker *waker)
{
	struct row_entry *entry = row_get(combine, row, waker);

	if (!entry)
		return NULL;
	entry->row.count += row->count;
	entry->row.blocked_ns += row->blocked_ns;
	entry->row.runnable_ns += row->runnable_ns;
	entry->row.throttled_ns += row->throttled_ns;
	if (row->max_ns > entry->row.max_ns) {
		entry->row.max_ns = row->max_ns;
		entry->row.max_end_ns = row->max_end_ns;
	}
	return entry;
}

static void rows_add(struct combine *combine, const struct window *window)
{
	struct row_entry *entry;
	size_t i;

	for (i = 0; i < window->n_rows; i++) {
		struct window_row row = window->rows[i];

		row.image = combine->map[row.image];
		entry = row_add(combine, &row, window_row_waker(window, i));
		if (entry)
			window_row_add_buckets(window, &window->rows[i], entry->buckets);
	}
}

static int samples_add(struct combine *combine, const struct window *window)
{
	struct sample_entry *entry;
	size_t i;

	for (i = 0; i < window->n_samples; i++) {
		struct window_sample sample = window->samples[i];
		uint64_t key[3] = { combine->map[sample.image], (uintptr_t)sample.kernel,
				    (uintptr_t)sample.user };

		HASH_FIND(hh, combine->samples, key, sizeof(key), entry);
		if (!entry) {
			entry = calloc(1, sizeof(*entry));
			if (!entry)
				return -ENOMEM;
			memcpy(entry->key, key, sizeof(key));
			entry->sample = sample;
			entry->sample.image = combine->map[sample.image];
			entry->sample.count = entry->sample.on_ns = 0;
			HASH_ADD(hh, combine->samples, key, sizeof(entry->key), entry);
			if (!HASH_HAS(entry)) {
				free(entry);
				return -ENOMEM;
			}
		}
		entry->sample.count += sample.count;
		entry->sample.on_ns += sample.on_ns;
	}
	return 0;
}

static uint64_t overlap(int64_t from, int64_t to, int64_t start, int64_t end)
{
	if (from < start)
		from = start;
	if (to > end)
		to = end;
	return to > from ? (uint64_t)(to - from) : 0;
}

static void span_to_row(struct combine *combine, const struct window_span *span)
{
	uint64_t ns = (uint64_t)(span->end_ns - span->start_ns);
	struct window_row row = {
		.image = combine->map[span->image],
		.state = span->state,
		.kernel = span->kernel,
		.user = span->user,
		.count = 1,
		.blocked_ns = overlap(span->start_ns, span->wake_ns, INT64_MIN, span->end_ns),
		.runnable_ns = overlap(span->wake_ns, span->end_ns, span->start_ns, INT64_MAX),
		.throttled_ns = span->throttled_ns,
		.max_ns = ns,
		.max_end_ns = span->end_ns,
	};
	struct row_entry *entry = row_add(combine, &row, NULL);

	if (entry)
		entry->buckets[wait_bucket(ns)]++;
}

static int spans_add(struct combine *combine, const struct window *window)
{
	struct window_span *added;
	size_t i;

	for (i = 0; i < window->n_spans; i++) {
		const struct window_span *span = &window->spans[i];

		if (span->start_ns >= combine->out->start_ns) {
			span_to_row(combine, span);
			continue;
		}
		added = window_add_span(combine->out);
		if (!added)
			return -ENOMEM;
		*added = *span;
		added->image = combine->map[span->image];
		stack_ref(span->kernel);
		stack_ref(span->user);
	}
	return 0;
}

static struct wait_entry *wait_find(struct combine *combine, const struct window *window,
				    uint32_t image, int64_t start_ns)
{
	uint64_t key[2] = { window->images[image].uid, (uint64_t)start_ns };
	struct wait_entry *entry;

	HASH_FIND(hh, combine->waits, key, sizeof(key), entry);
	return entry;
}

static int wait_add(struct combine *combine, const struct window *window, uint32_t image,
		    int64_t start_ns)
{
	struct wait_entry *entry;

	if (wait_find(combine, window, image, start_ns))
		return 0;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	entry->key[0] = window->images[image].uid;
	entry->key[1] = (uint64_t)start_ns;
	HASH_ADD(hh, combine->waits, key, sizeof(entry->key), entry);
	if (HASH_HAS(entry))
		return 0;
	free(entry);
	return -ENOMEM;
}

static int waits_index(struct combine *combine, struct window *const *windows, size_t n)
{
	const struct window *last = windows[n - 1];
	size_t i, k;
	int r = 0;

	for (i = 0; i < n && !r; i++)
		for (k = 0; k < windows[i]->n_spans && !r; k++)
			r = wait_add(combine, windows[i], windows[i]->spans[k].image,
				     windows[i]->spans[k].start_ns);
	for (k = 0; k < last->n_opens && !r; k++)
		r = wait_add(combine, last, last->opens[k].image, last->opens[k].start_ns);
	return r;
}

/*
 * At the end of the last window they stay. Of those before, the end or the last window tells all;
 * one that was never heard of again leaves the time it took.
 */
static int opens_add(struct combine *combine, const struct window *window, bool is_last)
{
	struct window_open *added;
	size_t i;

	for (i = 0; i < window->n_opens; i++) {
		const struct window_open *open = &window->opens[i];
		struct window_row row = {
			.image = combine->map[open->image],
			.state = open->state,
			.kernel = open->kernel,
			.user = open->user,
			.blocked_ns = overlap(open->start_ns, open->wake_ns, window->start_ns,
					      window->end_ns),
			.runnable_ns = overlap(open->wake_ns, window->end_ns, window->start_ns,
					       window->end_ns),
		};

		if (open->throttled_ns)
			row.throttled_ns =
				overlap(open->wake_ns, open->wake_ns + (int64_t)open->throttled_ns,
					window->start_ns, window->end_ns);

		if (!is_last) {
			if (!wait_find(combine, window, open->image, open->start_ns))
				row_add(combine, &row, NULL);
			continue;
		}
		added = window_add_open(combine->out);
		if (!added)
			return -ENOMEM;
		*added = *open;
		added->image = row.image;
		stack_ref(open->kernel);
		stack_ref(open->user);
	}
	return 0;
}

/* Beside the row just added. */
static int waker_finish(struct combine *combine, const struct window_waker *waker)
{
	struct window_waker *added;

	if (!waker)
		return 0;
	added = window_add_waker(combine->out);
	if (!added)
		return -ENOMEM;
	*added = *waker;
	stack_ref(waker->kernel);
	stack_ref(waker->user);
	return 0;
}

static int rows_finish(struct combine *combine)
{
	struct row_entry *entry, *next;
	uint32_t buckets[WAIT_BUCKETS];
	struct window_row *row;
	unsigned int i;

	HASH_ITER (hh, combine->rows, entry, next) {
		for (i = 0; i < WAIT_BUCKETS; i++) {
			if (entry->buckets[i] > UINT32_MAX)
				return -EOVERFLOW;
			buckets[i] = (uint32_t)entry->buckets[i];
		}
		row = window_add_row(combine->out);
		if (!row)
			return -ENOMEM;
		*row = entry->row;
		stack_ref(row->kernel);
		stack_ref(row->user);
		if (window_row_set_buckets(combine->out, row, buckets) ||
		    waker_finish(combine, entry->waker))
			return -ENOMEM;
	}
	return 0;
}

static int samples_finish(struct combine *combine)
{
	struct sample_entry *entry, *next;
	struct window_sample *sample;

	HASH_ITER (hh, combine->samples, entry, next) {
		sample = window_add_sample(combine->out);
		if (!sample)
			return -ENOMEM;
		*sample = entry->sample;
		stack_ref(sample->kernel);
		stack_ref(sample->user);
	}
	return 0;
}

static void window_sum(struct window *out, const struct window *window)
{
	unsigned int i;

	for (i = 0; i < WINDOW_LOST_N; i++)
		out->lost[i] += window->lost[i];
	out->lost_ns += window->lost_ns;
	out->switch_ins += window->switch_ins;
	out->sampled += window->sampled;
	out->parts += window->parts;
}

static int combine_run(struct combine *combine, struct window *const *windows, size_t n)
{
	struct window *out = combine->out;
	size_t i;
	int r = waits_index(combine, windows, n);

	out->run = windows[0]->run;
	out->seq = windows[0]->seq;
	out->session = windows[0]->session;
	out->kind = windows[0]->kind;
	out->start_ns = windows[0]->start_ns;
	out->end_ns = windows[n - 1]->end_ns;
	out->real_offset_ns = windows[n - 1]->real_offset_ns;
	out->boot_offset_ns = windows[n - 1]->boot_offset_ns;
	out->parts = 0;
	for (i = 0; i < n && !r; i++) {
		window_sum(out, windows[i]);
		r = images_add(combine, windows[i]);
		if (!r)
			rows_add(combine, windows[i]);
		if (!r)
			r = samples_add(combine, windows[i]);
		if (!r)
			r = store_combine_ios_add(&combine->ios, windows[i], combine->map,
						  i + 1 == n);
		if (!r)
			r = spans_add(combine, windows[i]);
		if (!r)
			r = opens_add(combine, windows[i], i + 1 == n);
	}
	if (!r)
		r = combine->error;
	if (!r)
		r = samples_finish(combine);
	if (!r)
		r = store_combine_ios_finish(combine->ios, out);
	return r ? r : rows_finish(combine);
}

static void combine_fini(struct combine *combine)
{
	struct image_entry *image, *next_image;
	struct wait_entry *wait, *next_wait;
	struct sample_entry *sample, *next_sample;
	struct row_entry *row, *next_row;

	HASH_ITER (hh, combine->images, image, next_image) {
		HASH_DEL(combine->images, image);
		free(image);
	}
	HASH_ITER (hh, combine->rows, row, next_row) {
		HASH_DEL(combine->rows, row);
		free(row);
	}
	HASH_ITER (hh, combine->waits, wait, next_wait) {
		HASH_DEL(combine->waits, wait);
		free(wait);
	}
	HASH_ITER (hh, combine->samples, sample, next_sample) {
		HASH_DEL(combine->samples, sample);
		free(sample);
	}
	store_combine_ios_free(&combine->ios);
	free(combine->map);
}

int store_combine(struct window *const *windows, size_t n, struct window **out)
{
	struct combine combine = { .out = window_new() };
	int r;

	if (!combine.out)
		return -ENOMEM;
	r = combine_run(&combine, windows, n);
	combine_fini(&combine);
	if (r) {
		window_unref(combine.out);
		return r;
	}
	window_seal(combine.out);
	*out = combine.out;
	return 0;
}
