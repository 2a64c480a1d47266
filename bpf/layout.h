/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_LAYOUT_H
#define STACKD_BPF_LAYOUT_H

/*
 * The structs that the BPF programs and the daemon share: keys and values of maps, and the records
 * of the ring. Explicit widths and no padding; sizes are asserted. Times are ns of CLOCK_MONOTONIC
 * (bpf_ktime_get_ns) unless the name says boot.
 */

#include <linux/types.h>
#include <stdbool.h>

#include "brake.h"
#include "buckets.h"
#include "shared.h"
#include "unwind_shared.h"

/*
 * Event counters of one CPU. Tests use them to check that each event is in the data, was filtered,
 * or was counted as lost.
 */
struct cpu_counts {
	__u64 switch_ins; /* all switches to threads other than the idle task, recorded or not */
	__u64 waits;	  /* ended waits put into a window's map */
	__u64 spans;	  /* ended waits that lie in several windows, sent through the ring */
	__u64 shorts;	  /* ended waits that were only summed by thread, as they were short */
	__u64 sampled; /* those of `shorts` that were also put into a window's map, see sample.h */
	/*
	 * first switch-ins of threads whose switch-out was not seen (in offwake: the beginning of
	 * whose sleep was not seen)
	 */
	__u64 first_seen;
	__u64 recovered; /* switch-ins that sched_switch did not show but a BPF program that ran
			    later in the switch did */
	/*
	 * switch-ins of threads of which sched_switch never showed a switch-out: some hosts run no
	 * BPF programs in some threads, such as init's
	 */
	__u64 hidden;
	__u64 stacks; /* stacks sent through the ring */
	/* waits recorded without a stack: the BPF program that takes stacks did not run for them */
	__u64 stacks_late;
	__u64 pendings;	    /* 1 while an ended wait is not recorded yet, else 0 */
	__u64 lost_ns;	    /* total time of the waits that were lost */
	__u64 filtered;	    /* switch-ins, samples, calls or I/O that the filter rejected */
	__u64 samples;	    /* all samples or calls, recorded or not */
	__u64 samples_idle; /* samples of the idle task, which are not recorded */
	__u64 samples_kept; /* samples or calls put into a window's map */
	__u64 streamed;	    /* calls sent to the daemon one by one */
	__u64 call_ns;	    /* time spent in the BPF programs that record calls */
	/*
	 * calls skipped at random, as only one in `every` is recorded, or samples skipped, as only
	 * one in sample_every is; the next recorded call or sample stands for them
	 */
	__u64 calls_passed;
	/*
	 * calls skipped because the CPU budget or the rate limit was reached; the next call that is
	 * recorded in the same window stands for them
	 */
	__u64 calls_refused;
	__u64 ios;		/* all ends of followed I/O operations, recorded or not */
	__u64 ios_kept;		/* I/O operations put into a window's map */
	__u64 ios_begun_before; /* ended I/O operations whose beginning no program saw */
	__u64 runs;		/* runs of the programs with RUN_TIMED(), see run_time.bpf.h */
	__u64 timed;		/* those of these runs that were timed */
	__u64 timed_ns;		/* total time of the timed runs, without walks of stacks */
	__u64 timed_next; /* on one CPU: the value of `runs` from which on a run is timed again */
	__u64 walk_ns;	  /* time spent on all walks of stacks; 0 in programs without RUN_TIMED() */
	/*
	 * short waits that only the brake of the CPU left to chance, by the number of its steps
	 * minus one
	 */
	__u64 braked[BRAKE_STEPS];
	__u64 lost[LOST_N];
};

enum thread_status {
	THREAD_ON_CPU = 1,
	THREAD_BLOCKED,
	THREAD_RUNNABLE,
};

enum thread_flags {
	THREAD_IS_NEW = 1,    /* the thread is new and has not run yet */
	THREAD_IS_KERNEL = 2, /* a kernel thread (PF_KTHREAD) */
	/* the iterator over all tasks found the thread, whose present state began earlier */
	THREAD_IS_SEEDED = 4,
	THREAD_IS_OVER = 8,    /* the thread has ended, but could not be removed from `slots` */
	THREAD_IS_SHOWN = 16,  /* sched_switch has shown a switch-out of the thread */
	THREAD_IS_MARKED = 32, /* throttle_mark_ns was set for the thread's present wait */
};

