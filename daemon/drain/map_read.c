/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/drain/map_read.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include <bpf/bpf.h>

#include "common/base.h"

enum {
	BATCH = 2048, /* number of map entries per read; doubled if one hash bucket has more */
	BATCH_MAX = 65536,
};

struct batch {
	void *keys;
	void *values;
	uint32_t room;
	uint32_t n;
};

static void batch_fini(struct batch *batch)
{
	free(batch->keys);
	free(batch->values);
}

static int batch_resize(struct batch *batch, uint32_t room, size_t key_size, size_t value_size)
{
	void *keys = reallocarray(batch->keys, room, key_size), *values;

	if (!keys)
		return -ENOMEM;
	batch->keys = keys;
	values = reallocarray(batch->values, room, value_size);
	if (!values)
		return -ENOMEM;
	batch->values = values;
	batch->room = room;
	return 0;
}

int drain_map_read(int fd, size_t key_size, size_t value_size, drain_map_fn entry_fn, void *context)
{
	_cleanup_(batch_fini) struct batch batch = {};
	uint64_t in = 0, out = 0;
	bool is_first = true;
	uint32_t i;
	int r = batch_resize(&batch, BATCH, key_size, value_size), end;

	while (!r) {
		batch.n = batch.room;
		end = bpf_map_lookup_and_delete_batch(fd, is_first ? NULL : &in, &out, batch.keys,
						      batch.values, &batch.n, NULL);
		if (end == -ENOSPC && batch.room < BATCH_MAX) {
			r = batch_resize(&batch, batch.room * 2, key_size, value_size);
			continue;
		}
		if (end && end != -ENOENT)
			return end;
		for (i = 0; i < batch.n; i++)
			entry_fn(context, (char *)batch.keys + i * key_size,
				 (char *)batch.values + i * value_size);
		if (end == -ENOENT)
			return 0;
		in = out;
		is_first = false;
	}
	return r;
}
