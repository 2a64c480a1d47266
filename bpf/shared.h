/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_SHARED_H
#define STACKD_BPF_SHARED_H

/*
 * Limits, states, reasons why a stack is missing, and reasons for loss, for the programs in the
 * kernel and the whole daemon. layout.h has the structs that they pass to each other.
 */

#include <linux/types.h>

#include "buckets.h"
#include "unwind_shared.h"

#define STACK_DEPTH 127 /* maximum number of frames of one stack, kernel or user */
#define COMM_LEN    16	/* bytes of a thread's name with its NUL, as the kernel's TASK_COMM_LEN */

/* A stack id below STACK_ID_FIRST means that there is no stack, and gives the reason. */
enum stack_reason {
	STACK_NONE = 0,	 /* there is no stack to take, such as the user stack of a kernel thread */
	STACK_FAULT = 1, /* the stack could not be read */
	STACK_NEW_THREAD = 2, /* the stack of a new thread, which had not run yet */
	/*
	 * the program that takes stacks did not run for this wait, or ran before it, when the wait
	 * was not expected to be long
	 */
	STACK_NO_HOOK = 3,
	STACK_UNREAD = 4, /* stack of a wait that has not ended; it has not been read yet */
	STACK_ID_FIRST = 16,
};

/* Bits of a wait's state that lie above the kernel's own task state bits. */
#define STATE_PREEMPTED (1U << 31) /* runnable all along: the thread was preempted or yielded */
#define STATE_SEEDED	(1U << 30) /* slept before tracing began: the wait's start is estimated */
#define STATE_NEW	(1U << 29) /* a new thread that waits for its first run */
/*
 * Set by the daemon: when the window ended, the iterator over all tasks did not find the thread, so
 * the wait may have ended unnoticed.
 */
#define STATE_UNSEEN (1U << 28)
/*
 * Set by the daemon in a row that sums up idle waits, see wait_is_idle(). The row has no stacks, so
 * only this bit shows that the waits were idle.
 */
#define STATE_IDLE (1U << 26)
/* With any state: a row of waits recorded by sample.h, whose count and times are estimates. */
#define STATE_SAMPLED	(1U << 25)
#define STATE_THROTTLED (1U << 27) /* with STATE_PREEMPTED: its cgroup had no CPU quota left */
#define STATE_TASK_MASK 0xffffU
/*
 * A task state bit (f5d39b020809, 6.1): the thread is frozen, by a cgroup of version 1 or for a
 * suspend. ps shows it as uninterruptible.
 */
#define STATE_FROZEN 0x8000U

/*
 * Reasons why something that happened is not in the data. Each is the index of a counter of events.
 */
enum loss {
	LOST_WAIT_KEYS,	 /* waits with a new key: the window's map was full */
	LOST_WAIT_RING,	 /* waits that lie in several windows: the ring was full */
	LOST_STACK_RING, /* stacks: the ring was full */
	/* stacks that were perhaps sent again, as the map of sent stacks was full */
	LOST_STACK_SEEN,
	LOST_THREADS,	   /* switches of threads that had no room in the map of threads */
	LOST_THREAD_END,   /* final sums of threads that ended: the ring was full */
	LOST_PROCESS_RING, /* fork, exec and exit events: the ring was full */
	LOST_MAPPING_RING, /* mappings that stack walks found: the ring was full */
	LOST_MISSED_OUT,   /* switch-outs of threads that were not known to be on a CPU */
	LOST_MISSED_IN,	   /* switch-ins of threads that were not known to be off the CPU */
	LOST_NO_MAP,	   /* waits, samples or I/O: no map for the window (never expected) */
	LOST_SAMPLE_KEYS,  /* samples or calls: the window's map was full */
	LOST_NO_HOOK,	   /* waits of offwake: the BPF program that takes stacks did not run */
	LOST_CALL_NESTED,  /* calls that interrupted the recording of another call on that CPU */
	LOST_CALL_RING,	   /* streamed calls: the ring was full */
	LOST_CALL_HELD,	   /* skipped calls that no later recorded call stands for */
	LOST_IO_KEYS,	   /* I/O operations: the window's map was full */
	LOST_IO_SLOTS,	   /* I/O operations: there was no slot for the thread in io_slots */
	LOST_IO_DEPTH,	   /* I/O operations nested deeper than a thread has room for */
	LOST_IO_REQUESTS,  /* block requests: the table of those in flight was full */
	LOST_IO_UNSEEN,	   /* block requests whose issue or completion no program saw */
	LOST_SAMPLES,	   /* sampled short waits: the window's map was full; sums include them */
	LOST_IO_PROCESS,   /* I/O operations counted in the combined row of several processes */
	LOST_N,
};

