/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/window/build_samples.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base.h"
#include "daemon/window/image_cache.h"

struct sample {
	struct sample_key key;
	struct sample_sums sums;
};

struct sampler {
	struct stack_table *stacks;
	enum probe_kind kind;
	uint64_t period_ns;
	struct sample *samples;
	size_t n;
	size_t room;
	uint64_t dropped; /* samples, for want of memory, since the last window */
	struct window *window;
	struct image_cache images;
};

int sampler_new(enum probe_kind kind, struct process_table *processes, struct stack_table *stacks,
		uint64_t period_ns, struct sampler **out)
{
	struct sampler *sampler = calloc(1, sizeof(*sampler));

	if (!sampler)
		return -ENOMEM;
	sampler->images.processes = processes;
	sampler->stacks = stacks;
	sampler->kind = kind;
	sampler->period_ns = period_ns;
	*out = sampler;
	return 0;
}

struct sampler *sampler_free(struct sampler *sampler)
{
	if (!sampler)
		return NULL;
	free(sampler->samples);
	free(sampler);
	return NULL;
}

/* Names are found when all stacks have come: the rows wait until then. */
void sampler_add(struct sampler *sampler, const struct sample_key *key,
		 const struct sample_sums *sums)
{
	size_t room = sampler->room ? sampler->room * 2 : 256;
	struct sample *samples = sampler->samples;

	if (sampler->n == sampler->room) {
		samples = reallocarray(sampler->samples, room, sizeof(*samples));
		if (!samples) {
			sampler->dropped += sums->count;
			return;
		}
		sampler->samples = samples;
		sampler->room = room;
	}
	samples[sampler->n++] = (struct sample){ *key, *sums };
}

static void sample_to_window(struct sampler *sampler, const struct sample *sample)
{
	uint32_t image =
		image_cache_get(&sampler->images, sampler->window, &sample->key, sample->sums.comm);
	struct window_sample *row = image == IMAGE_NONE ? NULL : window_add_sample(sampler->window);

	if (!row) {
		sampler->dropped += sample->sums.count;
		return;
	}
	row->image = image;
	row->count = sample->sums.count;
	row->on_ns = row->count * sampler->period_ns;
	row->kernel = stack_table_get(sampler->stacks, sample->key.kstack, false);
	row->user = stack_table_get(sampler->stacks, sample->key.ustack, true);
	sampler->window->images[image].sums.on_ns += row->on_ns;
}

struct window *sampler_finish(struct sampler *sampler, int64_t start_ns, int64_t end_ns)
{
	struct window *window = window_new();
	size_t i;

	if (!window)
		return NULL;
	sampler->window = window;
	window->kind = sampler->kind;
	window->start_ns = start_ns;
	window->end_ns = end_ns;
	for (i = 0; i < sampler->n; i++)
		sample_to_window(sampler, &sampler->samples[i]);
	image_cache_clear(&sampler->images);
	window->lost[WINDOW_LOST_MEMORY] = sampler->dropped;
	sampler->n = 0;
	sampler->dropped = 0;
	sampler->window = NULL;
	return window;
}
