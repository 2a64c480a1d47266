/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_LAYOUT_H
#define STACKD_BPF_LAYOUT_H

/*
 * The structs that the programs in the kernel and the daemon pass each other: keys and values of
 * maps, and the records of the ring. Explicit widths and no padding; sizes are asserted. Times are
 * ns of CLOCK_MONOTONIC (bpf_ktime_get_ns) unless the name says boot.
 */

#include <linux/types.h>

#include "buckets.h"
#include "shared.h"
#include "unwind_shared.h"

/* Event counters of one CPU. Conservation (law 2) is checked against them. */
struct cpu_counts {
	__u64 switch_ins;  /* counted before anything else: switches to threads that are not idle */
	__u64 waits;	   /* ended waits put into a window's map */
	__u64 spans;	   /* ended waits sent through the ring, as they span a cut */
	__u64 shorts;	   /* ended waits under the minimum, summed by thread */
	__u64 first_seen;  /* switch-ins of unknown threads; for offwake, of any that never slept */
	__u64 recovered;   /* switch-ins that sched_switch did not show but a later program saw */
	__u64 hidden;	   /* switch-ins of threads whose switch-out the host hides from BPF */
	__u64 stacks;	   /* stacks sent */
	__u64 stacks_late; /* waits counted without a stack: STACK_NO_HOOK */
	__u64 pendings;	   /* 1 between a switch-in and the program that takes its stack, else 0 */
	__u64 lost_ns;	   /* time of the waits that were lost */
	__u64 filtered;	   /* switch-ins or samples that the session's filter turned away */
	__u64 samples;	   /* counted before anything else: runs of the sampling program */
	__u64 samples_idle;  /* samples of the idle task, which are not recorded */
	__u64 samples_kept;  /* samples put into a window's map */
	__u64 streamed;	     /* calls sent one by one */
	__u64 call_ns;	     /* time spent in the programs that record calls */
	__u64 calls_passed;  /* calls skipped at random; the next recorded call stands for them */
	__u64 calls_refused; /* calls over the time or rate limit; the next one stands for them */
	__u64 ios;	     /* counted before anything else: ends of followed I/O operations */
	__u64 ios_kept;	     /* I/O operations put into a window's map */
	__u64 ios_unseen;    /* ended I/O operations whose begin was not seen */
	__u64 lost[LOST_N];
};

enum thread_status {
	THREAD_ON_CPU = 1,
	THREAD_BLOCKED,
	THREAD_RUNNABLE,
};

enum thread_flags {
	THREAD_IS_NEW = 1,     /* it has not run yet */
	THREAD_IS_KERNEL = 2,  /* PF_KTHREAD */
	THREAD_IS_SEEDED = 4,  /* found by the iterator: its state began before it was followed */
	THREAD_IS_OVER = 8,    /* it has ended, but could not be removed from `slots` */
	THREAD_IS_SHOWN = 16,  /* sched_switch has shown it leave a CPU */
	THREAD_IS_MARKED = 32, /* throttle_mark_ns belongs to its present wait */
};

/*
 * The state of one thread, in an array that the daemon maps. The hash `slots` finds its index by
 * the address of its task_struct. Its own CPU writes it, except wake_ns (its waker) and the open_,
 * user_ and seen_cut members (the iterators). The writer increments seq_begin first and seq_done
 * last; a reader that loads seq_done before its copy and an equal seq_begin after it has a
 * consistent one. The members that a switch touches come first.
 */
struct thread {
	__u64 seq_done;
	__u64 seq_begin;
	__u64 task; /* 0: the slot is free */
	__u64 uid;  /* unique while the programs are loaded, as tids are reused */
	__u64 since_ns;
	__u64 wake_ns; /* below since_ns: it has not been made runnable yet */
	__u32 status;
	__u32 wait_state; /* task state bits at switch-out, and STATE_ bits */
	__u32 flags;
	__u32 epoch;
	struct thread_sums sums;
	__u32 slot;
	__u32 exec_gen;
	struct thread_sums at_cut; /* sums at the start of the window `epoch` */
	__u64 seeded_ns;	   /* THREAD_IS_SEEDED: sums count from here, not from since_ns */
	__u64 start_boot_ns;
	__u64 leader_boot_ns;
	__u64 kstack;		 /* kernel stack of the wait, if stacks are taken at switch-out */
	__u64 ustack;		 /* user stack of the wait, likewise */
	__u64 open_since_ns;	 /* start of the open wait that open_kstack belongs to */
	__u64 open_kstack;	 /* kernel stack of an open wait */
	__u64 user_since_ns;	 /* start of the wait whose user stack was read */
	__u64 throttle_queue;	 /* the cfs_rq that it waits on, if THREAD_IS_MARKED */
	__u64 throttle_mark_ns;	 /* throttled time of throttle_queue when the wait began */
	__u64 open_throttled_ns; /* throttled time of its present wait, as of the last cut */
	__u32 user_looks;	 /* attempts to read its user stack and when; see openwait.bpf.c */
	__u32 tid;
	__u32 tgid;
	__u32 seen_cut; /* the last cut whose iterator saw it */
	char comm[COMM_LEN];
};

