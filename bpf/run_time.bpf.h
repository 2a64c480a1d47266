/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_RUN_TIME_BPF_H
#define STACKD_BPF_RUN_TIME_BPF_H

/*
 * Measures how long the programs run. The kernel does so only while the sysctl
 * kernel.bpf_stats_enabled is 1. Reading the clock twice takes as long as many of the runs, so only
 * about one run of 64 is timed, chosen at random, and the daemon scales the sum up. Walks of stacks
 * are long, and all of them are timed.
 */

#include "kernel.h"

#include <bpf/bpf_helpers.h>

#include "layout.h"

struct run {
	struct cpu_counts *counts;
	__u64 begin_ns; /* 0: the run is not timed */
};

static __always_inline struct run run_begin(struct cpu_counts *counts)
{
	struct run run = { .counts = counts };

	if (++counts->runs >= counts->timed_next)
		run.begin_ns = bpf_ktime_get_ns();
	return run;
}

/* Ends the run. The lowest bits of the clock say after how many runs the next one is timed. */
static __always_inline void run_end(struct run *run)
{
	struct cpu_counts *counts = run->counts;
	__u64 now;

	if (!run->begin_ns)
		return;
	now = bpf_ktime_get_ns();
	counts->timed++;
	counts->timed_ns += now - run->begin_ns;
	counts->timed_next = counts->runs + 32 + (now & 63);
}

/*
 * Declares the variable `run`, which measures the time from here to the end of the function if the
 * run is one of those that are timed.
 */
#define RUN_TIMED(cpu) \
	struct run run __attribute__((unused, cleanup(run_end))) = run_begin(&(cpu)->counts)

static __always_inline struct run walk_begin(struct cpu_counts *counts)
{
	return (struct run){ .counts = counts, .begin_ns = bpf_ktime_get_ns() };
}

static __always_inline void walk_end(struct run *walk)
{
	walk->counts->walk_ns += bpf_ktime_get_ns() - walk->begin_ns;
}

/* Like RUN_TIMED(), but for programs of which each run walks a stack: all runs are timed. */
#define WALK_TIMED(cpu) \
	struct run walk __attribute__((unused, cleanup(walk_end))) = walk_begin(&(cpu)->counts)

/*
 * Adds the time since begin_ns to that of walks, and leaves it out of the time of the run. Returns
 * that time.
 */
static __always_inline __u64 run_walked(struct run *run, __u64 begin_ns)
{
	__u64 ns = bpf_ktime_get_ns() - begin_ns;

	run->counts->walk_ns += ns;
	if (run->begin_ns)
		run->begin_ns += ns;
	return ns;
}

#endif
