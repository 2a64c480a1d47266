/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_UNWIND_PROCESS_BPF_H
#define STACKD_BPF_UNWIND_PROCESS_BPF_H

/*
 * Keeps `unwind_processes` up to date at forks, execs and exits, before the daemon learns of them.
 */

#include "unwind.bpf.h"

/*
 * Gives a forked process its parent's mappings, because the child may wait for the first time
 * before the daemon has read the child's mappings.
 */
static __always_inline void unwind_note_fork(struct task_struct *parent, struct task_struct *child)
{
	__u32 tgid = (__u32)parent->tgid;
	struct unwind_process *entry = bpf_map_lookup_elem(&unwind_processes, &tgid), p;

	if (!entry)
		return;
	p = *entry;
	if (p.check != unwind_check(&p) || p.tgid != tgid)
		return;
	if (p.leader_boot_ns && p.leader_boot_ns != parent->group_leader->start_boottime)
		return;
	if (p.exec_gen != UNWIND_ANY_EXEC && p.exec_gen != (__u32)parent->self_exec_id)
		return;
	tgid = (__u32)child->tgid;
	p.tgid = tgid;
	p.leader_boot_ns = child->group_leader->start_boottime;
	p.exec_gen = (__u32)child->self_exec_id;
	p.seen = 0; /* a sequence number of the parent's mappings means nothing in the child */
	p.check = unwind_check(&p);
	bpf_map_update_elem(&unwind_processes, &tgid, &p, BPF_ANY);
}

/*
 * Clears the mappings of a process at its exec. Keeps the entry, so that the daemon cannot add
 * mappings that it read before the exec.
 */
static __always_inline void unwind_note_exec(struct task_struct *task)
{
	struct unwind_process p = {
		.leader_boot_ns = task->group_leader->start_boottime,
		.tgid = (__u32)task->tgid,
		.exec_gen = (__u32)task->self_exec_id,
	};
	__u32 tgid = p.tgid;

	p.check = unwind_check(&p);
	bpf_map_update_elem(&unwind_processes, &tgid, &p, BPF_ANY);
}

/* Removes the mappings of a process whose last thread exits. */
static __always_inline void unwind_note_exit(struct task_struct *task)
{
	__u32 tgid = (__u32)task->tgid;

	bpf_map_delete_elem(&unwind_processes, &tgid);
}

#endif