/*
 * The state of one thread, in an array that the daemon maps. The hash `slots` finds the index of a
 * thread by the address of its task_struct. The CPU of the thread writes most members. The thread's
 * waker writes wake_ns and the members that begin with throttle_. The programs that iterate over
 * tasks write comm, seen_cut and the members that begin with open_ or user_. A writer increments
 * seq_begin first and seq_done last. A reader's copy is consistent if seq_done, loaded before it,
 * equals seq_begin, loaded after it. The members that a task switch touches come first: they fill
 * two cache lines.
 */
struct thread {
	__u32 seq_done;
	__u32 seq_begin;
	__u64 task; /* address of the task_struct; 0: the slot is free */
	__u32 tgid;
	__u32 slot;
	__u64 uid; /* number of the thread, not reused while the programs are loaded */
	__u64 since_ns;
	__u64 wake_ns; /* when the thread was last made runnable, maybe before its present wait */
	__u32 status;
	__u32 wait_state; /* state of the thread's wait: task state bits at switch-out, and STATE_
			     bits */
	__u32 flags;
	__u32 epoch;
	struct thread_sums sums;
	/* value of `sums` at the start of the window with the number `epoch` */
	struct thread_sums at_cut;
	union {
		/*
		 * if THREAD_IS_SEEDED: the sums include its present state from this time on, not
		 * from since_ns
		 */
		__u64 seeded_ns;
		/*
		 * if thread_is_hidden(): how often the thread had left a CPU when its wait was
		 * found
		 */
		__u64 left;
	};
	__u64 start_boot_ns;
	__u64 leader_boot_ns;
	/*
	 * Where stacks are taken at switch-out: the ids of the wait's stacks, or STACK_NO_HOOK if
	 * they were not taken, the odds of this (see sample_odds()), and the average of the
	 * thread's last waits by which these are chosen.
	 */
	__u64 kstack;
	__u64 ustack;
	__u32 odds;
	__u32 average_ns;
	__u64 open_since_ns;	/* start of the wait whose kernel stack is open_kstack */
	__u64 open_kstack;	/* id of the kernel stack of a wait that has not ended */
	__u64 user_since_ns;	/* user_looks belongs to the wait that began at this time */
	__u64 throttle_queue;	/* if THREAD_IS_MARKED: address of the cfs_rq that it waits on */
	__u64 throttle_mark_ns; /* throttled time of throttle_queue when the wait for a CPU began */
	/* How long the thread's present wait had been throttled when the last window ended. */
	__u64 open_throttled_ns;
	/* number of attempts to read the wait's user stack, and time of the last attempt */
	__u32 user_looks;
	__u32 tid;
	__u32 exec_gen;
	/* number (epoch) of the window in which an iterator last found the thread */
	__u32 seen_cut;
	char comm[COMM_LEN];
};

/*
 * True for a thread whose switch-outs the host hides from BPF, while it waits: switch_recover() has
 * found the wait, and what happened to the thread since then is known only when it ends. Until
 * then, windows have it as a sleep.
 */
static inline __attribute__((always_inline)) bool thread_is_hidden(const struct thread *t)
{
	return !(t->flags & (THREAD_IS_SHOWN | THREAD_IS_SEEDED | THREAD_IS_NEW));
}

/* How many calls stackcount and stacksnoop record. The daemon writes it while the programs run. */
struct call_pace {
	/* One call in `every` is recorded, chosen at random, and stands for the others. */
	__u64 every;
	__u64 interval_ns; /* average time between streamed calls; 0 if the session streams none */
	__u64 next_ns;	   /* when the last streamed call was due; only BPF programs write it */
	__u64 slice_ns;	   /* time that a CPU may spend on recording in each CALL_SLICE_NS */
};

/*
 * Length of a time slice, see call_pace.slice_ns. The daemon adjusts call_pace once in each slice,
 * if it gets the CPU.
 */
#define CALL_SLICE_NS 100000000ULL

/* After a pause, several calls may be streamed at once: as many as are due in this time. */
#define CALL_BURST_NS 1000000000ULL

