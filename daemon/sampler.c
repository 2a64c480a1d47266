/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/sampler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/hash_table.h"
#include "proto/base.h"

struct sample {
	struct sample_key key;
	struct sample_sums sums;
};

/* A thread as one image, of the cut in progress. */
struct face {
	uint64_t key[3]; /* start, tid, exec generation */
	uint32_t image;
	UT_hash_handle hh; /* faces */
};

struct sampler {
	struct process_table *processes;
	struct stack_table *stacks;
	uint64_t period_ns;
	struct sample *samples;
	size_t n;
	size_t room;
	uint64_t dropped; /* samples, for want of memory, since the last window */
	struct window *window;
	struct face *faces;
};

int sampler_new(struct process_table *processes, struct stack_table *stacks, uint64_t period_ns,
		struct sampler **out)
{
	struct sampler *sampler = calloc(1, sizeof(*sampler));

	if (!sampler)
		return -ENOMEM;
	sampler->processes = processes;
	sampler->stacks = stacks;
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

/* A thread has one number for its life, also across sessions and kinds of data. */
static uint64_t thread_uid(const struct sample_key *key)
{
	return (key->start_boot_ns ^ (uint64_t)key->tid << 40) * UINT64_C(0x9e3779b97f4a7c15);
}

static int image_fill(struct sampler *sampler, const struct sample *sample,
		      struct window_image *image)
{
	const struct sample_key *key = &sample->key;
	struct process_id id = {
		.pid = (int32_t)key->tgid,
		.exec_gen = key->exec_gen,
		.start_boot_ns = key->leader_boot_ns,
	};

	image->uid = thread_uid(key);
	image->tid = (int32_t)key->tid;
	image->start_boot_ns = key->start_boot_ns;
	image->exec_gen = key->exec_gen;
	memcpy(image->comm, sample->sums.comm, strnlen(sample->sums.comm, COMM_LEN - 1));
	/* The idle tasks, one a CPU, are one. */
	if (!key->tid)
		strcpy(image->comm, "idle");
	image->process =
		process_table_see(sampler->processes, &id, key->flags & SAMPLE_IS_KERNEL,
				  key->tid == key->tgid ? image->comm : NULL);
	return image->process ? 0 : -ENOMEM;
}

static struct face *face_get(struct sampler *sampler, const struct sample *sample)
{
	uint64_t key[3] = { sample->key.start_boot_ns, sample->key.tid, sample->key.exec_gen };
	struct window_image *image;
	struct face *face;

	HASH_FIND(hh, sampler->faces, key, sizeof(key), face);
	if (face)
		return face;
	image = window_add_image(sampler->window);
	if (!image)
		return NULL;
	face = calloc(1, sizeof(*face));
	if (face && !image_fill(sampler, sample, image)) {
		memcpy(face->key, key, sizeof(key));
		face->image = (uint32_t)sampler->window->n_images - 1;
		HASH_ADD(hh, sampler->faces, key, sizeof(face->key), face);
		if (HASH_HAS(face))
			return face;
		image->process = process_unref(image->process);
	}
	free(face);
	sampler->window->n_images--;
	return NULL;
}

static void sample_to_window(struct sampler *sampler, const struct sample *sample)
{
	struct face *face = face_get(sampler, sample);
	struct window_sample *row = face ? window_add_sample(sampler->window) : NULL;

	if (!row) {
		sampler->dropped += sample->sums.count;
		return;
	}
	row->image = face->image;
	row->count = sample->sums.count;
	row->on_ns = row->count * sampler->period_ns;
	row->kernel = stack_table_get(sampler->stacks, sample->key.kstack, false);
	row->user = stack_table_get(sampler->stacks, sample->key.ustack, true);
	sampler->window->images[face->image].sums.on_ns += row->on_ns;
}

struct window *sampler_finish(struct sampler *sampler, int64_t start_ns, int64_t end_ns)
{
	struct window *window = window_new();
	struct face *face, *next;
	size_t i;

	if (!window)
		return NULL;
	sampler->window = window;
	window->kind = PROBE_ONCPU;
	window->start_ns = start_ns;
	window->end_ns = end_ns;
	for (i = 0; i < sampler->n; i++)
		sample_to_window(sampler, &sampler->samples[i]);
	HASH_ITER(hh, sampler->faces, face, next)
	{
		HASH_DEL(sampler->faces, face);
		free(face);
	}
	window->lost[WINDOW_LOST_MEMORY] = sampler->dropped;
	sampler->n = 0;
	sampler->dropped = 0;
	sampler->window = NULL;
	return window;
}
