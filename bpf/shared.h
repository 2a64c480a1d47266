/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_SHARED_H
#define STACKD_BPF_SHARED_H

/*
 * What the programs in the kernel and the daemon both see: map keys and values, ring records,
 * reasons for loss. Explicit widths and no padding; sizes are asserted. Times are ns of
 * CLOCK_MONOTONIC (bpf_ktime_get_ns) unless the name says boot.
 */

#include <linux/types.h>

#include "buckets.h"
#include "unwind_shared.h"

#define STACK_DEPTH 127 /* frames of a kernel and of a user stack, each */
#define COMM_LEN    16

/* Stack ids below STACK_ID_FIRST are no stacks but the reason why there is none. */
enum stack_reason {
	STACK_NONE = 0,	      /* there is none: a user stack of a kernel thread */
	STACK_FAULT = 1,      /* the stack could not be read */
	STACK_NEW_THREAD = 2, /* the first run of a new thread: it has not slept yet */
	STACK_NO_HOOK = 3,    /* the hook that takes stacks did not run for this wait */
	STACK_UNREAD = 4,     /* an open wait: its user stack is not read */
	STACK_ID_FIRST = 16,
};

/* Above the kernel's own task state bits. */
#define STATE_PREEMPTED (1U << 31) /* runnable all along: preempted, or it yielded */
#define STATE_SEEDED	(1U << 30) /* asleep since before tracing: its start is approximate */
#define STATE_NEW	(1U << 29) /* a new thread, waiting for its first run */
#define STATE_UNSEEN	(1U << 28) /* set by the daemon: open, but the iterator did not see it */
#define STATE_THROTTLED (1U << 27) /* beside STATE_PREEMPTED: its cgroup had no CPU quota left */
#define STATE_TASK_MASK 0xffffU

enum loss {
	LOST_WAIT_KEYS,	   /* waits: the window's map was full */
	LOST_WAIT_RING,	   /* waits over a cut: the ring was full */
	LOST_STACK_RING,   /* stacks: the ring was full */
	LOST_STACK_SEEN,   /* stacks sent again only because the map of seen ones was full */
	LOST_THREADS,	   /* switches of threads that the thread map did not take */
	LOST_THREAD_END,   /* final sums of dead threads: the ring was full */
	LOST_PROCESS_RING, /* fork, exec and exit events: the ring was full */
	LOST_MAPPING_RING, /* mappings that stacks went through: the ring was full */
	LOST_MISSED_OUT,   /* a switch-out of a thread not known to be on a CPU */
	LOST_MISSED_IN,	   /* a switch-in of a thread not known to be off CPU */
	LOST_NO_MAP,	   /* waits: no window map (never expected) */
	LOST_SAMPLE_KEYS,  /* samples: the window's map was full */
	LOST_NO_HOOK,	   /* waits of offwake: the hook that takes stacks did not run */
	LOST_CALL_NESTED,  /* calls made on top of one that was being recorded on that CPU */
	LOST_CALL_RING,	   /* streamed calls: the ring was full */
	LOST_CALL_HELD,	   /* calls not recorded, with none behind them to stand for them */
	LOST_IO_KEYS,	   /* operations: the window's map was full */
	LOST_IO_SLOTS,	   /* operations that the table of open ones did not take */
	LOST_IO_DEPTH,	   /* operations within others, more than a thread has room for */
	LOST_IO_REQUESTS,  /* requests that the map of those in flight did not take */
	LOST_IO_UNSEEN,	   /* requests whose issue or end no program saw */
	LOST_IO_PROCESS,   /* operations counted in a row of several processes */
	LOST_N,
};

/* One a CPU. What the conservation of events is checked against. */
struct cpu_counts {
	__u64 switch_ins;   /* bumped first thing: every switch to a thread that is not idle */
	__u64 waits;	    /* ended waits put into a window's map */
	__u64 spans;	    /* ended waits sent through the ring */
	__u64 shorts;	    /* ended waits under the minimum, summed by thread */
	__u64 first_seen;   /* switch-ins of threads not known before, or (offwake) to have slept */
	__u64 recovered;    /* switch-ins that sched_switch did not show, seen a moment later */
	__u64 hidden;	    /* switch-ins of threads that the host lets nobody see leave a CPU */
	__u64 stacks;	    /* stacks sent */
	__u64 stacks_late;  /* waits counted without a stack: STACK_NO_HOOK */
	__u64 pendings;	    /* 1 from a switch-in to the hook that takes its stack, else 0 */
	__u64 lost_ns;	    /* time of the waits that were lost */
	__u64 filtered;	    /* switch-ins or samples that the session's filter turned away */
	__u64 samples;	    /* bumped first thing: every run of the sampling program */
	__u64 samples_idle; /* of the idle task, which is not recorded */
	__u64 samples_kept; /* put into a window's map */
	__u64 streamed;	    /* calls sent one by one */
	__u64 call_ns;	    /* spent in the programs that record calls */
	__u64 calls_passed; /* passed over by chance: now, as the next one stands for them */
	__u64 calls_refused; /* the same of those that had no time or no turn to be recorded */
	__u64 ios;	     /* bumped first thing: every end of an operation that is followed */
	__u64 ios_kept;	     /* put into a window's map */
	__u64 ios_unseen;    /* of those that ended: their begin was not seen */
	__u64 lost[LOST_N];
};