/*
 * One waker in a path of wakers. If it is a task, the struct has its ids and name; otherwise these
 * are zero.
 */
struct wake_link {
	__u32 context; /* enum wake_context */
	__u32 tgid;
	__u32 tid;
	__u32 pad;
	char comm[COMM_LEN];
};

/*
 * The key of a row of waits in offcpu: a thread (`uid`, its number in struct thread), the stacks of
 * the wait and its state.
 */
struct wait_key {
	__u64 uid;
	__u64 kstack;
	__u64 ustack;
	__u32 exec_gen;
	__u32 state;
};

/*
 * The sums of a row of waits. Only one CPU writes a row at a time, as a thread's waits end one
 * after the other.
 */
struct wait_sums {
	__u64 count;
	__u64 blocked_ns;
	__u64 runnable_ns;
	__u64 throttled_ns; /* part of runnable_ns in which its cgroup had no CPU quota */
	__u64 max_ns;
	__u64 max_end_ns;
	struct culprits culprits; /* offcpu */
	__u32 buckets[WAIT_BUCKETS];
};

enum sample_flags { SAMPLE_IS_KERNEL = 1 }; /* a kernel thread (PF_KTHREAD) */

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

/*
 * The key under which offwake counts waits: the waiting thread and its stacks, its waker's stacks
 * and a path of wakers.
 */
struct wake_key {
	struct sample_key target;
	__u64 waker_kstack;
	__u64 waker_ustack;
	__u64 path; /* hash of the path of wakers, by wake_path() */
	__u32 state;
	__u32 pad;
};

struct wake_sums {
	struct wait_sums sums;
	char comm[COMM_LEN]; /* the waiting thread's name when the row was made */
	struct wake_link links[WAKE_LINKS];
};

enum {
	/* a cgroup given by path, and one given by systemd unit; a thread must be in both */
	FILTER_CGROUPS = 2,
	FILTER_STATES = 8,
	/* number of CPUs, from CPU 0 on, that stackcount and stacksnoop can select */
	FILTER_CPUS = 1024,
};

struct filter_cgroup {
	__u64 id; /* id of the cgroup; 0: unused */
	__u32 level;
	__u32 pad;
};

/* A session's filter. If it is all zero, it accepts everything. */
struct session_filter {
	__u64 max_wait_ns; /* longest wait that is recorded; 0: no limit */
	/*
	 * The task state bits of each state that a filter can name; 0: unused. A wait is in the
	 * first of these states whose bits are all set in the task state of the waiting thread.
	 */
	__u32 state_order[FILTER_STATES];
	__u32 states;	  /* bit i is set if the state in state_order[i] is wanted */
	__u32 state_bits; /* a wait whose task state has one of these bits is wanted */
	/* Length of the literal prefix in comm; includes the NUL if the name must end there. */
	__u32 comm_len;
	__u32 cgroups; /* bit i: a thread must be in cut.cgroups[i] */
	__u8 user_threads;
	__u8 kernel_threads;
	__u8 has_pids;
	__u8 has_tids;
	__u8 has_states;
	__u8 has_preempted;
	__u8 has_cpus;
	__u8 drops_kernel; /* stackcount, stacksnoop: take no kernel stacks */
	__u8 drops_user;
	__u8 pad[7];
	char comm[COMM_LEN];
	__u64 cpus[FILTER_CPUS / 64]; /* stackcount, stacksnoop: a bit for each wanted CPU */
};

/*
 * Counts the attempts to read the user stacks of waits that have not ended, by result, since the
 * programs were loaded.
 */
struct openwait_counts {
	__u64 looks;  /* attempts that gave a stack, even if it has only its innermost address */
	__u64 whole;  /* part of `looks`: the stack was walked to the thread's first function */
	__u64 over;   /* stacks not read, because one pass over all tasks had read as many as it may
			 (pass_max_looks) */
	__u64 locked; /* stacks not read, because the process was changing its mappings */
	/* attempts given up, as the thread ran or the unwind tables changed meanwhile */
	__u64 changed;
	/* stack walks that could not read the stack's memory: they found only the thread's pc */
	__u64 unread;
};

/*
 * The present window: events are added to it now. epoch is 0 before the first window. Only the
 * daemon writes this struct.
 */
