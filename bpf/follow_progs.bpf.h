/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_FOLLOW_PROGS_BPF_H
#define STACKD_BPF_FOLLOW_PROGS_BPF_H

/*
 * BPF programs that report forks, execs, exits and moves of processes to the daemon. The daemon
 * loads them unless another probe reports these events already. The probe offcpu does not use them:
 * it has programs of its own for these events.
 */

#include "kernel.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "process.bpf.h"

SEC("?tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	struct cpu *cpu = cpu_get();

	if (cpu)
		process_fork(cpu, parent, child);
	return 0;
}

SEC("?tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task)
{
	struct cpu *cpu = cpu_get();

	if (cpu)
		process_exec(cpu, task);
	return 0;
}

SEC("?tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct cpu *cpu = cpu_get();

	if (cpu)
		process_exit(cpu, task, NULL);
	return 0;
}

SEC("?tp_btf/cgroup_attach_task")
int BPF_PROG(on_move, struct cgroup *group, const char *path, struct task_struct *task)
{
	struct cpu *cpu = cpu_get();

	if (cpu)
		process_move(cpu, task);
	return 0;
}

#endif
