/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_SHARED_H
#define STACKD_BPF_SHARED_H

/*
 * The vocabulary that the programs in the kernel and the whole daemon share: limits, states,
 * reasons why a stack is missing, and reasons for loss. layout.h has the structs that they pass
 * each other.
 */

#include <linux/types.h>

#include "buckets.h"
#include "unwind_shared.h"

#define STACK_DEPTH 127 /* frames of a kernel stack, and as many of a user stack */
#define COMM_LEN    16	/* bytes of a thread's name with its NUL, as TASK_COMM_LEN of the kernel */

/* A stack id below STACK_ID_FIRST means that there is no stack, and gives the reason. */
enum stack_reason {
	STACK_NONE = 0,	      /* there cannot be one, as a user stack of a kernel thread */
	STACK_FAULT = 1,      /* the stack could not be read */
	STACK_NEW_THREAD = 2, /* the first run of a new thread, which has not slept yet */
	STACK_NO_HOOK = 3,    /* the program that takes stacks did not run for this wait */
	STACK_UNREAD = 4,     /* an open wait whose user stack has not been read */
	STACK_ID_FIRST = 16,
};

/* Bits that a wait's state has above the kernel's own task state bits. */
#define STATE_PREEMPTED (1U << 31) /* runnable all along: the thread was preempted, or yielded */
#define STATE_SEEDED	(1U << 30) /* asleep since before tracing: its start is approximate */
#define STATE_NEW	(1U << 29) /* a new thread that waits for its first run */
#define STATE_UNSEEN	(1U << 28) /* set by the daemon: the iterator did not see the open wait */
#define STATE_THROTTLED (1U << 27) /* with STATE_PREEMPTED: its cgroup had no CPU quota left */
#define STATE_TASK_MASK 0xffffU

/* Why something that happened is not in the data. Each value is a counter of events. */
enum loss {
	LOST_WAIT_KEYS,	   /* waits: the window's map was full */
	LOST_WAIT_RING,	   /* waits that span a cut: the ring was full */
	LOST_STACK_RING,   /* stacks: the ring was full */
	LOST_STACK_SEEN,   /* stacks sent again because the map of sent stacks was full */
	LOST_THREADS,	   /* switches of threads that had no room in the thread map */
	LOST_THREAD_END,   /* final sums of threads that ended: the ring was full */
	LOST_PROCESS_RING, /* fork, exec and exit events: the ring was full */
	LOST_MAPPING_RING, /* mappings that stack walks found: the ring was full */
	LOST_MISSED_OUT,   /* switch-outs of threads not known to be on a CPU */
	LOST_MISSED_IN,	   /* switch-ins of threads not known to be off the CPU */
	LOST_NO_MAP,	   /* waits or samples without a window map (never expected) */
	LOST_SAMPLE_KEYS,  /* samples: the window's map was full */
	LOST_NO_HOOK,	   /* offwake's waits: the program that takes stacks did not run */
	LOST_CALL_NESTED,  /* calls that interrupted the recording of another call on that CPU */
	LOST_CALL_RING,	   /* streamed calls: the ring was full */
	LOST_CALL_HELD,	   /* skipped calls that no later recorded call stands for */
	LOST_IO_KEYS,	   /* I/O operations: the window's map was full */
	LOST_IO_SLOTS,	   /* I/O operations: the table of open ones was full */
	LOST_IO_DEPTH,	   /* I/O operations nested deeper than a thread has room for */
	LOST_IO_REQUESTS,  /* block requests: the table of those in flight was full */
	LOST_IO_UNSEEN,	   /* block requests whose issue or completion no program saw */
	LOST_IO_PROCESS,   /* I/O operations counted in the combined row of several processes */
	LOST_N,
};

/* The time that a thread has spent in each state, ns unless noted. Only grows. */
struct thread_sums {
	__u64 on_ns;
	__u64 blocked_ns;
	__u64 runnable_ns;
	__u64 throttled_ns;	/* part of runnable_ns; waits under the minimum are not counted */
	__u64 switches;		/* count of switch-outs: grows as nvcsw + nivcsw of the kernel do */
	__u64 short_count;	/* count of waits under the minimum */
	__u64 short_blocked_ns; /* blocked time of these, which blocked_ns includes */
	__u64 short_runnable_ns; /* runnable time of these, which runnable_ns includes */
};

/* Tracepoints in one session, each of which needs a program of its own. */
#define TRACEPOINTS_MAX 32

/* The kind of function that a session traces; decides which frame of a stack is its first. */
enum call_kind { CALL_FUNCTION, CALL_TRACEPOINT, CALL_USER };

/* The context of a wakeup. */
enum wake_context {
	WAKE_NONE,    /* no link: the path of wakers ends before it */
	WAKE_UNKNOWN, /* the wakeup was not seen */
	WAKE_TASK,
	WAKE_IRQ, /* an interrupt: the thread it interrupted has no part in it */
	WAKE_SOFTIRQ,
	WAKE_TIMER, /* a timer that expired, in an interrupt or a softirq */
	WAKE_CONTEXTS,
};

enum { WAKE_LINKS = 5 }; /* the waker, the thread that woke the waker, and so on */

/* Marks an id of mappings that includes mappings found by walks, beside the daemon's own. */
#define MAPPINGS_FOUND (1ULL << 63)

/* With no other bit: a mapping could not be sent, so what the stack went through is not known. */
#define MAPPINGS_LOST MAPPINGS_FOUND

#endif