/* How long a thread has been in each state, ns unless noted. The values only grow. */
struct thread_sums {
	__u64 on_ns;
	__u64 blocked_ns;
	__u64 runnable_ns;
	__u64 throttled_ns; /* part of runnable_ns without CPU quota; leaves out short waits */
	__u64 switches;	    /* number of switch-outs, as the kernel's nvcsw + nivcsw */
	/*
	 * Number of short waits: those below the session's minimum length and, if a window has a
	 * sample_below_ns, those below that. They are all in these sums, also those with a row.
	 */
	__u64 short_count;
	__u64 short_blocked_ns;	 /* blocked time of the short_count waits, part of blocked_ns */
	__u64 short_runnable_ns; /* runnable time of the short_count waits, part of runnable_ns */
};

/* Maximum number of tracepoints in one session: each needs a BPF program of its own. */
#define TRACEPOINTS_MAX 32

/*
 * The kind of function whose calls a session records. It decides what the first frame of a stack
 * is.
 */
enum call_kind { CALL_FUNCTION, CALL_TRACEPOINT, CALL_USER };

/* A thread that kept another one waiting, and for how long. */
struct culprit {
	__u64 ns; /* 0: there is no such thread */
	__u32 tgid;
	__u32 tid;
	char comm[COMM_LEN];
};

/* The culprits of a row of waits: of each kind, the one of the longest wait. */
struct culprits {
	/*
	 * The thread that ran on a CPU for the second half, or longer, of the time in which a
	 * thread was ready there, until that one got the CPU. `ns` is that whole time, all of it on
	 * the run queue of this CPU, and at least CULPRIT_MIN_NS.
	 */
	struct culprit ran_before;
	/*
	 * The thread that is to blame for `ns` of a sleep of at least CULPRIT_MIN_NS: see
	 * waker.bpf.h.
	 */
	struct culprit held_up_by;
};

#define CULPRIT_MIN_NS 1000000ULL

static inline void culprit_add(struct culprit *sum, const struct culprit *more)
{
	if (more->ns > sum->ns)
		*sum = *more;
}

/* Keeps those of the longer waits in *sum. */
static inline void culprits_add(struct culprits *sum, const struct culprits *more)
{
	culprit_add(&sum->ran_before, &more->ran_before);
	culprit_add(&sum->held_up_by, &more->held_up_by);
}

/* The context that a wakeup comes from. */
enum wake_context {
	WAKE_NONE,    /* no waker: the path of wakers ends before this link */
	WAKE_UNKNOWN, /* no BPF program saw the wakeup */
	WAKE_TASK,
	WAKE_IRQ, /* an interrupt; the interrupted thread has no part in the wakeup */
	WAKE_SOFTIRQ,
	WAKE_TIMER, /* a timer that expired, in an interrupt or a softirq */
	WAKE_CONTEXTS,
};

/* maximum length of a path of wakers: the waker, the waker's waker and so on */
enum { WAKE_LINKS = 5 };

/*
 * A bit in the id of a set of mappings: some mappings of the set were not known to the daemon, but
 * were found by stack walks.
 */
#define MAPPINGS_FOUND (1ULL << 63)

/*
 * Used in place of the id of a set of mappings if one of the mappings could not be sent to the
 * daemon: addresses of the stack may then belong to a file that is not known.
 */
#define MAPPINGS_LOST MAPPINGS_FOUND

#endif
