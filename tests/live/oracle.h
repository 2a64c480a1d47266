/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_TESTS_ORACLE_H
#define STACKD_TESTS_ORACLE_H

/* What oracle.bpf.c keeps of a thread and prog_oracle.c prints. Times in ns of CLOCK_MONOTONIC. */

#include <linux/types.h>

#define ORACLE_THREADS 16384

struct oracle_thread {
	__u64 in_ns; /* on a CPU since; 0: is not */
	__u64 out_ns;
	__u64 waking_ns;
	__u64 wakeup_ns;
	__u64 on_ns;
	__u64 blocked_ns;
	__u64 runnable_ns; /* from sched_waking on; where that came too early, sched_wakeup */
	__u64 early_ns;	   /* part of it: of the latter kind */
	__u64 lost_ns;	   /* by switches that were not shown */
	__u64 out_queued;  /* it was preempted or yielded */
};

#endif
