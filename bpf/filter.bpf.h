/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_FILTER_BPF_H
#define STACKD_BPF_FILTER_BPF_H

/*
 * Decides which threads and waits a session records. The filter's settings are constants that the
 * daemon sets before it loads the BPF programs, so an unused setting costs nothing at run time. If
 * the filter has a pattern for names, the programs compare only the part before the first wildcard;
 * the daemon compares the whole pattern later.
 */

#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "layout.h"

extern struct cut cut; /* defined in maps.bpf.h */

const volatile struct session_filter filter = {};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u8);
} filter_pids SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u8);
} filter_tids SEC(".maps");

/*
 * True if the filter accepts the thread's pid, its tid, and its kind (kernel thread or user
 * thread). No state is kept of a thread that is rejected.
 */
static __always_inline bool filter_has_thread(struct task_struct *task)
{
	__u32 id;

	if (filter.user_threads && task->flags & PF_KTHREAD)
		return false;
	if (filter.kernel_threads && !(task->flags & PF_KTHREAD))
		return false;
	if (filter.has_pids) {
		id = task->tgid;
		if (!bpf_map_lookup_elem(&filter_pids, &id))
			return false;
	}
	if (filter.has_tids) {
		id = task->pid;
		if (!bpf_map_lookup_elem(&filter_tids, &id))
			return false;
	}
	return true;
}

static __always_inline bool filter_has_name(const char *comm)
{
	__u32 i;

	for (i = 0; i < COMM_LEN; i++) {
		if (i >= filter.comm_len)
			return true;
		if (comm[i] != filter.comm[i])
			return false;
	}
	return true;
}

/* True if the name of the thread, or of its process, begins with the filter's prefix. */
static __always_inline bool filter_has_comm(struct task_struct *task)
{
	char comm[COMM_LEN];

	bpf_probe_read_kernel(comm, sizeof(comm), task->comm);
	if (filter_has_name(comm))
		return true;
	bpf_probe_read_kernel(comm, sizeof(comm), task->group_leader->comm);
	return filter_has_name(comm);
}

/*
 * True if the cgroup or its ancestor at depth `level` has this id. cgroup.ancestors: since 6.1
 * (7f203bc89eb6).
 */
static __always_inline bool cgroup_is_under(struct cgroup *cgroup, __u32 level, __u64 id)
{
	struct cgroup *at = NULL;

	if (!cgroup || BPF_CORE_READ(cgroup, level) < (int)level)
		return false;
	bpf_probe_read_kernel(&at, sizeof(at),
			      (void *)cgroup + bpf_core_field_offset(cgroup->ancestors) +
				      level * sizeof(at));
	return at && BPF_CORE_READ(at, kn, id) == id;
}

static __always_inline bool filter_has_cgroup(struct cgroup *cgroup)
{
	__u32 i;

	for (i = 0; i < FILTER_CGROUPS; i++)
		if (filter.cgroups & 1U << i &&
		    !cgroup_is_under(cgroup, cut.cgroups[i].level, cut.cgroups[i].id))
			return false;
	return true;
}

/* True if the filter accepts the thread's present name and cgroup, which may both change. */
static __always_inline bool filter_has_moment(struct task_struct *task)
{
	if (filter.comm_len && !filter_has_comm(task))
		return false;
	if (!filter.cgroups)
		return true;
	return filter_has_cgroup(BPF_CORE_READ(task, cgroups, dfl_cgrp));
}

/*
 * True if the filter accepts waits in this state. The daemon's filter_has_state() must give the
 * same result.
 */
static __always_inline bool filter_has_state(__u32 state)
{
	__u32 i;

	if (state & (STATE_PREEMPTED | STATE_NEW))
		return filter.has_preempted;
	if (state & STATE_TASK_MASK & filter.state_bits)
		return true;
	for (i = 0; i < FILTER_STATES; i++)
		if (filter.state_order[i] &&
		    (state & filter.state_order[i]) == filter.state_order[i])
			return filter.states & 1U << i;
	return false;
}

#endif
