/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/aggregate_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Returns the key for grouping by window. The key consists of the window, the layer and the kind of
 * operation, without the system call and the device.
 */
static struct aggregate_io_key key_by_window(const struct window *window,
					     const struct window_io *io)
{
	return (struct aggregate_io_key){
		.what = (uint64_t)io->layer << 40 | (uint64_t)io->op << 32,
		.window = window->start_ns + window->real_offset_ns,
	};
}

static struct aggregate_io_key key_by_operation(const struct aggregate *aggregate,
						const struct window_io *io,
						const struct aggregate_image_info *info)
{
	struct aggregate_io_key key = {
		.what = (uint64_t)io->layer << 40 | (uint64_t)io->op << 32 | io->call,
		.where = (uint64_t)io->dev << 32 | io->magic,
	};

	memcpy(key.device, io->device, sizeof(key.device));
	if (aggregate->options.by == AGGREGATE_BY_OPERATION)
		return key;
	key.pid = (uint64_t)(uint32_t)info->process.id.pid;
	key.process_start = info->process.id.start_boot_ns;
	if (aggregate->options.by != AGGREGATE_BY_STACK)
		return key;
	if (!aggregate->filter->drops_kernel)
		key.kernel = stack_place(io->kernel);
	if (!aggregate->filter->drops_user)
		key.user = stack_place(io->user);
	return key;
}

static void group_free(struct aggregate_io_group *group)
{
	process_unref(group->process.process);
	stack_unref(group->io.kernel);
	stack_unref(group->io.user);
	free(group);
}

static void group_merge(struct aggregate_io_group *sum, const struct aggregate_io_group *group)
{
	size_t i;

	if (group->io.max_ns > sum->io.max_ns)
		sum->max_end_real_ns = group->max_end_real_ns;
	window_io_add(&sum->io, &group->io);
	sum->sampled += group->sampled;
	sum->sampled_ns += group->sampled_ns;
	for (i = 0; i < IO_BUCKETS_N; i++)
		sum->buckets[i] += group->buckets[i];
}

/*
 * Merges a group into the sum of the groups of its layer that did not fit into memory, and frees
 * it.
 */
static void group_give_up(struct aggregate *aggregate, struct aggregate_io_group *group)
{
	uint32_t layer = group->io.layer < IO_LAYERS ? group->io.layer : 0;
	struct aggregate_io_group **rest = &aggregate->io_rest[layer];

	if (!*rest) {
		*rest = calloc(1, sizeof(**rest));
		if (!*rest) {
			aggregate->error = -ENOMEM;
			return;
		}
		(*rest)->is_others = true;
		(*rest)->io.layer = group->io.layer;
	}
	HASH_DEL(aggregate->io_groups, group);
	group_merge(*rest, group);
	group_free(group);
	aggregate->others.groups++;
}

static uint64_t rank_of(const struct aggregate *aggregate, const struct aggregate_io_group *group)
{
	switch (aggregate->options.rank) {
	case AGGREGATE_BY_MAX:
		return group->io.max_ns;
	case AGGREGATE_BY_COUNT:
		return group->io.count;
	default:
		return group->io.total_ns + group->io.oldest_ns;
	}
}

/* A group and its rank. When memory is full, the groups with the lowest rank are merged. */
struct ranked {
	uint64_t rank;
	struct aggregate_io_group *group;
};

static int by_rank(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	int r = x->rank < y->rank ? -1 : x->rank > y->rank;

	return r ? r : memcmp(&x->group->key, &y->group->key, sizeof(x->group->key));
}

/* Merges the half of the groups with the lowest rank. */
static void groups_shrink(struct aggregate *aggregate)
{
	size_t n = HASH_COUNT(aggregate->io_groups), i = 0;
	_cleanup_(freep) struct ranked *ranked = calloc(n, sizeof(*ranked));
	struct aggregate_io_group *group, *next;
	uint64_t ns = 0, count = 0;

	if (!ranked) {
		aggregate->error = -ENOMEM;
		return;
	}
	HASH_ITER (hh, aggregate->io_groups, group, next)
		ranked[i++] = (struct ranked){ rank_of(aggregate, group), group };
	qsort(ranked, n, sizeof(*ranked), by_rank);
	for (i = 0; i < n / 2; i++) {
		group = ranked[i].group;
		ns = group->io.total_ns > ns ? group->io.total_ns : ns;
		count = group->io.count > count ? group->io.count : count;
		group_give_up(aggregate, group);
	}
	/* A group that appears again may be merged again: the times that it lacks then add up. */
	aggregate->others.bound_ns += ns;
	aggregate->others.bound_count += count;
}

