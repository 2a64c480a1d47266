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

/* Returns the sum of the groups of a layer that did not fit into memory; NULL when out of memory.
 */
static struct aggregate_io_group *rest_get(struct aggregate *aggregate, uint32_t layer)
{
	struct aggregate_io_group **rest = &aggregate->io_rest[layer < IO_LAYERS ? layer : 0];

	if (*rest)
		return *rest;
	*rest = calloc(1, sizeof(**rest));
	if (!*rest) {
		aggregate->error = -ENOMEM;
		return NULL;
	}
	(*rest)->is_others = true;
	(*rest)->io.layer = layer;
	return *rest;
}

/* Merges a group that is no longer in aggregate->io_groups into the sum of rest_get(); frees it. */
static void group_give_up(struct aggregate *aggregate, struct aggregate_io_group *group)
{
	struct aggregate_io_group *rest = rest_get(aggregate, group->io.layer);
	const struct aggregate_sums sums = { .ns = group->io.total_ns, .count = group->io.count };

	if (rest) {
		aggregate_lacks_add(&aggregate->lacks,
				    key_index_hash(&group->key, sizeof(group->key)), &sums);
		group_merge(rest, group);
		aggregate->others.groups++;
	}
	group_free(group);
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
	size_t n = aggregate->io_groups.n, i = 0, at = 0;
	_cleanup_(freep) struct ranked *ranked = calloc(n, sizeof(*ranked));
	struct aggregate_io_group *group;

	if (!ranked) {
		aggregate->error = -ENOMEM;
		return;
	}
	while ((group = key_index_next(&aggregate->io_groups, &at)))
		ranked[i++] = (struct ranked){ rank_of(aggregate, group), group };
	qsort(ranked, n, sizeof(*ranked), by_rank);
	if (aggregate_lacks_give_up(&aggregate->lacks, ranked[(n - 1) / 2].rank)) {
		aggregate->error = -ENOMEM;
		return;
	}
	key_index_clear(&aggregate->io_groups);
	for (i = 0; i < n / 2; i++)
		group_give_up(aggregate, ranked[i].group);
	for (; i < n; i++) {
		group = ranked[i].group;
		if (key_index_add(&aggregate->io_groups, group,
				  key_index_hash(&group->key, sizeof(group->key))))
			aggregate->error = -ENOMEM;
	}
}

/*
 * Adds a group for an I/O row. Copies the layer, operation, device and stacks of the row; the sums
 * of the new group are 0. Returns NULL when out of memory.
 */
static struct aggregate_io_group *group_new(struct aggregate *aggregate,
					    const struct aggregate_io_key *key, uint64_t hash,
					    const struct window_io *io,
					    const struct aggregate_image_info *info)
{
	struct aggregate_io_group *group;

	if (aggregate->io_groups.n >= aggregate->max_io_groups)
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
	if (key_index_add(&aggregate->io_groups, group, hash)) {
		process_unref(group->process.process);
		free(group);
		return NULL;
	}
	group->io.kernel = key->kernel ? stack_ref(io->kernel) : NULL;
	group->io.user = key->user ? stack_ref(io->user) : NULL;
	return group;
}

/*
 * Returns the group of an I/O row; creates it if it does not exist, unless memory was full before
 * and the group would be too low to be kept. NULL when out of memory.
 */
static struct aggregate_io_group *group_get(struct aggregate *aggregate,
					    const struct aggregate_io_key *key,
					    const struct window_io *io,
					    const struct aggregate_image_info *info)
{
	const struct aggregate_sums sums = {
		.ns = io->total_ns,
		.count = io->count,
		.max_ns = io->max_ns,
	};
	uint64_t hash = key_index_hash(key, sizeof(*key));
	struct aggregate_io_group *group = key_index_find(&aggregate->io_groups, key, hash);

	if (group)
		return group;
	if (io->open ||
	    !aggregate_lacks_is_low(&aggregate->lacks, hash, aggregate->options.rank, &sums))
		return group_new(aggregate, key, hash, io, info);
	aggregate_lacks_add(&aggregate->lacks, hash, &sums);
	aggregate->others.groups++;
	return rest_get(aggregate, io->layer);
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
	group = group_get(aggregate, &key, io, info);
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
	struct aggregate_io_group *group;
	size_t i, at = 0;

	while ((group = key_index_next(&aggregate->io_groups, &at)))
		group_free(group);
	key_index_fini(&aggregate->io_groups);
	for (i = 0; i < IO_LAYERS; i++)
		free(aggregate->io_rest[i]);
}

int aggregate_io_groups(struct aggregate *aggregate, struct aggregate_io_group ***out,
			size_t *n_out)
{
	struct aggregate_io_group **array, *group;
	size_t n = 0, i, at = 0;

	array = calloc(aggregate->io_groups.n + IO_LAYERS + 1, sizeof(struct aggregate_io_group *));
	if (!array)
		return -ENOMEM;
	while ((group = key_index_next(&aggregate->io_groups, &at)))
		array[n++] = group;
	for (i = 0; i < IO_LAYERS; i++)
		if (aggregate->io_rest[i])
			array[n++] = aggregate->io_rest[i];
	*out = array;
	*n_out = n;
	return 0;
}
