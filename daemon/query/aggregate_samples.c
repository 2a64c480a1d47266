/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/aggregate_internal.h"

void merge_sample(struct merge *merge, const struct window *window,
		  const struct window_sample *sample, struct image_info *info)
{
	struct contribution c = {
		.image = &window->images[sample->image],
		.info = info,
		.is_sample = true,
		.count = sample->count,
		.on_ns = sample->on_ns,
	};

	merge->totals.samples += sample->count;
	contribution_stacks(merge, &c, sample->kernel, sample->user);
	contribute(merge, &c);
}