/*
 * Adds a group for an I/O row. Copies the layer, operation, device and stacks of the row; the sums
 * of the new group are 0. Returns NULL when out of memory.
 */
static struct aggregate_io_group *group_new(struct aggregate *aggregate,
					    const struct aggregate_io_key *key,
					    const struct window_io *io,
					    const struct aggregate_image_info *info)
{
	struct aggregate_io_group *group;

	if (HASH_COUNT(aggregate->io_groups) >= aggregate->max_io_groups)
		groups_shrink(aggregate);
	group = calloc(1, sizeof(*group));
	if (!group)
		return NULL;
	group->key = *key;
	group->process = info->handle;
	if (group->process.process)
		process_ref(group->process.process);
	group->io.layer = io->layer;
	group->io.op = io->op;
	if (!key->window) {
		group->io.call = io->call;
		group->io.dev = io->dev;
		group->io.magic = io->magic;
		memcpy(group->io.device, io->device, sizeof(group->io.device));
	}
	HASH_ADD(hh, aggregate->io_groups, key, sizeof(group->key), group);
	if (!HASH_HAS(group)) {
		free(group);
		return NULL;
	}
	group->io.kernel = key->kernel ? stack_ref(io->kernel) : NULL;
	group->io.user = key->user ? stack_ref(io->user) : NULL;
	return group;
}

void aggregate_add_io(struct aggregate *aggregate, const struct window *window,
		      const struct window_io *io, const struct aggregate_image_info *info,
		      bool is_last)
{
	struct aggregate_io_group *group;
	struct aggregate_io_key key;

	/*
	 * An operation that has not ended may be in several windows. Groups by window count it in
	 * each of these windows; other groups count it only once. So skip it in all windows but the
	 * last: it is also in the window in which it ended or, if it has not ended, in the last
	 * window.
	 */
	if (io->open && !is_last && aggregate->options.by != AGGREGATE_BY_WINDOW)
		return;
	/*
	 * A window counts each slow operation twice: in a row with its stacks (is_slow), and in a
	 * row of all operations. Groups by stack use only rows with stacks; other groups use only
	 * the rows of all operations.
	 */
	if (!!io->is_slow != (aggregate->options.by == AGGREGATE_BY_STACK) ||
	    !filter_has_io(aggregate->filter, io))
		return;
	key = aggregate->options.by == AGGREGATE_BY_WINDOW ? key_by_window(window, io)
							   : key_by_operation(aggregate, io, info);
	HASH_FIND(hh, aggregate->io_groups, &key, sizeof(key), group);
	if (!group)
		group = group_new(aggregate, &key, io, info);
	if (!group) {
		aggregate->error = -ENOMEM;
		return;
	}
	if (io->max_ns > group->io.max_ns)
		group->max_end_real_ns = io->max_end_ns + window->real_offset_ns;
	if (io->is_slow & WINDOW_IO_SAMPLED) {
		group->sampled += io->count;
		group->sampled_ns += io->total_ns;
	}
	window_io_add(&group->io, io);
	window_io_add_buckets(window, io, group->buckets);
	aggregate->totals.operations += io->count + io->async;
}

void aggregate_io_groups_free(struct aggregate *aggregate)
{
	struct aggregate_io_group *group, *next;
	size_t i;

	HASH_ITER (hh, aggregate->io_groups, group, next) {
		HASH_DEL(aggregate->io_groups, group);
		group_free(group);
	}
	for (i = 0; i < IO_LAYERS; i++)
		free(aggregate->io_rest[i]);
}

int aggregate_io_groups(struct aggregate *aggregate, struct aggregate_io_group ***out,
			size_t *n_out)
{
	struct aggregate_io_group **array, *group, *next;
	size_t n = 0, i;

	array = calloc(HASH_COUNT(aggregate->io_groups) + IO_LAYERS + 1,
		       sizeof(struct aggregate_io_group *));
	if (!array)
		return -ENOMEM;
	HASH_ITER (hh, aggregate->io_groups, group, next)
		array[n++] = group;
	for (i = 0; i < IO_LAYERS; i++)
		if (aggregate->io_rest[i])
			array[n++] = aggregate->io_rest[i];
	*out = array;
	*n_out = n;
	return 0;
}
