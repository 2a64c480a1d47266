/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/window/row_sums.h"

#include <errno.h>
#include <string.h>

struct row_sum *row_sums_get(struct row_sums *sums, const struct window_row *row,
			     const struct window_waker *waker)
{
	const uint64_t key[] = { row->image, row->state, (uintptr_t)row->kernel,
				 (uintptr_t)row->user, window_waker_id(waker, true, true) };
	bool is_new;
	struct row_sum *sum = key_table_get(&sums->rows, key, &is_new);

	if (!sum || !is_new)
		return sum;
	sum->waker = waker;
	sum->row.image = row->image;
	sum->row.state = row->state;
	sum->row.kernel = row->kernel;
	sum->row.user = row->user;
	return sum;
}

void row_sum_add(struct row_sum *sum, const struct window *from, const struct window_row *row)
{
	window_row_add(&sum->row, row);
	window_row_add_buckets(from, row, sum->buckets);
}

int row_sums_add(struct row_sums *sums, const struct window *from, const struct window_row *row,
		 const struct window_waker *waker)
{
	struct row_sum *sum = row_sums_get(sums, row, waker);

	if (!sum)
		return -ENOMEM;
	row_sum_add(sum, from, row);
	return 0;
}

int row_sums_add_sample(struct row_sums *sums, const struct window_sample *sample)
{
	const uint64_t key[] = { sample->image, (uintptr_t)sample->kernel,
				 (uintptr_t)sample->user };
	bool is_new;
	struct sample_sum *sum = key_table_get(&sums->samples, key, &is_new);

	if (!sum)
		return -ENOMEM;
	sum->sample.image = sample->image;
	sum->sample.kernel = sample->kernel;
	sum->sample.user = sample->user;
	window_sample_add(&sum->sample, sample);
	return 0;
}

/* Sets what all operations of a sum have in common. */
static void io_sum_init(struct io_sum *sum, const struct window_io *io)
{
	sum->io = (struct window_io){
		.kernel = io->kernel,
		.user = io->user,
		.image = io->image,
		.dev = io->dev,
		.magic = io->magic,
		.call = io->call,
		.layer = io->layer,
		.op = io->op,
		.is_slow = io->is_slow,
	};
	memcpy(sum->io.device, io->device, sizeof(io->device));
}

int row_sums_add_io(struct row_sums *sums, const struct window *from, const struct window_io *io)
{
	uint64_t key[8] = { (uint64_t)io->image << 32 | (io->open ? 16U : 0) | io->is_slow,
			    (uint64_t)io->layer << 32 | io->op,
			    (uint64_t)io->call << 32 | io->magic,
			    io->dev,
			    (uintptr_t)io->kernel,
			    (uintptr_t)io->user };
	struct io_sum *sum;
	bool is_new;

	_Static_assert(WINDOW_DEVICE_LEN == 2 * sizeof(uint64_t), "a device is two words");
	memcpy(&key[6], io->device, sizeof(io->device));
	sum = key_table_get(&sums->ios, key, &is_new);
	if (!sum)
		return -ENOMEM;
	if (is_new)
		io_sum_init(sum, io);
	window_io_add(&sum->io, io);
	window_io_add_buckets(from, io, sum->buckets);
	return 0;
}

static int waker_finish(struct window *out, const struct window_waker *waker)
{
	struct window_waker *added;

	if (!waker)
		return 0;
	added = window_add_waker(out);
	if (!added)
		return -ENOMEM;
	*added = *waker;
	stack_ref(added->kernel);
	stack_ref(added->user);
	return 0;
}

static int row_finish(struct window *out, const struct row_sum *sum)
{
	struct window_row *row = window_add_row(out);
	uint32_t buckets[WAIT_BUCKETS];

	if (!row)
		return -ENOMEM;
	*row = sum->row;
	stack_ref(row->kernel);
	stack_ref(row->user);
	window_buckets_narrow(sum->buckets, buckets);
	if (window_row_set_buckets(out, row, buckets))
		return -ENOMEM;
	return waker_finish(out, sum->waker);
}

static int sample_finish(struct window *out, const struct sample_sum *sum)
{
	struct window_sample *sample = window_add_sample(out);

	if (!sample)
		return -ENOMEM;
	*sample = sum->sample;
	stack_ref(sample->kernel);
	stack_ref(sample->user);
	return 0;
}

static int io_finish(struct window *out, const struct io_sum *sum)
{
	struct window_io *io = window_add_io(out);

	if (!io)
		return -ENOMEM;
	*io = sum->io;
	stack_ref(io->kernel);
	stack_ref(io->user);
	return window_io_set_buckets(out, io, sum->buckets);
}

int row_sums_finish(const struct row_sums *sums, struct window *out)
{
	size_t i;

	for (i = 0; i < sums->rows.n; i++)
		if (row_finish(out, sums->rows.items[i]))
			return -ENOMEM;
	for (i = 0; i < sums->samples.n; i++)
		if (sample_finish(out, sums->samples.items[i]))
			return -ENOMEM;
	for (i = 0; i < sums->ios.n; i++)
		if (io_finish(out, sums->ios.items[i]))
			return -ENOMEM;
	return 0;
}

void row_sums_fini(struct row_sums *sums)
{
	key_table_fini(&sums->rows);
	key_table_fini(&sums->samples);
	key_table_fini(&sums->ios);
}

struct window_row row_of_wait(int64_t start_ns, int64_t wake_ns, uint64_t throttled_ns,
			      int64_t from_ns, int64_t until_ns)
{
	struct window_row row = {
		.blocked_ns = window_overlap_ns(start_ns, wake_ns, from_ns, until_ns),
		.runnable_ns = window_overlap_ns(wake_ns, INT64_MAX, from_ns, until_ns),
	};

	/* The throttled time begins with the wakeup; after it the thread waits for its turn. */
	if (throttled_ns)
		row.throttled_ns = window_overlap_ns(wake_ns, wake_ns + (int64_t)throttled_ns,
						     from_ns, until_ns);
	return row;
}

void row_set_span(struct window_row *row, const struct window_span *span)
{
	row->count = 1;
	row->max_ns = (uint64_t)(span->end_ns - span->start_ns);
	row->max_end_ns = span->end_ns;
	row->culprits = span->culprits;
}

struct window_row row_of_span(const struct window *window, const struct window_span *span)
{
	const int64_t until_ns = span->end_ns < window->end_ns ? span->end_ns : window->end_ns;
	struct window_row row = row_of_wait(span->start_ns, span->wake_ns, span->throttled_ns,
					    window->start_ns, until_ns);

	row_set_span(&row, span);
	return row;
}
