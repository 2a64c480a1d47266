/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_MAPS_BPF_H
#define STACKD_BPF_MAPS_BPF_H

/*
 * Stage 2: the maps and switches of the off-CPU probe. Sizes are set by the daemon before load.
 * All hashes are preallocated: an update under the run-queue lock must not allocate (task local
 * storage on 6.1 does, with GFP_ATOMIC).
 */

#include "kernel.h"

#include <bpf/bpf_helpers.h>

#include "shared.h"

/* Where stacks are taken, best first; chosen at load by what the kernel has. */
enum stack_hook {
	HOOK_SCHED_EXIT,    /* tp_btf/sched_exit_tp, 6.18: in the resumed thread, interrupts on */
	HOOK_FINISH_SWITCH, /* kprobe of finish_task_switch: the same place on older kernels */
	HOOK_SWITCH_OUT,    /* tp_btf/sched_switch: before it is known how long the wait will be */
};

const volatile __u32 stack_hook = HOOK_SCHED_EXIT;
const volatile __u64 min_wait_ns = 100000;
const volatile __u64 hash_seed = 0;
const volatile __u64 ring_wake_bytes = 1 << 20;	 /* wake the daemon early above this */
const volatile __u64 ring_stack_bytes = 3 << 20; /* no stacks above this: room for the rest */

/* Written by the daemon, mapped into it. */
struct cut cut;
__u64 next_uid;

/* The states of threads; which slot is whose is in `slots`, which are free in `free_slots`. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, __u32);
} slots SEC(".maps");

/* Filled by the daemon, lowest on top. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, 16384);
	__uint(value_size, sizeof(__u32));
} free_slots SEC(".maps");

/*
 * Where this CPU found a task last. A hash lookup is a call, and calls are dear where returns are
 * mitigated; an array lookup is inlined. The slot says itself whether it is still that task's.
 */
enum { RECENT = 16 };

struct recent {
	__u64 task;
	__u32 slot;
	__u32 pad;
};

/* What sched_switch hands to the hook that takes the stack, on the same CPU. */
struct pending_wait {
	__u64 task;
	__u64 uid;
	__u64 start_ns;
	__u64 wake_ns;
	__u64 end_ns;
	__u32 state;
	__u32 exec_gen;
};

struct cpu {
	struct cpu_counts counts;
	struct pending_wait pending;
	__u64 running; /* the task switched to last */
	__u64 task; /* that is looked up now */
	struct recent recent[RECENT];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cpu);
} cpus SEC(".maps");

/* Inner maps are given by key and value size: with BTF types 6.1 refuses the insert. */
struct window_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__uint(key_size, sizeof(struct wait_key));
	__uint(value_size, sizeof(struct wait_sums));
};

/* Slots 0 and 1 take turns; slot 2 exists to be updated, which waits for running programs. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 3);
	__type(key, __u32);
	__array(values, struct window_map);
} windows SEC(".maps");

/* Stack id -> the epoch in which it was sent. */
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

/* One buffer a program kind: the hook at switch-in can interrupt the iterator. */
enum scratch_kind { SCRATCH_SWITCH, SCRATCH_ITERATOR, SCRATCH_N };

struct scratch {
	__u64 ip[STACK_DEPTH + 1];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCH_N);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

/* NULL until all programs are attached and the first window begins. */
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
 * Wakes the daemon only when much waits; otherwise it looks by itself. A wakeup is an irq_work,
 * allowed under the run-queue lock.
 */
static __always_inline __u64 ring_flags(void)
{
	if (bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > ring_wake_bytes)
		return BPF_RB_FORCE_WAKEUP;
	return BPF_RB_NO_WAKEUP;
}

#endif
