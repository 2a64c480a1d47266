/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Builds the windows of iolat probes. Their rows count I/O operations by process, layer, kind of
 * operation and device; separate rows count the operations that have not ended when the window
 * ends. The names of devices are read when the window is built.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bpf/io_shared.h"
#include "common/base.h"
#include "daemon/host/procfs.h"
#include "daemon/window/builder_ops.h"

/*
 * An I/O operation that has not ended when a window ends is in the window only if it has run for
 * this long: most shorter ones end before a client could look at them.
 */
#define OPEN_MIN_NS NS_PER_S

enum { DEVICES_MAX = 256, MINOR_BITS = 20 };

/* The number of a device, and the name of the device with this number in the present window. */
struct device {
	uint32_t dev;
	bool is_character;
	char name[WINDOW_DEVICE_LEN];
};

struct iolat_builder {
	struct window_builder base;
	struct device devices[DEVICES_MAX];
	size_t n_devices;
};

/*
 * Returns the number of operations that a row of the BPF map counts: the sum of its histogram
 * buckets. Rows of block requests have no other count.
 */
static uint64_t operation_count(const void *value)
{
	const struct io_sums *sums = value;
	uint64_t count = 0;
	size_t i;

	for (i = 0; i < IO_BUCKETS; i++)
		count += sums->buckets[i];
	return count;
}

/*
 * Sets device->name to the device's name in sysfs, or to "major:minor" if the device no longer
 * exists.
 */
static void device_read(struct device *device)
{
	uint32_t major = device->dev >> MINOR_BITS, minor = device->dev & ((1U << MINOR_BITS) - 1);
	char path[64], target[512];
	const char *name;
	ssize_t n;

	snprintf(path, sizeof(path), "/sys/dev/%s/%u:%u", device->is_character ? "char" : "block",
		 major, minor);
	n = readlink(path, target, sizeof(target) - 1);
	target[n > 0 ? n : 0] = '\0';
	name = strrchr(target, '/');
	if (name && name[1])
		snprintf(device->name, sizeof(device->name), "%.15s", name + 1);
	else
		snprintf(device->name, sizeof(device->name), "%u:%u", major, minor);
}

/*
 * Forgets the device names that were read for the previous window. Since then, the kernel may have
 * given the number of a device to another device.
 */
static void devices_forget(struct window_builder *builder)
{
	((struct iolat_builder *)builder)->n_devices = 0;
}

/*
 * Copies to `out` the name of the device with the number key->dev. Reads each name from sysfs once
 * per window.
 */
static void device_name(struct iolat_builder *builder, const struct io_key *key, char *out)
{
	bool is_character = key->magic == IO_MAGIC_CHARACTER;
	struct device one = { .dev = key->dev, .is_character = is_character }, *device;
	size_t i;

	if (!key->dev)
		return;
	for (i = 0; i < builder->n_devices; i++) {
		device = &builder->devices[i];
		if (device->dev == key->dev && device->is_character == is_character) {
			memcpy(out, device->name, WINDOW_DEVICE_LEN);
			return;
		}
	}
	device_read(&one);
	if (builder->n_devices < DEVICES_MAX)
		builder->devices[builder->n_devices++] = one;
	memcpy(out, one.name, WINDOW_DEVICE_LEN);
}

static void longest_copy(const struct io_longest *longest, struct window_io *row)
{
	row->max_ns = longest->ns;
	row->max_end_ns = (int64_t)longest->end_ns;
	row->max_tid = (int32_t)longest->tid;
}

static void sums_copy(const struct io_sums *sums, struct window_io *row)
{
	row->count = sums->count;
	row->total_ns = sums->total_ns;
	row->own_ns = sums->own_ns;
	row->runnable_ns = sums->runnable_ns;
	row->asleep_ns = sums->asleep_ns;
	row->device_ns = sums->device_ns;
	row->queue_ns = sums->queue_ns;
	row->throttled_ns = sums->throttled_ns;
	row->async = sums->async;
	row->errors = sums->errors;
	row->bytes = sums->bytes;
	row->merges = sums->merges;
	row->requeues = sums->requeues;
	longest_copy(&sums->longest, row);
}