/* How many calls are recorded. Written by the daemon while the programs run. */
struct call_pace {
	__u64 every; /* one call in `every` is recorded, at random, and stands for the others */
	__u64 interval_ns; /* average time between streamed calls; 0: none is streamed */
	__u64 next_ns;	   /* written by the programs: when the last streamed call was due */
	__u64 slice_ns;	   /* time that a CPU may spend recording in each CALL_SLICE_NS */
};

/* The daemon adjusts call_pace this often, if it gets to run. */
#define CALL_SLICE_NS 100000000ULL

/* Streamed calls that would be due within this time may come at once. */
#define CALL_BURST_NS 1000000000ULL

/* One waker: its ids and name if it is a task, else zeroes. */
struct wake_link {
	__u32 context; /* enum wake_context */
	__u32 tgid;
	__u32 tid;
	__u32 pad;
	char comm[COMM_LEN];
};

/* The key under which waits of offcpu are counted: a thread (uid), its stacks and its state. */
struct wait_key {
	__u64 uid;
	__u64 kstack;
	__u64 ustack;
	__u32 exec_gen;
	__u32 state;
};

/* One writer at a time: a thread's waits end one after the other. */
struct wait_sums {
	__u64 count;
	__u64 blocked_ns;
	__u64 runnable_ns;
	__u64 throttled_ns; /* part of runnable_ns: its cgroup had no CPU quota */
	__u64 max_ns;
	__u64 max_end_ns;
	__u32 buckets[WAIT_BUCKETS];
};

enum sample_flags { SAMPLE_IS_KERNEL = 1 }; /* PF_KTHREAD */

/*
 * The key under which samples or calls are counted: a thread and its stacks. A thread is identified
 * by its tid and its start time.
 */
struct sample_key {
	__u64 start_boot_ns;
	__u64 leader_boot_ns;
	__u64 kstack;
	__u64 ustack;
	__u32 tid;
	__u32 tgid;
	__u32 exec_gen;
	__u32 flags;
};

struct sample_sums {
	__u64 count;
	char comm[COMM_LEN];
};

/* Waits of offwake: the waiting thread and its stacks, its waker's stacks, the path of wakers. */
struct wake_key {
	struct sample_key target;
	__u64 waker_kstack;
	__u64 waker_ustack;
	__u64 path; /* wake_path() of the links */
	__u32 state;
	__u32 pad;
};

struct wake_sums {
	struct wait_sums sums;
	char comm[COMM_LEN]; /* the thread's name at the first wait */
	struct wake_link links[WAKE_LINKS];
};

enum {
	FILTER_CGROUPS = 2, /* a wait must be in each: one by path and one by unit */
	FILTER_STATES = 8,
	FILTER_CPUS = 1024, /* CPUs that a session of calls may name */
};

struct filter_cgroup {
	__u64 id; /* 0: unused */
	__u32 level;
	__u32 pad;
};

/* A session's filter; all zero: everything is recorded. */
struct session_filter {
	__u64 max_wait_ns; /* 0: no limit */
	struct filter_cgroup cgroups[FILTER_CGROUPS];
	__u32 state_order[FILTER_STATES]; /* the bits of each named state, first match wins; 0:
					     unused */
	__u32 states;			  /* one bit for each entry of state_order that is wanted */
	__u32 state_bits;		  /* task state bits, any of which is wanted */
	__u32 comm_len; /* length of the literal prefix; includes the NUL if the name must end there
			 */
	__u8 user_threads;
	__u8 kernel_threads;
	__u8 has_pids;
	__u8 has_tids;
	__u8 has_states;
	__u8 has_preempted;
	__u8 has_cpus;
	__u8 drops_kernel; /* sessions of calls: do not take kernel stacks */
	__u8 drops_user;
	__u8 pad[7];
	char comm[COMM_LEN];
	__u64 cpus[FILTER_CPUS / 64]; /* sessions of calls */
};

