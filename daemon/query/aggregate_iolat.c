/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/aggregate_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A system call is of the kind that its layer's other operations are of. */
static void key_make_window(const struct window *window, const struct window_io *io,
			    struct merge_io_key *key)
{
	*key = (struct merge_io_key){
		.what = (uint64_t)io->layer << 40 | (uint64_t)io->op << 32,
		.window = window->start_ns + window->real_offset_ns,
	};
}

static void key_make(const struct merge *merge, const struct window_io *io,
		     const struct image_info *info, struct merge_io_key *key)
{
	*key = (struct merge_io_key){
		.what = (uint64_t)io->layer << 40 | (uint64_t)io->op << 32 | io->call,
		.where = (uint64_t)io->dev << 32 | io->magic,
	};
	memcpy(key->device, io->device, sizeof(key->device));
	if (merge->options.by == MERGE_BY_OPERATION)
		return;
	key->pid = (uint64_t)(uint32_t)info->process.id.pid;
	key->process_start = info->process.id.start_boot_ns;
	if (merge->options.by != MERGE_BY_STACK)
		return;
	if (!merge->filter->drops_kernel)
		key->kernel = stack_place(io->kernel);
	if (!merge->filter->drops_user)
		key->user = stack_place(io->user);
}

static struct merge_io *group_new(struct merge *merge, const struct merge_io_key *key,
				  const struct window_io *io, struct image_info *info)
{
	struct merge_io *group = calloc(1, sizeof(*group));

	if (!group)
		return NULL;
	group->key = *key;
	group->io = *io;
	if (key->window) {
		group->io.call = group->io.dev = group->io.magic = 0;
		memset(group->io.device, 0, sizeof(group->io.device));
	}
	group->image = &info->image;
	group->io.kernel = key->kernel ? stack_ref(io->kernel) : NULL;
	group->io.user = key->user ? stack_ref(io->user) : NULL;
	group->io.count = group->io.total_ns = group->io.own_ns = group->io.runnable_ns = 0;
	group->io.asleep_ns = group->io.device_ns = group->io.queue_ns = 0;
	group->io.throttled_ns = group->io.async = group->io.errors = group->io.bytes = 0;
	group->io.merges = group->io.requeues = group->io.max_ns = 0;
	group->io.open = group->io.oldest_ns = 0;
	HASH_ADD(hh, merge->ios, key, sizeof(group->key), group);
	if (HASH_HAS(group))
		return group;
	stack_unref(group->io.kernel);
	stack_unref(group->io.user);
	free(group);
	return NULL;
}

void merge_io(struct merge *merge, const struct window *window, const struct window_io *io,
	      struct image_info *info, bool is_last)
{
	struct merge_io_key key;
	struct merge_io *group;

	/* What is open at the end of a window before is over, or open at the end. */
	if (io->open && !is_last && merge->options.by != MERGE_BY_WINDOW)
		return;
	/* Slow ones are in the rows of all as well. */
	if (io->is_slow != (merge->options.by == MERGE_BY_STACK) ||
	    !filter_has_io(merge->filter, io))
		return;
	if (merge->options.by == MERGE_BY_WINDOW)
		key_make_window(window, io, &key);
	else
		key_make(merge, io, info, &key);
	HASH_FIND(hh, merge->ios, &key, sizeof(key), group);
	if (!group)
		group = group_new(merge, &key, io, info);
	if (!group) {
		merge->error = -ENOMEM;
		return;
	}
	if (io->max_ns > group->io.max_ns)
		group->max_end_real_ns = io->max_end_ns + window->real_offset_ns;
	window_io_add(&group->io, io);
	window_io_add_buckets(window, io, group->buckets);
	merge->totals.ios += io->count + io->async;
}

void merge_ios_free(struct merge *merge)
{
	struct merge_io *group, *next;

	HASH_ITER (hh, merge->ios, group, next) {
		HASH_DEL(merge->ios, group);
		stack_unref(group->io.kernel);
		stack_unref(group->io.user);
		free(group);
	}
}

int merge_ios(struct merge *merge, struct merge_io ***out, size_t *n_out)
{
	struct merge_io **array = calloc(HASH_COUNT(merge->ios) + 1, sizeof(struct merge_io *));
	struct merge_io *group, *next;
	size_t n = 0;

	if (!array)
		return -ENOMEM;
	HASH_ITER (hh, merge->ios, group, next)
		array[n++] = group;
	*out = array;
	*n_out = n;
	return 0;
}
