/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_PROCESS_BPF_H
#define STACKD_BPF_PROCESS_BPF_H

/* Sends the daemon a record for each fork, exec and exit of a process. */

#include "maps.bpf.h"
#include "unwind_process.bpf.h"

static __always_inline struct record_process *process_record(struct cpu *cpu, __u32 type)
{
	struct record_process *r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);

	if (!r) {
		cpu->counts.lost[LOST_PROCESS_RING]++;
		return NULL;
	}
	__builtin_memset(r, 0, sizeof(*r));
	r->head.type = type;
	r->head.size = sizeof(*r);
	return r;
}

static __always_inline void process_identify(struct record_process *r, struct task_struct *task)
{
	r->leader_boot_ns = task->group_leader->start_boottime;
	r->tgid = task->tgid;
	r->exec_gen = (__u32)task->self_exec_id;
	r->is_kernel = !!(task->flags & PF_KTHREAD);
	bpf_probe_read_kernel(r->comm, sizeof(r->comm), task->comm);
}

static __always_inline void process_fork(struct cpu *cpu, struct task_struct *parent,
					 struct task_struct *child)
{
	struct record_process *r;

	if (child->pid != child->tgid)
		return;
	unwind_note_fork(parent, child);
	r = process_record(cpu, RECORD_FORK);
	if (!r)
		return;
	process_identify(r, child);
	r->parent_boot_ns = parent->group_leader->start_boottime;
	r->parent_tgid = parent->tgid;
	r->parent_exec_gen = (__u32)parent->self_exec_id;
	bpf_ringbuf_submit(r, ring_flags());
}

/*
 * Sends an exec, for probes that keep no state of threads. (offcpu keeps it and has a program of
 * its own.) Wakes the daemon at once, as the process may exit within milliseconds.
 */
static __always_inline void process_exec(struct cpu *cpu, struct task_struct *task)
{
	struct record_process *r;

	unwind_note_exec(task);
	r = process_record(cpu, RECORD_EXEC);
	if (!r)
		return;
	process_identify(r, task);
	bpf_ringbuf_submit(r, BPF_RB_FORCE_WAKEUP);
}

/* Sends the exit of a process, if the task is its last thread. */
static __always_inline void process_exit(struct cpu *cpu, struct task_struct *task)
{
	struct record_process *r;

	if (task->signal->live.counter)
		return;
	unwind_note_exit(task);
	r = process_record(cpu, RECORD_EXIT);
	if (!r)
		return;
	process_identify(r, task);
	bpf_ringbuf_submit(r, ring_flags());
}

#endif
