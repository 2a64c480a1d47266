/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Builds the windows of offwake probes. Their rows count waits by thread, stacks and waker; the
 * waker is the thread or interrupt that ended the wait. A wait is counted with its whole length in
 * the window in which it ended. wakers[i] is the waker of rows[i].
 */
#include <errno.h>
#include <string.h>

#include "bpf/layout.h"
#include "daemon/window/builder_ops.h"

static uint64_t wait_count(const void *value)
{
	const struct wake_sums *sums = value;

	return sums->sums.count;
}

static void waker_fill(struct stack_table *stacks, const struct wake_key *key,
		       const struct wake_sums *sums, struct window_waker *waker)
{
	size_t i;

	waker->kernel = stack_table_get(stacks, key->waker_kstack, false);
	waker->user = stack_table_get(stacks, key->waker_ustack, true);
	for (i = 0; i < WAKE_LINKS; i++) {
		const struct wake_link *link = &sums->links[i];
		struct window_link *out = &waker->links[i];

		out->context = link->context < WAKE_CONTEXTS ? link->context : WAKE_UNKNOWN;
		out->pid = (int32_t)link->tgid;
		out->tid = (int32_t)link->tid;
		/*
		 * The bytes after the end of the name stay zero, because keys that contain comm are
		 * compared as bytes.
		 */
		memcpy(out->comm, link->comm, strnlen(link->comm, COMM_LEN - 1));
	}
}

/*
 * Copies the counts and times of the waits to the row, and adds them to the sums of the waiting
 * thread. If the row stands for short waits of which only some were recorded, these sums are
 * estimates, too.
 */
static void sums_fill(struct window_builder *builder, const struct wait_sums *sums,
		      struct window_row *row)
{
	struct window_image *image = &builder->window->images[row->image];
	struct thread_sums *all = &image->sums;
	const struct window_estimate estimate = {
		.count = sums->count,
		.blocked_ns = sums->blocked_ns,
		.runnable_ns = sums->runnable_ns,
	};

	if (row->state & STATE_SAMPLED)
		window_estimate_add(&image->estimate, &estimate);

	row->count = sums->count;
	row->blocked_ns = sums->blocked_ns;
	row->runnable_ns = sums->runnable_ns;
	row->max_ns = sums->max_ns;
	row->max_end_ns = (int64_t)sums->max_end_ns;
	if (window_row_set_buckets(builder->window, row, sums->buckets))
		builder->dropped++;
	all->blocked_ns += sums->blocked_ns;
	all->runnable_ns += sums->runnable_ns;
	all->switches += sums->count;
}

static int wait_to_window(struct window_builder *builder, const void *row_key, const void *value)
{
	struct stack_table *stacks = builder->options.stacks;
	const struct wake_key *key = row_key;
	const struct wake_sums *sums = value;
	struct window *window = builder->window;
	uint32_t image = image_cache_get(&builder->images, window, &key->target, sums->comm);
	struct window_row *row = image == IMAGE_NONE ? NULL : window_add_row(window);
	struct window_waker *waker = row ? window_add_waker(window) : NULL;

	if (!waker) {
		window->n_rows -= row ? 1 : 0;
		return -ENOMEM;
	}
	row->image = image;
	row->state = key->state;
	row->kernel = stack_table_get(stacks, key->target.kstack, false);
	row->user = stack_table_get(stacks, key->target.ustack, true);
	sums_fill(builder, &sums->sums, row);
	waker_fill(stacks, key, sums, waker);
	return 0;
}

const struct window_builder_ops build_offwake = {
	.size = sizeof(struct window_builder),
	.key_size = sizeof(struct wake_key),
	.value_size = sizeof(struct wake_sums),
	.count = wait_count,
	.put_row = wait_to_window,
};
