/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_OFFCPU_MAPS_BPF_H
#define STACKD_BPF_OFFCPU_MAPS_BPF_H

/*
 * Stage 2 of the off-CPU probe: what it has beside the maps of every probe. Sizes and switches are
 * set by the daemon before load.
 */

#include "kernel.h"

#include <bpf/bpf_helpers.h>

#include "hook.bpf.h"
#include "layout.h"

__u64 next_uid;

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
	__u64 throttled_ns;
	__u32 state;
	__u32 exec_gen;
};

struct cpu {
	struct cpu_counts counts;
	struct pending_wait pending;
	__u64 running; /* the task switched to last */
	__u64 task;    /* that is looked up now */
	struct recent recent[RECENT];
};

#define WINDOW_KEY   struct wait_key
#define WINDOW_VALUE struct wait_sums

#include "maps.bpf.h"

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

#endif