static struct window_io *row_add(struct window_builder *builder, const struct io_key *key,
				 uint32_t image)
{
	struct window_io *row = window_add_io(builder->window);

	if (!row)
		return NULL;
	row->image = image;
	row->dev = key->dev;
	row->magic = key->magic;
	row->call = key->call;
	row->layer = key->layer;
	row->op = key->op;
	if (key->flags & IO_KEY_IS_SLOW)
		row->is_slow = WINDOW_IO_SLOW;
	if (key->flags & IO_KEY_IS_SAMPLED)
		row->is_slow |= WINDOW_IO_SAMPLED;
	device_name((struct iolat_builder *)builder, key, row->device);
	return row;
}

/*
 * The time that block requests took has two parts: the time in the queue, and the time on the
 * device. Adds a row for one of the two, because each is shown as an I/O layer of its own.
 */
static int part_to_window(struct window_builder *builder, const struct io_key *key,
			  const struct io_sums *sums, const struct window_io *part_sum,
			  const struct io_part *part)
{
	struct window_io *row = row_add(builder, key, part_sum->image);
	uint64_t buckets[IO_BUCKETS];
	size_t i;

	if (!row)
		return -ENOMEM;
	row->layer = part_sum->layer;
	row->count = part_sum->count;
	row->errors = sums->errors;
	row->bytes = sums->bytes;
	row->total_ns = row->own_ns = part_sum->total_ns;
	longest_copy(&part->longest, row);
	for (i = 0; i < IO_BUCKETS; i++)
		buckets[i] = part->buckets[i];
	return window_io_set_buckets(builder->window, row, buckets);
}

/*
 * Fills the window's row of block requests, and adds one row for their time in the queue and one
 * for their time on the device.
 */
static int requests_to_window(struct window_builder *builder, const struct io_key *key,
			      const struct io_sums *sums, struct window_io *row)
{
	struct window_io part = { .image = row->image, .count = operation_count(sums) };
	int r;

	row->count = part.count;
	row->total_ns = row->own_ns = sums->queue_ns + sums->device_ns;
	row->queue_ns = row->device_ns = 0;
	r = window_io_set_buckets(builder->window, row, (const uint64_t *)sums->buckets);
	if (r || !part.count)
		return r;
	part.layer = IO_LAYER_QUEUE;
	part.total_ns = sums->queue_ns;
	r = part_to_window(builder, key, sums, &part, &sums->queue);
	if (r)
		return r;
	part.layer = IO_LAYER_DEVICE;
	part.total_ns = sums->device_ns;
	return part_to_window(builder, key, sums, &part, &sums->device);
}

static int operation_to_window(struct window_builder *builder, const void *row_key,
			       const void *value)
{
	const struct io_key *key = row_key;
	const struct io_sums *sums = value;
	const struct process_id id = {
		.pid = (int32_t)key->tgid,
		.exec_gen = key->exec_gen,
		.start_boot_ns = key->leader_boot_ns,
	};
	const bool is_request = key->layer >= IO_LAYER_BLOCK;
	uint32_t image = IMAGE_NONE;
	struct window_io *row;

	if (key->flags & IO_KEY_IS_REST)
		image = image_cache_get_rest(&builder->images, builder->window);
	else if (is_request && key->writer)
		image = image_cache_get_writer(&builder->images, builder->window, key->writer);
	if (image == IMAGE_NONE)
		image = image_cache_get_process(&builder->images, builder->window, &id,
						key->flags & IO_KEY_IS_KERNEL, sums->comm);
	row = image == IMAGE_NONE ? NULL : row_add(builder, key, image);
	if (!row)
		return -ENOMEM;
	sums_copy(sums, row);
	if (row->layer == IO_LAYER_BLOCK)
		return requests_to_window(builder, key, sums, row);
	if (row->is_slow) {
		row->kernel = stack_table_get(builder->options.stacks, key->kstack, false);
		row->user = stack_table_get(builder->options.stacks, key->ustack, true);
	}
	return window_io_set_buckets(builder->window, row, (const uint64_t *)sums->buckets);
}