/* How the reads of user stacks of open waits ended, since the program was loaded. */
struct openwait_counts {
	__u64 looks;   /* user stacks that were read */
	__u64 whole;   /* user stacks that were walked to the thread's first function */
	__u64 over;    /* stacks left for the next pass, as this one had reached its limit */
	__u64 locked;  /* stacks left, as the process was changing its mappings or hangs while it
			  does */
	__u64 changed; /* stacks left, as the thread ran meanwhile or the unwind tables changed */
	__u64 unread;  /* user stacks of which nothing could be read; counted in looks, too */
};

/* The window that waits are put into now; epoch 0: none yet. Only the daemon writes it. */
struct cut {
	__u64 start_ns[2]; /* start of the window, by epoch & 1 */
	__u32 epoch;
	__u32 pad;
};

enum record_type {
	RECORD_STACK = 1,
	RECORD_WAIT,
	RECORD_THREAD_END,
	RECORD_FORK,
	RECORD_EXEC,
	RECORD_EXIT,
	RECORD_OPEN_STACK,
	RECORD_MAPPING,
	RECORD_CALL,
};

struct record_head {
	__u32 type; /* enum record_type */
	__u32 size; /* bytes, with the head */
};

/* ip[] holds `frames` addresses; it has room for 32, 64 or STACK_DEPTH of them. */
struct record_stack {
	struct record_head head;
	__u64 id;
	__u64 leader_boot_ns;
	__u32 tgid; /* 0: a kernel stack */
	__u32 exec_gen;
	__u32 frames;
	__u32 epoch;
	__u64 mappings; /* id of the mappings it was walked by, a generation or mappings_id(); 0:
			   none */
	__u32 flags;	/* enum unwind_flag; 0 for a kernel stack */
	__u32 pad;
	__u64 ip[];
};

/* A wait that began before the window it ended in. */
struct record_wait {
	struct record_head head;
	struct wait_key key;
	__u64 start_ns;
	__u64 wake_ns; /* end_ns if it was never made runnable, start_ns if it was runnable
			  throughout */
	__u64 end_ns;
	__u64 throttled_ns; /* counted from wake_ns on; at most up to end_ns */
};

/* The user stack of an open wait. */
struct record_open_stack {
	struct record_head head;
	__u64 uid;
	__u64 since_ns; /* since_ns of the thread: which wait this is */
	__u64 ustack;
};

/* One streamed call. The key names the thread, comm is the thread's own name. */
struct record_call {
	struct record_head head;
	struct sample_key key;
	__u64 time_ns;
	__u64 count; /* how many calls this one stands for, with itself */
	__u32 cpu;
	__u32 pad;
	char comm[COMM_LEN];
};

struct record_thread_end {
	struct record_head head;
	__u64 end_ns;
	struct thread thread;
};

/*
 * A fork, exec or exit. The ids and comm are the child's for a fork, the new image's for an exec.
 * The parent_ members are the parent's for a fork; for an exec they are the thread's former tid,
 * start and generation, and uid, sums, epoch and old_comm are the thread's as it left its old
 * image.
 */
struct record_process {
	struct record_head head;
	__u64 uid;
	__u64 leader_boot_ns;
	__u64 parent_boot_ns;
	__u32 tgid;
	__u32 exec_gen;
	__u32 parent_tgid;
	__u32 parent_exec_gen;
	char comm[COMM_LEN];
	char old_comm[COMM_LEN];
	__u32 is_kernel;
	__u32 epoch; /* the window in which the exec happened */
	struct thread_sums sums;
};

/* A mapping that a walk found before the daemon knew of it. Sent before the stack. */
struct record_mapping {
	struct record_head head;
	__u64 leader_boot_ns;
	__u32 tgid;
	__u32 exec_gen;
	__u64 mappings;	  /* the id that record_stack has for these mappings */
	__u64 generation; /* generation of the daemon's own mappings, to which this one is added */
	struct unwind_mapping_found found;
};

_Static_assert(sizeof(struct wait_key) == 32, "wait_key has no padding");
_Static_assert(sizeof(struct wait_sums) == 48 + 4 * WAIT_BUCKETS, "wait_sums has no padding");
_Static_assert(sizeof(struct sample_key) == 48, "sample_key has no padding");
_Static_assert(sizeof(struct wake_key) == 80, "wake_key has no padding");
_Static_assert(sizeof(struct wake_sums) == sizeof(struct wait_sums) + 16 + 32 * WAKE_LINKS,
	       "wake_sums has no padding");
_Static_assert(sizeof(struct thread) == 320, "thread has no padding");

#endif
