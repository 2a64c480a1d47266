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

/*
 * Adds a group for an I/O row. Copies the layer, operation, device and stacks of the row; the sums
 * of the new group are 0. Returns NULL when out of memory.
 */
static struct aggregate_io_group *group_new(struct aggregate *aggregate,
					    const struct aggregate_io_key *key,
					    const struct window_io *io,
					    const struct aggregate_image_info *info)
{
	struct aggregate_io_group *group = calloc(1, sizeof(*group));

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
	if (io->is_slow != (aggregate->options.by == AGGREGATE_BY_STACK) ||
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
	window_io_add(&group->io, io);
	window_io_add_buckets(window, io, group->buckets);
	aggregate->totals.operations += io->count + io->async;
}

void aggregate_io_groups_free(struct aggregate *aggregate)
{
	struct aggregate_io_group *group, *next;

	HASH_ITER (hh, aggregate->io_groups, group, next) {
		HASH_DEL(aggregate->io_groups, group);
		process_unref(group->process.process);
		stack_unref(group->io.kernel);
		stack_unref(group->io.user);
		free(group);
	}
}

int aggregate_io_groups(struct aggregate *aggregate, struct aggregate_io_group ***out,
			size_t *n_out)
{
	struct aggregate_io_group **array, *group, *next;
	size_t n = 0;

	array = calloc(HASH_COUNT(aggregate->io_groups) + 1, sizeof(struct aggregate_io_group *));
	if (!array)
		return -ENOMEM;
	HASH_ITER (hh, aggregate->io_groups, group, next)
		array[n++] = group;
	*out = array;
	*n_out = n;
	return 0;
}
