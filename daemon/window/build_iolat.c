/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/window/build_iolat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/window/build_iolat_open.h"
#include "daemon/window/image_cache.h"

enum { DEVICES_MAX = 256, MINOR_BITS = 20 };

struct io {
	struct io_key key;
	struct io_sums sums;
};

/* A device's name in this window. */
struct device {
	uint32_t dev;
	bool is_character;
	char name[WINDOW_DEVICE_LEN];
};

struct ios {
	struct stack_table *stacks;
	struct io *list;
	size_t n;
	size_t room;
	uint64_t dropped; /* operations, for want of memory, since the last window */
	struct window *window;
	struct image_cache images;
	struct device devices[DEVICES_MAX];
	size_t n_devices;
};

int ios_new(struct process_table *processes, struct stack_table *stacks, struct ios **out)
{
	struct ios *ios = calloc(1, sizeof(*ios));

	if (!ios)
		return -ENOMEM;
	ios->images.processes = processes;
	ios->stacks = stacks;
	*out = ios;
	return 0;
}

struct ios *ios_free(struct ios *ios)
{
	if (!ios)
		return NULL;
	free(ios->list);
	free(ios);
	return NULL;
}

/* Rows of requests have no other count. */
static uint64_t sums_count(const struct io_sums *sums)
{
	uint64_t count = 0;
	size_t i;

	for (i = 0; i < IO_BUCKETS; i++)
		count += sums->buckets[i];
	return count;
}

/* Names are found when all stacks have come: the rows wait until then. */
void ios_add(struct ios *ios, const struct io_key *key, const struct io_sums *sums)
{
	size_t room = ios->room ? ios->room * 2 : 64;
	struct io *list = ios->list;

	if (ios->n == ios->room) {
		list = reallocarray(ios->list, room, sizeof(*list));
		if (!list) {
			ios->dropped += sums_count(sums);
			return;
		}
		ios->list = list;
		ios->room = room;
	}
	list[ios->n++] = (struct io){ *key, *sums };
}

/* What sysfs calls it; major:minor where it is not there (any more). */
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

static void device_name(struct ios *ios, const struct io_key *key, char *out)
{
	bool is_character = key->magic == IO_MAGIC_CHARACTER;
	struct device one = { .dev = key->dev, .is_character = is_character }, *device = &one;
	size_t i;

	if (!key->dev)
		return;
	for (i = 0; i < ios->n_devices; i++) {
		device = &ios->devices[i];
		if (device->dev == key->dev && device->is_character == is_character) {
			memcpy(out, device->name, WINDOW_DEVICE_LEN);
			return;
		}
	}
	device_read(&one);
	if (ios->n_devices < DEVICES_MAX)
		ios->devices[ios->n_devices++] = one;
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

static struct window_io *row_add(struct ios *ios, const struct io_key *key, uint32_t image)
{
	struct window_io *row = window_add_io(ios->window);

	if (!row)
		return NULL;
	row->image = image;
	row->dev = key->dev;
	row->magic = key->magic;
	row->call = key->call;
	row->layer = key->layer;
	row->op = key->op;
	row->is_slow = !!(key->flags & IO_KEY_IS_SLOW);
	device_name(ios, key, row->device);
	return row;
}

/* A part of the requests' time, as a layer of its own. */
static int part_to_window(struct ios *ios, const struct io *io, uint32_t image,
			  const struct window_io *sum, const struct io_part *part)
{
	struct window_io *row = row_add(ios, &io->key, image);
	uint64_t buckets[IO_BUCKETS];
	size_t i;

	if (!row)
		return -ENOMEM;
	row->layer = sum->layer;
	row->count = sum->count;
	row->errors = io->sums.errors;
	row->bytes = io->sums.bytes;
	row->total_ns = row->own_ns = sum->total_ns;
	longest_copy(&part->longest, row);
	for (i = 0; i < IO_BUCKETS; i++)
		buckets[i] = part->buckets[i];
	return window_io_set_buckets(ios->window, row, buckets);
}

static int requests_to_window(struct ios *ios, const struct io *io, struct window_io *row)
{
	const struct io_sums *sums = &io->sums;
	const uint32_t image = row->image;
	const uint64_t count = sums_count(sums);
	int r;

	row->count = count;
	row->total_ns = row->own_ns = sums->queue_ns + sums->device_ns;
	row->queue_ns = row->device_ns = 0;
	r = window_io_set_buckets(ios->window, row, (const uint64_t *)sums->buckets);
	if (r || !count)
		return r;
	r = part_to_window(ios, io, image,
			   &(const struct window_io){
				   .layer = IO_LAYER_QUEUE,
				   .count = count,
				   .total_ns = sums->queue_ns,
			   },
			   &sums->queue);
	return r ? r
		 : part_to_window(ios, io, image,
				  &(const struct window_io){
					  .layer = IO_LAYER_DEVICE,
					  .count = count,
					  .total_ns = sums->device_ns,
				  },
				  &sums->device);
}

static int io_to_window(struct ios *ios, const struct io *io)
{
	const struct io_key *key = &io->key;
	const struct process_id id = {
		.pid = (int32_t)key->tgid,
		.exec_gen = key->exec_gen,
		.start_boot_ns = key->leader_boot_ns,
	};
	const bool is_request = key->layer >= IO_LAYER_BLOCK;
	uint32_t image = IMAGE_NONE;
	struct window_io *row;

	if (key->flags & IO_KEY_IS_REST)
		image = image_cache_get_rest(&ios->images, ios->window);
	else if (is_request && key->writer)
		image = image_cache_get_writer(&ios->images, ios->window, key->writer);
	if (image == IMAGE_NONE)
		image = image_cache_get_process(&ios->images, ios->window, &id,
						key->flags & IO_KEY_IS_KERNEL, io->sums.comm);
	row = image == IMAGE_NONE ? NULL : row_add(ios, key, image);
	if (!row)
		return -ENOMEM;
	sums_copy(&io->sums, row);
	if (row->layer == IO_LAYER_BLOCK)
		return requests_to_window(ios, io, row);
	if (row->is_slow) {
		row->kernel = stack_table_get(ios->stacks, key->kstack, false);
		row->user = stack_table_get(ios->stacks, key->ustack, true);
	}
	return window_io_set_buckets(ios->window, row, (const uint64_t *)io->sums.buckets);
}

struct window *ios_finish(struct ios *ios, const struct io_slot *slots, size_t n_slots,
			  int64_t start_ns, int64_t end_ns)
{
	struct window *window = window_new();
	size_t i;

	if (!window)
		return NULL;
	ios->window = window;
	window->kind = PROBE_IOLAT;
	window->start_ns = start_ns;
	window->end_ns = end_ns;
	for (i = 0; i < ios->n; i++)
		if (io_to_window(ios, &ios->list[i]))
			ios->dropped += sums_count(&ios->list[i].sums);
	ios->dropped += ios_open_add(&ios->images, window, slots, n_slots, end_ns);
	image_cache_clear(&ios->images);
	window->lost[WINDOW_LOST_MEMORY] = ios->dropped;
	ios->n = ios->n_devices = 0;
	ios->dropped = 0;
	ios->window = NULL;
	return window;
}