struct cut {
	__u64 start_ns[2]; /* start of the window, at index epoch & 1 */
	/*
	 * At the same index: waits shorter than this are recorded by the rule in sample.h. 0: they
	 * are recorded if they are not shorter than the session's minimum. It may change while the
	 * window is open.
	 */
	__u64 sample_below_ns[2];
	__u32 epoch;
	__u32 brake_share;  /* the share of each CPU that walks may take, see brake.h */
	__u32 shed;	    /* enum shed_flag: what is left out to keep within the budget */
	__u32 sample_every; /* oncpu records one sample of this number; 0 and 1: all samples */
	/*
	 * The window at whose end the daemon last lacked a stack of a wait that had not ended; 0:
	 * none. At the end of the next window, all such stacks are taken again.
	 */
	__u32 lost_epoch;
	__u32 pad;
	/* The filter's cgroups: one that is removed and made anew, as by a restart of its unit,
	 * gets another id, which the daemon stores here. */
	struct filter_cgroup cgroups[FILTER_CGROUPS];
};

enum shed_flag {
	SHED_FRAMES = 1, /* walks of user stacks end after SHED_DEPTH frames */
	SHED_CALLS = 2,	 /* iolat records only requests to disks */
	/* the daemon does not read new files at once, so it need not be woken for them */
	SHED_BRIEF = 4,
};

enum { SHED_DEPTH = 32 };

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
	RECORD_NAME,
	RECORD_MOVE,
};

struct record_head {
	__u32 type; /* an enum record_type */
	__u32 size; /* size of the record in bytes, with this head */
};

/* A stack. ip[] holds `frames` addresses and has room for 32, 64 or STACK_DEPTH of them. */
struct record_stack {
	struct record_head head;
	__u64 id;
	__u64 leader_boot_ns;
	__u32 tgid; /* process of a user stack; 0: this is a kernel stack */
	__u32 exec_gen;
	__u32 frames;
	__u32 epoch;
	/*
	 * Says which mappings the walk used: the generation number of the mappings that the daemon
	 * has of the process, or a result of mappings_id(); 0: none.
	 */
	__u64 mappings;
	__u32 flags; /* enum unwind_flag; 0 for a kernel stack */
	__u32 pad;
	__u64 ip[];
};

/* An ended wait that began before the window in which it ended. */
struct record_wait {
	struct record_head head;
	struct wait_key key;
	__u64 start_ns;
	/*
	 * When the thread was made runnable. This is end_ns if the thread was blocked throughout,
	 * and start_ns if it was runnable throughout.
	 */
	__u64 wake_ns;
	__u64 end_ns;
	/* Part of the time since wake_ns in which the thread's cgroup had no CPU quota. */
	__u64 throttled_ns;
	struct culprits culprits;
};

/* The user stack of a wait that has not ended. */
struct record_open_stack {
	struct record_head head;
	__u64 uid;
	__u64 since_ns; /* start of the wait: the value of the thread's since_ns then */
	__u64 ustack;
};

/*
 * One call, sent to the client as it happens. `key` identifies the thread; `comm` is the name of
 * the thread, not of its process.
 */
struct record_call {
	struct record_head head;
	struct sample_key key;
	__u64 time_ns;
	__u64 count; /* number of calls that this one stands for, itself included */
	__u32 cpu;
	__u32 pad;
	char comm[COMM_LEN];
};

enum { EXEC_PATH = 256, EXEC_ARGUMENTS = 512 };

/*
 * A call of the tracepoint sched_process_exec, with what it is about: `call` is a RECORD_CALL whose
 * size is that of this struct.
 */
struct record_exec_call {
	struct record_call call;
	__u32 parent; /* process that has started this one, as the kernel knows it now */
	__u32 n;      /* number of bytes in `arguments` */
	__u32 all;    /* number of bytes of all arguments */
	__u32 pad;
	char parent_comm[COMM_LEN];
	char path[EXEC_PATH];		/* as the caller of exec gave it; "" if it is not known */
	char arguments[EXEC_ARGUMENTS]; /* the first ones; a NUL ends each */
};

struct record_thread_end {
	struct record_head head;
	__u64 end_ns;
	struct thread thread;
};

