/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_TESTS_ORACLE_H
#define STACKD_TESTS_ORACLE_H

/*
 * The account of a thread that oracle.bpf.c keeps and prog_oracle.c prints. Times are in ns of
 * CLOCK_MONOTONIC.
 */

#include <linux/types.h>

#define ORACLE_THREADS 16384

struct oracle_thread {
	__u64 in_ns;	  /* on a CPU since then; 0: it is on none */
	__u64 last_in_ns; /* in_ns of the time before the last switch-out; 0: it was not seen */
	__u64 out_ns;
	__u64 waking_ns;
	__u64 wakeup_ns;
	__u64 on_ns;
	__u64 blocked_ns;
	__u64 runnable_ns; /* from sched_waking on; from sched_wakeup on if that came too early */
	__u64 early_ns;	   /* the part of runnable_ns that begins at sched_wakeup */
	/* time between switches that were not seen, or since when it was runnable */
	__u64 lost_ns;
	__u64 out_queued; /* it was preempted or yielded */
};

#endif
