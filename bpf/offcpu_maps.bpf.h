/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_OFFCPU_MAPS_BPF_H
#define STACKD_BPF_OFFCPU_MAPS_BPF_H

/*
 * The maps and types of the off-CPU probe, besides those that every probe has (stage 2 in the
 * README). The daemon sets the maps' sizes before load.
 */

#include "kernel.h"

#include <bpf/bpf_helpers.h>

#include "brake.h"
#include "hook.bpf.h"
#include "layout.h"

__u64 next_uid;

/*
 * A small cache per CPU, which has the slots of some threads. A hash lookup is a call, which is
 * expensive with return mitigations; an array lookup is inlined. A slot in the cache may belong to
 * another task by now, so the address of the task in the slot is checked.
 */
enum { RECENT = 16 };

struct recent {
	__u64 task;
	__u32 slot;
	__u32 pad;
};

/*
 * The wait that has just ended on a CPU, in the thread to which the CPU has switched. It is kept
 * here until a BPF program, which runs after the switch-in, has taken the thread's stacks.
 */
struct pending_wait {
	__u64 task;
	__u64 uid;
	__u64 start_ns;
	__u64 wake_ns;
	__u64 end_ns;
	__u64 throttled_ns;
	/* the limit, if the wait is short and sample.h picked it at random; else 0 */
	__u64 sample_below_ns;
	__u32 odds; /* if short and stacks are taken at switch-out: see sample_odds() */
	__u32 pad;
	__u32 state;
	__u32 exec_gen;
	struct culprits culprits;
};

struct cpu {
	struct cpu_counts counts;
	struct pending_wait pending;
	struct brake brake;
	__u64 random;	   /* state of sample_random(); 0: not used yet */
	__u64 running;	   /* address of the task that was last switched to */
	__u64 switched_ns; /* time of the switch to that task */
	__u64 before;	   /* at a switch-in: address of the task that ran before; 0: not known */
	__u64 before_ns;   /* time of the switch to that task */
	__u64 stack;	   /* lowest address of that task's kernel stack */
	__u64 task;	   /* scratch: an address is written here and read back as a number */
	struct recent recent[RECENT];
};

#define WINDOW_KEY   struct wait_key
#define WINDOW_VALUE struct wait_sums

#include "maps.bpf.h"

/*
 * The states of threads. `slots` has the index of each task's state, `free_slots` the unused
 * indexes.
 */
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

/* A long time in which a thread slept because of others, and who is most to blame for it. */
struct sleep {
	__u64 since_ns;
	__u64 wake_ns;
	__u64 acted_ns;	 /* when the one to blame last woke somebody */
	__u64 blamed_ns; /* how long that one took */
	__u32 tgid;
	__u32 tid; /* 0: nobody in particular */
	char comm[COMM_LEN];
};

/* What is known of the sleeps of a thread; by its slot. */
struct waker {
	__u64 uid; /* of the thread: its slot may be another's by now */
	struct sleep last;
	/* the last sleeps that were longer than the times between them, as if they were one */
	struct sleep row;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct waker);
} wakers SEC(".maps");

/*
 * Indexes of unused elements of `threads`. The daemon pushes the lowest one last, so that it is
 * taken first.
 */
struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, 16384);
	__uint(value_size, sizeof(__u32));
} free_slots SEC(".maps");

#endif