struct thread_sums {
	__u64 on_ns;
	__u64 blocked_ns;
	__u64 runnable_ns;
	__u64 throttled_ns; /* of runnable_ns, but for waits under the minimum */
	__u64 switches;	    /* switch-outs: what nvcsw + nivcsw grows by */
	__u64 short_count;  /* waits under the minimum, and their parts of the sums above */
	__u64 short_blocked_ns;
	__u64 short_runnable_ns;
};

enum thread_status {
	THREAD_ON_CPU = 1,
	THREAD_BLOCKED,
	THREAD_RUNNABLE,
};

enum thread_flags {
	THREAD_IS_NEW = 1,     /* has not run yet */
	THREAD_IS_KERNEL = 2,  /* PF_KTHREAD */
	THREAD_IS_SEEDED = 4,  /* found by the iterator: its present state is from before */
	THREAD_IS_OVER = 8,    /* has ended, and could not be taken out of `slots` */
	THREAD_IS_SHOWN = 16,  /* sched_switch has shown it leave a CPU */
	THREAD_IS_MARKED = 32, /* quota_ns is of its present wait */
};

/*
 * A thread, in a slot of an array that the daemon maps. The hash `slots` finds it by the address of
 * its task_struct. Written on its own CPU, except wake_ns (its waker) and the open_, user_ and cut
 * fields (the iterators). The writer bumps seq_begin first and seq_done last; a reader that loads
 * seq_done before and an equal seq_begin after its copy has a whole one. What a switch touches
 * comes first.
 */
struct thread {
	__u64 seq_done;
	__u64 seq_begin;
	__u64 task; /* 0: the slot is free */
	__u64 uid;  /* unique while the programs are loaded; tids are reused */
	__u64 since_ns;
	__u64 wake_ns; /* under since_ns: not made runnable yet */
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
	__u64 kstack; /* of the wait, when stacks are taken at switch-out */
	__u64 ustack;
	__u64 open_since_ns; /* the wait whose kernel stack is open_kstack */
	__u64 open_kstack;
	__u64 user_since_ns;	 /* the wait whose user stack was looked at */
	__u64 quota_queue;	 /* THREAD_IS_MARKED: the cfs_rq it waits on, */
	__u64 quota_ns;		 /* and how long that had been without quota by then */
	__u64 open_throttled_ns; /* of its present wait, by the last cut */
	__u32 user_looks;	 /* how often and when last, see openwait.bpf.c */
	__u32 tid;
	__u32 tgid;
	__u32 seen_cut; /* the last cut whose iterator saw it */
	char comm[COMM_LEN];
};

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
	__u64 throttled_ns; /* of runnable_ns: its cgroup had no CPU quota */
	__u64 max_ns;
	__u64 max_end_ns;
	__u32 buckets[WAIT_BUCKETS];
};

enum sample_flags { SAMPLE_IS_KERNEL = 1 }; /* PF_KTHREAD */

/* A thread is its tid and start; no padding. */
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

/* Tracepoints that one session may have: each has a program of its own. */
#define TRACEPOINTS_MAX 32

/* What is called, and so where its first frame is. */
enum call_kind { CALL_FUNCTION, CALL_TRACEPOINT, CALL_USER };

/* How many calls are recorded. Written by the daemon while the programs run. */
struct call_pace {
	__u64 every;	   /* one in so many, by chance, standing for those before it too */
	__u64 interval_ns; /* from one streamed call to the next, on average; 0: none is streamed */
	__u64 next_ns;	   /* written by the programs: when the last one was due */
	__u64 slice_ns;	   /* that a CPU may record for in each CALL_SLICE_NS */
};

/* As often as the daemon looks, where it gets to. */
#define CALL_SLICE_NS 100000000ULL

/* Streamed calls may come at once that would be due within this. */
#define CALL_BURST_NS 1000000000ULL

/* In whose name a thread is made runnable. */
enum wake_context {
	WAKE_NONE,    /* no link: the path ends before */
	WAKE_UNKNOWN, /* not seen */
	WAKE_TASK,
	WAKE_IRQ, /* in an interrupt: what it interrupted has no part in it */
	WAKE_SOFTIRQ,
	WAKE_TIMER, /* a timer ran out, in either of these */
	WAKE_CONTEXTS,
};

/* Who wakes: a thread's numbers and name where it is a task, else zeroes. */
struct wake_link {
	__u32 context;
	__u32 tgid;
	__u32 tid;
	__u32 pad;
	char comm[COMM_LEN];
};

enum { WAKE_LINKS = 5 }; /* the waker, who woke that before, and so on */

/* A wait's thread and stacks, its waker's stacks, and a hash of the path of wakers. */
struct wake_key {
	struct sample_key target;
	__u64 waker_kstack;
	__u64 waker_ustack;
	__u64 path;
	__u32 state;
	__u32 pad;
};

