/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_WAIT_BPF_H
#define STACKD_BPF_WAIT_BPF_H

/*
 * Functions for all probes that record waits: one says whether a task sleeps, the other adds a wait
 * to a row.
 */

#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "buckets.h"
#include "layout.h"
#include "sample.h"

/* True if the task sleeps. Since 6.12 a sleeping task may stay on its run queue for a while. */
static __always_inline bool task_is_blocked(struct task_struct *task)
{
	if (!task->on_rq)
		return true;
	return bpf_core_field_exists(task->se.sched_delayed) && task->se.sched_delayed;
}

static __always_inline void wait_sums_add(struct wait_sums *row, __u64 start_ns, __u64 wake_ns,
					  __u64 end_ns)
{
	__u64 ns = end_ns - start_ns;
	__u32 bucket = wait_bucket(ns);

	row->count++;
	row->blocked_ns += wake_ns - start_ns;
	row->runnable_ns += end_ns - wake_ns;
	if (ns >= row->max_ns) {
		row->max_ns = ns;
		row->max_end_ns = end_ns;
	}
	if (bucket < WAIT_BUCKETS)
		row->buckets[bucket]++;
}

/*
 * Adds a wait of `ns` that stands for `weight` waits, and for these times. max_ns is a real length.
 */
static __always_inline void wait_sums_add_weighted(struct wait_sums *row, __u64 ns, __u64 end_ns,
						   __u64 blocked_ns, __u64 runnable_ns,
						   __u64 weight)
{
	__u32 bucket = wait_bucket(ns);

	row->count += weight;
	row->blocked_ns += blocked_ns;
	row->runnable_ns += runnable_ns;
	if (ns >= row->max_ns) {
		row->max_ns = ns;
		row->max_end_ns = end_ns;
	}
	if (bucket < WAIT_BUCKETS) {
		weight += row->buckets[bucket];
		row->buckets[bucket] = weight < 0xffffffff ? weight : 0xffffffff;
	}
}

/* Adds a wait that sample.h picked at random by its length, with its weight. */
static __always_inline void wait_sums_add_sampled(struct wait_sums *row, __u64 start_ns,
						  __u64 wake_ns, __u64 end_ns, __u64 below,
						  __u32 random)
{
	__u64 ns = end_ns - start_ns, blocked_ns;

	if (!ns)
		return;
	blocked_ns = sample_part(wake_ns - start_ns, ns, below);
	wait_sums_add_weighted(row, ns, end_ns, blocked_ns, below - blocked_ns,
			       sample_weight(random, ns, below));
}

/* Adds a wait that sample.h picked at random before its length was known, with its weight. */
static __always_inline void wait_sums_add_foreseen(struct wait_sums *row, __u64 start_ns,
						   __u64 wake_ns, __u64 end_ns, __u32 odds,
						   __u32 random)
{
	wait_sums_add_weighted(
		row, end_ns - start_ns, end_ns, sample_odds_part(wake_ns - start_ns, odds),
		sample_odds_part(end_ns - wake_ns, odds), sample_odds_weight(random, odds));
}

#endif
