/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_MAPS_BPF_H
#define STACKD_BPF_MAPS_BPF_H

/*
 * The maps and settings that every probe has (stage 2 in the README). The daemon sets sizes before
 * load. All hashes here are preallocated: an update under the run-queue lock must not allocate
 * (task local storage on 6.1 does, with GFP_ATOMIC). A probe whose window does not count samples
 * defines three things before it includes this file: WINDOW_KEY and WINDOW_VALUE, the types of its
 * window's map, and struct cpu, whose first member is struct cpu_counts counts.
 */

#include "kernel.h"

#include <bpf/bpf_helpers.h>

#include "layout.h"

#ifndef WINDOW_KEY
#include "sample_types.bpf.h"
#endif

const volatile __u64 hash_seed = 0;
/* If the ring has more bytes than this, the daemon is woken early. */
const volatile __u64 ring_wake_bytes = 1 << 20;
/*
 * If the ring has more bytes than this, the BPF programs send no more stacks; they still send other
 * records.
 */
const volatile __u64 ring_stack_bytes = 3 << 20;

/* The present window, to which events are added. The daemon maps this variable and writes it. */
struct cut cut;

/* The maximum number of frames of the walk of a user stack. */
#define UNWIND_DEPTH_NOW (cut.shed & SHED_FRAMES ? SHED_DEPTH : UNWIND_DEPTH)
/*
 * True if stacks of waits that have not ended are to be taken again, because the daemon lacked one
 * of them at the end of the last window. The iterators run before or after the next one has begun.
 */
static __always_inline bool cut_lacks_stacks(void)
{
	return cut.lost_epoch && cut.epoch - cut.lost_epoch <= 1;
}

/* 1: this probe reports forks, execs and exits to the daemon. */
const volatile __u8 follows_processes = 0;

/*
 * The map of a window. Its declaration has the sizes of key and value: if it had their BTF types,
 * Linux 6.1 would refuse to put the map into `windows`.
 */
struct window_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__uint(key_size, sizeof(WINDOW_KEY));
	__uint(value_size, sizeof(WINDOW_VALUE));
};

/*
 * The maps of windows: slots 0 and 1 take turns. The daemon updates slot 2 only to wait until all
 * BPF programs that may still use the map of the previous window have ended.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 3);
	__type(key, __u32);
	__array(values, struct window_map);
} windows SEC(".maps");

/* Maps a stack id to the epoch in which the stack was last sent. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768);
	__type(key, __u64);
	__type(value, __u64);
} seen SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} ring SEC(".maps");

/*
 * Each kind of BPF program has a buffer of its own, as a program that runs at switch-in can
 * interrupt an iterator.
 */
enum scratch_kind { SCRATCH_SWITCH, SCRATCH_ITERATOR, SCRATCH_WAKING, SCRATCH_N };

struct scratch {
	__u64 ip[STACK_DEPTH + 1];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCH_N);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cpu);
} cpus SEC(".maps");

/*
 * Returns this CPU's counters. NULL until the first window begins, when all programs are attached.
 */
static __always_inline struct cpu *cpu_get(void)
{
	__u32 zero = 0;

	if (!cut.epoch)
		return NULL;
	return bpf_map_lookup_elem(&cpus, &zero);
}

static __always_inline struct scratch *scratch_get(__u32 kind)
{
	return bpf_map_lookup_elem(&scratches, &kind);
}

/*
 * Returns the flags for submitting a record to the ring. They wake the daemon only if the ring has
 * more than ring_wake_bytes; otherwise the daemon finds the record when it polls. A wakeup is an
 * irq_work, which is allowed under the run-queue lock.
 */
static __always_inline __u64 ring_flags(void)
{
	if (bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > ring_wake_bytes)
		return BPF_RB_FORCE_WAKEUP;
	return BPF_RB_NO_WAKEUP;
}

#endif