/*
 * A fork, exec or exit of a process, or its move to another control group: then only the ids, comm
 * and group_name are set. After a fork, the ids and comm are those of the child, and `parent` is
 * set. After an exec, the ids and comm are those that the process has now; offcpu sets `before`.
 * parent_comm is the name of the parent process in each record. `uid` (the thread's number in
 * struct thread) and sums are set after an exec and, by offcpu, at an exit: they are those of the
 * thread that calls exec, or of the last thread to exit, at this moment. epoch and old_comm are set
 * only after an exec. time_ns, life_ns and cpu_ns are set only at an exit. There may be several
 * records of an exit: if threads exit at the same moment, each may see that no thread is left. Then
 * n_threads is above 1 in the first of them.
 */
struct record_process {
	struct record_head head;
	__u64 uid;
	__u64 leader_boot_ns;
	union {
		struct {
			__u64 leader_boot_ns;
			__u32 tgid;
			__u32 exec_gen;
		} parent; /* fork */
		struct {
			__u64 start_boot_ns;
			__u32 tid;
			__u32 exec_gen;
		} before; /* exec: what the thread was */
	};
	__u32 tgid;
	__u32 exec_gen;
	char comm[COMM_LEN];
	char old_comm[COMM_LEN];
	__u32 is_kernel;
	__u32 epoch; /* the window in which the exec happened */
	struct thread_sums sums;
	__u64 exe_name;	 /* id of the path of the new program's file, see record_name; 0: unknown */
	__u64 exe_inode; /* inode number in the kernel of the new program's file */
	__u64 group_name; /* id of the path of the process's control group; 0: unknown */
	/* 1: the daemon knows the new program's code and has loaded its unwind rows */
	__u32 is_known;
	/* exit: number of the process's threads that the kernel has not released */
	__u32 n_threads;
	char parent_comm[COMM_LEN]; /* name of the parent's main thread */
	__u64 time_ns;		    /* when the last thread began to exit */
	__u64 life_ns;		    /* time from the start of the process to time_ns */
	__u64 cpu_ns;		    /* CPU time of all threads up to time_ns */
};

/*
 * The path of a file, as the host's mounts show it, or of a control group. text[] has n bytes: the
 * components of the path, the last one first, each ended by a NUL. The path of a root has no
 * components. In each window, a path is sent before the first record that refers to it.
 */
struct record_name {
	struct record_head head;
	__u64 id; /* id of the path: a hash, never NAME_NONE or 0 */
	__u32 n;
	__u32 pad;
	char text[];
};

enum {
	NAME_NONE = 1,	   /* id that means: there is no path */
	NAME_SHORT = 96,   /* bytes of text[] in a record with a short path; most paths are short */
	NAME_BYTES = 1024, /* limit: each component of a path begins within this number of bytes */
	NAME_COMPONENT = 256, /* maximum number of bytes of one component, with its NUL */
};

/*
 * A mapping that the walk of a user stack found and that the daemon does not know. Sent before the
 * stack.
 */
struct record_mapping {
	struct record_head head;
	__u64 leader_boot_ns;
	__u32 tgid;
	__u32 exec_gen;
	/* equal to record_stack.mappings of the stacks whose walks used this mapping */
	__u64 mappings;
	/*
	 * The daemon adds the mapping to the mappings of the process that have this generation
	 * number.
	 */
	__u64 generation;
	struct unwind_mapping_found found;
	__u64 name; /* id of the path of its file, see record_name; 0: unknown */
};

_Static_assert(sizeof(struct wait_key) == 32, "wait_key has no padding");
_Static_assert(sizeof(struct wait_sums) == 112 + 4 * WAIT_BUCKETS, "wait_sums has no padding");
_Static_assert(sizeof(struct sample_key) == 48, "sample_key has no padding");
_Static_assert(sizeof(struct wake_key) == 80, "wake_key has no padding");
_Static_assert(sizeof(struct wake_sums) == sizeof(struct wait_sums) + 16 + 32 * WAKE_LINKS,
	       "wake_sums has no padding");
_Static_assert(sizeof(struct thread) == 320, "thread has no padding and is five cache lines");
_Static_assert(__builtin_offsetof(struct thread, at_cut) == 128, "a task switch touches two");

#endif