struct wake_sums {
	struct wait_sums sums;
	char comm[COMM_LEN]; /* the thread's at the first wait */
	struct wake_link links[WAKE_LINKS];
};

enum {
	FILTER_CGROUPS = 2, /* all of them: a path and a unit */
	FILTER_STATES = 8,
	FILTER_CPUS = 1024, /* that a session of calls may name */
};

struct filter_cgroup {
	__u64 id; /* 0: none */
	__u32 level;
	__u32 pad;
};

/* What a session asks for; all zero: everything. */
struct session_filter {
	__u64 max_wait_ns; /* 0: none */
	struct filter_cgroup cgroups[FILTER_CGROUPS];
	__u32 state_order[FILTER_STATES]; /* bits of each state by name, first fit; 0: none */
	__u32 states;			  /* a bit for each of these that is asked for */
	__u32 state_bits;		  /* any of these */
	__u32 comm_len; /* of the prefix; with a 0 behind it where the name ends there */
	__u8 user_threads;
	__u8 kernel_threads;
	__u8 has_pids;
	__u8 has_tids;
	__u8 has_states;
	__u8 has_preempted;
	__u8 has_cpus;
	__u8 drops_kernel; /* of calls: no kernel stacks */
	__u8 drops_user;
	__u8 pad[7];
	char comm[COMM_LEN];
	__u64 cpus[FILTER_CPUS / 64]; /* of calls */
};

/* What the walks of waits that go on came to, since they were loaded. */
struct openwait_counts {
	__u64 looks;   /* user stacks that were read */
	__u64 whole;   /* of these, to the thread's first function */
	__u64 over;    /* left for the next pass: this one had read its most */
	__u64 locked;  /* left: the process is changing what it has mapped, or hangs in that */
	__u64 changed; /* left: the thread ran meanwhile, or the tables changed */
	__u64 unread;  /* of these, nothing of the stack could be read */
};

/* The window that waits are put into now; epoch 0: none yet. Written by the daemon only. */
struct cut {
	__u64 start_ns[2]; /* of the window, by epoch & 1 */
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
	__u32 type;
	__u32 size;
};

/* frames[] has `frames` members of room for 32, 64 or STACK_DEPTH. */
struct record_stack {
	struct record_head head;
	__u64 id;
	__u64 leader_boot_ns;
	__u32 tgid; /* 0: a kernel stack */
	__u32 exec_gen;
	__u32 frames;
	__u32 epoch;
	__u64 mappings; /* those it was walked by: a generation, or of what was found; 0: none */
	__u32 flags;	/* enum unwind_flag; 0 for a kernel stack */
	__u32 pad;
	__u64 ip[];
};

/* A wait that began before the window it ended in. */
struct record_wait {
	struct record_head head;
	struct wait_key key;
	__u64 start_ns;
	__u64 wake_ns; /* end_ns where it was never made runnable, start_ns where always */
	__u64 end_ns;
	__u64 throttled_ns; /* from wake_ns on, at the most to end_ns */
};

/* The user stack of a wait that goes on. */
struct record_open_stack {
	struct record_head head;
	__u64 uid;
	__u64 since_ns; /* the wait's start, as its thread has it */
	__u64 ustack;
};

/* One call, as it happened: a thread's, with its own name. */
struct record_call {
	struct record_head head;
	struct sample_key key;
	__u64 time_ns;
	__u64 count; /* of calls that it stands for */
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
 * For fork: of the child, and the parent's. For exec: the new image's; uid, sums, epoch and
 * old_comm are its thread's, as it left the old image, and parent_ what it was: tid, start,
 * generation.
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
	__u32 epoch; /* the window that the exec lies in */
	struct thread_sums sums;
};

/* A mapping that a walk went through before the daemon knew of it; goes before the stack. */
struct record_mapping {
	struct record_head head;
	__u64 leader_boot_ns;
	__u32 tgid;
	__u32 exec_gen;
	__u64 mappings;	  /* as in record_stack */
	__u64 generation; /* of the others */
	struct unwind_mapping_found found;
};

/* Of record_stack.mappings: not the generation alone. */
#define MAPPINGS_FOUND (1ULL << 63)

/* Of these not all were told: what the stack went through is not known. */
#define MAPPINGS_LOST MAPPINGS_FOUND

_Static_assert(sizeof(struct wait_key) == 32, "wait_key has no padding");
_Static_assert(sizeof(struct wait_sums) == 48 + 4 * WAIT_BUCKETS, "wait_sums has no padding");
_Static_assert(sizeof(struct sample_key) == 48, "sample_key has no padding");
_Static_assert(sizeof(struct wake_key) == 80, "wake_key has no padding");
_Static_assert(sizeof(struct wake_sums) == sizeof(struct wait_sums) + 16 + 32 * WAKE_LINKS,
	       "wake_sums has no padding");
_Static_assert(sizeof(struct thread) == 320, "thread has no padding");

#endif
