/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/downsample.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "common/hash_table.h"

/*
 * The sum of all I/O rows with the same process, layer, operation, system call, device and stacks.
 */
struct io_entry {
	uint64_t key[8];
	struct window_io io; /* the sum, as a row; its stacks are borrowed */
	uint64_t buckets[IO_BUCKETS_N];
	UT_hash_handle hh;
};

static struct io_entry *entry_get(struct io_entry **entries, const struct window_io *io,
				  uint32_t image)
{
	uint64_t key[8] = { (uint64_t)image << 32 | (io->open ? 16U : 0) | io->is_slow,
			    (uint64_t)io->layer << 32 | io->op,
			    (uint64_t)io->call << 32 | io->magic,
			    io->dev,
			    (uintptr_t)io->kernel,
			    (uintptr_t)io->user };
	struct io_entry *entry;

	memcpy(&key[6], io->device, sizeof(io->device));
	HASH_FIND(hh, *entries, key, sizeof(key), entry);
	if (entry)
		return entry;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return NULL;
	memcpy(entry->key, key, sizeof(key));
	entry->io = (struct window_io){
		.kernel = io->kernel,
		.user = io->user,
		.image = image,
		.dev = io->dev,
		.magic = io->magic,
		.call = io->call,
		.layer = io->layer,
		.op = io->op,
		.is_slow = io->is_slow,
	};
	memcpy(entry->io.device, io->device, sizeof(io->device));
	HASH_ADD(hh, *entries, key, sizeof(entry->key), entry);
	if (HASH_HAS(entry))
		return entry;
	free(entry);
	return NULL;
}

/* Adds the sum as a row to the merged window `out`, with its own references to the stacks. */
static int entry_finish(struct window *out, const struct io_entry *entry)
{
	struct window_io *row = window_add_io(out);

	if (!row)
		return -ENOMEM;
	*row = entry->io;
	stack_ref(row->kernel);
	stack_ref(row->user);
	return window_io_set_buckets(out, row, entry->buckets);
}

int store_downsample_ios_add(struct io_entry **entries, const struct window *window,
			     const uint32_t *images, bool is_last)
{
	struct io_entry *entry;
	size_t i;

	for (i = 0; i < window->n_ios; i++) {
		const struct window_io *io = &window->ios[i];

		if (io->open && !is_last)
			continue;
		entry = entry_get(entries, io, images[io->image]);
		if (!entry)
			return -ENOMEM;
		window_io_add(&entry->io, io);
		window_io_add_buckets(window, io, entry->buckets);
	}
	return 0;
}

int store_downsample_ios_finish(struct io_entry *entries, struct window *out)
{
	struct io_entry *entry, *next;
	int r;

	HASH_ITER (hh, entries, entry, next) {
		r = entry_finish(out, entry);
		if (r)
			return r;
	}
	return 0;
}

void store_downsample_ios_free(struct io_entry **entries)
{
	struct io_entry *entry, *next;

	HASH_ITER (hh, *entries, entry, next) {
		HASH_DEL(*entries, entry);
		free(entry);
	}
}
