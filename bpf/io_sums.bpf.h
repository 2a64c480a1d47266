/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_IO_SUMS_BPF_H
#define STACKD_BPF_IO_SUMS_BPF_H

/*
 * Records an ended operation in its row of the window's map: its times in the sums and histograms,
 * and the operation itself if it is the longest one. Several CPUs may write a row at once, so each
 * addition is atomic.
 */

#include "io_kernel.h"

#include <bpf/bpf_helpers.h>

#include "buckets.h"
#include "io_shared.h"
#include "iolat_types.bpf.h"
#include "maps.bpf.h"
#include "sample.h"

static __always_inline __u32 io_bucket(__u64 ns)
{
	return ns < 1ULL << 32 ? log2_of_32(ns) : 32 + log2_of_32(ns >> 32);
}

/*
 * Limit of rows in a window that belong to a single process. All further processes share combined
 * rows, for which the map has room beyond this limit. So on a host that starts hundreds of programs
 * a second, some operations have no process name, but none is lost.
 */
const volatile __u32 max_rows = 0;

/*
 * Number of rows that a window has, in the lower 32 bits; the upper 32 bits are the number (epoch)
 * of the window. The index is epoch & 1.
 */
static __u64 rows_taken[2];

static __always_inline bool row_is_left(__u32 epoch)
{
	__u64 *taken = &rows_taken[epoch & 1], was = *(volatile __u64 *)taken;

	if (was >> 32 != epoch)
		__sync_val_compare_and_swap(taken, was, (__u64)epoch << 32);
	return (__u32)__sync_fetch_and_add(taken, 1) < max_rows;
}

/*
 * Makes a row for the key and returns it. Returns the combined row if the window has max_rows
 * already. `comm` is the name of the process. If there is no room, counts a loss and returns NULL.
 */
static __noinline struct io_sums *row_make(struct cpu *cpu, void *window, const struct io_key *key,
					   const char *comm)
{
	static const struct io_sums none;
	struct io_key rest = {
		.dev = key->dev,
		.magic = key->magic,
		.call = key->call,
		.layer = key->layer,
		.op = key->op,
		.flags = (key->flags & (IO_KEY_IS_SLOW | IO_KEY_IS_SAMPLED)) | IO_KEY_IS_REST,
	};
	bool is_left = row_is_left(cut.epoch);
	struct io_sums *row;

	if (!is_left) {
		cpu->counts.lost[LOST_IO_PROCESS] += !(key->flags & IO_KEY_IS_SLOW);
		key = &rest;
		row = bpf_map_lookup_elem(window, key);
		if (row)
			return row;
	}
	bpf_map_update_elem(window, key, &none, BPF_NOEXIST);
	row = bpf_map_lookup_elem(window, key);
	if (!row)
		cpu->counts.lost[LOST_IO_KEYS]++;
	else if (is_left)
		bpf_probe_read_kernel(row->comm, sizeof(row->comm), comm);
	return row;
}

/*
 * Returns the row of a key, which it makes if there is none yet. If there is no room, counts a loss
 * and returns NULL.
 */
static __always_inline struct io_sums *io_row(struct cpu *cpu, const struct io_key *key,
					      const char *comm)
{
	__u32 slot = cut.epoch & 1;
	void *window = bpf_map_lookup_elem(&windows, &slot);
	struct io_sums *row;

	if (!window) {
		cpu->counts.lost[LOST_NO_MAP]++;
		return NULL;
	}
	row = bpf_map_lookup_elem(window, key);
	return row ? row : row_make(cpu, window, key, comm);
}

#define IO_ADD(member, value)                                       \
	do {                                                        \
		__u64 _value = (value);                             \
                                                                    \
		if (_value)                                         \
			__sync_fetch_and_add(&row->member, _value); \
	} while (0)

/* Adds a part of the operation's time, or what a picked operation's part stands for. */
#define IO_ADD_TIME(member) \
	IO_ADD(member,      \
	       below ? sample_part(t->member, t->total_ns ? t->total_ns : 1, below) : t->member)

static __always_inline void io_longest(struct io_longest *longest, __u64 ns, __u64 end_ns,
				       __u32 tid)
{
	__u64 max;
	__u32 i;

	/* repeat this if another CPU has stored another longest operation meanwhile */
	for (i = 0; i < 4; i++) {
		max = longest->ns;
		if (ns <= max)
			return;
		if (__sync_val_compare_and_swap(&longest->ns, max, ns) != max)
			continue;
		longest->end_ns = end_ns;
		longest->tid = tid;
		return;
	}
}

static __always_inline void io_part_add(struct io_part *part, __u64 ns, __u64 end_ns, __u32 tid)
{
	__sync_fetch_and_add(&part->buckets[io_bucket(ns) & (IO_BUCKETS - 1)], 1);
	io_longest(&part->longest, ns, end_ns, tid);
}

/*
 * Adds the times of an operation to its row. A global function, so that the verifier checks it only
 * once and not for each path that leads to a call.
 */
__attribute__((noinline)) int io_add(struct io_sums *row, const struct io_times *t)
{
	__u64 below, weight;
	__u32 bucket;

	if (!row || !t)
		return 0;
	below = t->sample_below_ns;
	weight = below ? t->weight : 1;
	bucket = io_bucket(t->total_ns) & (IO_BUCKETS - 1);
	__sync_fetch_and_add(&row->count, weight);
	__sync_fetch_and_add(&row->total_ns, below ? below : t->total_ns);
	__sync_fetch_and_add(&row->buckets[bucket], weight);
	IO_ADD_TIME(own_ns);
	IO_ADD_TIME(runnable_ns);
	IO_ADD_TIME(asleep_ns);
	IO_ADD_TIME(device_ns);
	IO_ADD_TIME(queue_ns);
	IO_ADD_TIME(throttled_ns);
	IO_ADD(bytes, t->bytes * weight);
	IO_ADD(errors, t->is_error * weight);
	io_longest(&row->longest, t->total_ns, t->end_ns, t->tid);
	return 0;
}

#endif
