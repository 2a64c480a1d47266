/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_MAPS_BPF_H
#define STACKD_BPF_MAPS_BPF_H

/*
 * Stage 2: the maps and settings that every probe has. The daemon sets sizes before load.
 * All hashes are preallocated: an update under the run-queue lock must not allocate (task local
 * storage on 6.1 does, with GFP_ATOMIC). A probe whose window's map is not one of samples defines
 * WINDOW_KEY and WINDOW_VALUE, the types of that map, and struct cpu, whose first member is
 * struct cpu_counts counts, before it includes this.
 */

#include "kernel.h"

#include <bpf/bpf_helpers.h>

#include "layout.h"

#ifndef WINDOW_KEY
#include "sample_types.bpf.h"
#endif

const volatile __u64 hash_seed = 0;
const volatile __u64 ring_wake_bytes = 1 << 20;	 /* above this the daemon is woken early */
const volatile __u64 ring_stack_bytes = 3 << 20; /* above this only records but stacks are sent */

/* The open window. The daemon maps this variable and writes it. */
struct cut cut;

/* Inner maps are declared by key and value size: with BTF types, 6.1 refuses the insert. */
struct window_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__uint(key_size, sizeof(WINDOW_KEY));
	__uint(value_size, sizeof(WINDOW_VALUE));
};

/* Slots 0 and 1 take turns. Updating slot 2 has no effect but to wait for running programs. */
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

/* One buffer per kind of program, as a program at switch-in can interrupt the iterator. */
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

/* Returns this CPU's counters; NULL until all programs are attached and the first window begins. */
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
 * Returns flags that wake the daemon only when the ring has filled up; it polls otherwise. A wakeup
 * is an irq_work, which is allowed under the run-queue lock.
 */
static __always_inline __u64 ring_flags(void)
{
	if (bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > ring_wake_bytes)
		return BPF_RB_FORCE_WAKEUP;
	return BPF_RB_NO_WAKEUP;
}

#endif