/*
 * Copies the unfinished I/O operations of one thread, which BPF programs may be changing meanwhile.
 * False if the thread has none, or if it began a new outermost operation during the copy: all of
 * its operations are then younger than OPEN_MIN_NS.
 */
static bool slot_copy(const struct io_slot *slot, struct io_slot *copy)
{
	uint32_t generation = __atomic_load_n(&slot->generation, __ATOMIC_ACQUIRE);

	if (!__atomic_load_n(&slot->depth, __ATOMIC_RELAXED))
		return false;
	memcpy(copy, slot, sizeof(*copy));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return copy->depth && copy->depth <= IO_DEPTH &&
	       __atomic_load_n(&slot->generation, __ATOMIC_RELAXED) == generation;
}

/*
 * Returns the window's row that counts the unfinished operations of this process (`image`) with the
 * layer, kind and system call of `frame`. Adds the row if there is none. Rows of unfinished
 * operations begin at index `first`. NULL when out of memory.
 */
static struct window_io *open_row_get(struct window *window, size_t first,
				      const struct io_frame *frame, uint32_t image)
{
	struct window_io *row;
	size_t i;

	for (i = first; i < window->n_ios; i++) {
		row = &window->ios[i];
		if (row->image == image && row->layer == frame->layer && row->op == frame->op &&
		    row->call == frame->call)
			return row;
	}
	row = window_add_io(window);
	if (!row)
		return NULL;
	row->image = image;
	row->layer = frame->layer;
	row->op = frame->op;
	row->call = frame->call;
	return row;
}

/*
 * Adds the unfinished I/O operations of one thread to those rows of the window that count
 * unfinished operations. These rows begin at index `first`.
 */
static void slot_to_window(struct window_builder *builder, size_t first, const struct io_slot *slot)
{
	const struct process_id id = {
		.pid = (int32_t)slot->tgid,
		.exec_gen = slot->exec_gen,
		.start_boot_ns = slot->leader_boot_ns,
	};
	uint32_t i, image = image_cache_get_process(&builder->images, builder->window, &id,
						    slot->flags & IO_KEY_IS_KERNEL, NULL);

	if (image == IMAGE_NONE) {
		builder->dropped += slot->depth;
		return;
	}
	for (i = 0; i < slot->depth; i++) {
		int64_t age = builder->end_ns - (int64_t)slot->frames[i].start_ns;
		struct window_io *row;

		if (age < OPEN_MIN_NS)
			break;
		row = open_row_get(builder->window, first, &slot->frames[i], image);
		if (row)
			window_io_add(row, &(const struct window_io){
						   .open = 1,
						   .oldest_ns = (uint64_t)age,
						   .oldest_tid = (int32_t)slot->tid,
					   });
		else
			builder->dropped++;
	}
}

/* Adds rows for the I/O operations that had not ended when the window ended. */
static void open_to_window(struct window_builder *builder)
{
	size_t first = builder->window->n_ios, i;
	struct io_slot slot;

	for (i = 0; i < builder->options.n_io_slots; i++)
		if (slot_copy(&builder->options.io_slots[i], &slot) &&
		    !(slot.flags & IO_SLOT_IS_UNWANTED) &&
		    builder->end_ns - (int64_t)slot.frames[0].start_ns >= OPEN_MIN_NS &&
		    procfs_has_thread(slot.tgid, slot.tid))
			slot_to_window(builder, first, &slot);
}

const struct window_builder_ops build_iolat = {
	.size = sizeof(struct iolat_builder),
	.key_size = sizeof(struct io_key),
	.value_size = sizeof(struct io_sums),
	.count = operation_count,
	.put_row = operation_to_window,
	.before_rows = devices_forget,
	.after_rows = open_to_window,
};
