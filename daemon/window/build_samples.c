/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Builds the windows of oncpu, stackcount and stacksnoop probes: counts of samples or calls by
 * thread and stack. For oncpu, also the CPU time that the samples stand for.
 */
#include <errno.h>

#include "bpf/layout.h"
#include "daemon/window/builder_ops.h"

static uint64_t sample_count(const void *value)
{
	const struct sample_sums *sums = value;

	return sums->count;
}

static int sample_to_window(struct window_builder *builder, const void *row_key, const void *value)
{
	const struct sample_key *key = row_key;
	const struct sample_sums *sums = value;
	uint32_t image = image_cache_get(&builder->images, builder->window, key, sums->comm);
	struct window_sample *row = image == IMAGE_NONE ? NULL : window_add_sample(builder->window);

	if (!row)
		return -ENOMEM;
	row->image = image;
	row->count = sums->count;
	row->on_ns = row->count * builder->options.period_ns;
	row->kernel = stack_table_get(builder->options.stacks, key->kstack, false);
	row->user = stack_table_get(builder->options.stacks, key->ustack, true);
	builder->window->images[image].sums.on_ns += row->on_ns;
	return 0;
}

const struct window_builder_ops build_samples = {
	.size = sizeof(struct window_builder),
	.key_size = sizeof(struct sample_key),
	.value_size = sizeof(struct sample_sums),
	.count = sample_count,
	.put_row = sample_to_window,
};
