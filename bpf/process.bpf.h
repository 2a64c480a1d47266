/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_PROCESS_BPF_H
#define STACKD_BPF_PROCESS_BPF_H

/* Sends the daemon a record for each fork, exec, exit and change of control group of a process. */

#include "mapping.bpf.h"
#include "maps.bpf.h"
#include "names.bpf.h"
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

/*
 * Copies the name of the process of `task`, which may be the address of a task that has ended: then
 * the name may be wrong.
 */
static __always_inline void process_read_name(char comm[COMM_LEN], struct task_struct *task)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);

	bpf_probe_read_kernel(comm, COMM_LEN, leader->comm);
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
	r->parent.leader_boot_ns = parent->group_leader->start_boottime;
	r->parent.tgid = parent->tgid;
	r->parent.exec_gen = (__u32)parent->self_exec_id;
	r->group_name = name_group_id(child);
	process_read_name(r->parent_comm, parent);
	bpf_ringbuf_submit(r, ring_flags());
}

/*
 * Facts about the program that a process has just started by exec. BPF programs collect them at the
 * exec, because the daemon reads the record of the exec later.
 */
struct exec_facts {
	__u64 exe_name, exe_inode, group_name;
	__u32 is_known;
	__u32 pad;
};

/*
 * After an exec, sends the path of the new program and the path of the process's control group.
 * Finds out whether the daemon knows the new program's code and has loaded its unwind rows. If not,
 * the daemon has to read the file soon: the process may exit within milliseconds.
 */
static __noinline void exec_look(struct cpu *cpu, struct task_struct *task,
				 struct exec_facts *facts)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	struct file *file = BPF_CORE_READ(mm, exe_file);
	__u32 walker = UNWIND_AT_EXEC, number;
	struct unwind_walk *w = bpf_map_lookup_elem(&unwind_walks, &walker);
	struct unwind_table *table;

	if (!follows_processes || !cpu || !facts || !w)
		return;
	facts->group_name = name_group(cpu, &w->name, task);
	facts->exe_name = name_file(cpu, &w->name, file);
	facts->exe_inode = BPF_CORE_READ(file, f_inode, i_ino);
	w->search.mm = (__u64)mm;
	w->search.n_found = 0;
	w->search.has_segments = 0;
	w->search.segment.end = 0;
	if (unwind_code_find(&w->search, BPF_CORE_READ(mm, start_code)) != UNWIND_CODE_FOUND)
		return;
	number = w->search.table;
	table = bpf_map_lookup_elem(&unwind_tables, &number);
	facts->is_known = table && table->state != UNWIND_ABSENT;
}

/*
 * Sends the mapping of the new program's code, which exec_look() has found. It includes the struct
 * unwind_code_key by which programs in the kernel identify this code. The daemon uses the key to
 * make the file's unwind rows known to stack walks.
 */
static __noinline void exec_send_code(struct cpu *cpu, struct task_struct *task)
{
	struct stack_owner owner = {
		.leader_boot_ns = BPF_CORE_READ(task, group_leader, start_boottime),
		.tgid = (__u32)BPF_CORE_READ(task, tgid),
		.exec_gen = (__u32)BPF_CORE_READ(task, self_exec_id),
	};
	__u32 walker = UNWIND_AT_EXEC;
	struct unwind_walk *w = bpf_map_lookup_elem(&unwind_walks, &walker);

	if (cpu && w)
		mappings_send(cpu, w, &owner);
}

/*
 * Completes the record of an exec and sends it. Wakes the daemon if it has to read the file at
 * once.
 */
static __always_inline void exec_send(struct cpu *cpu, struct record_process *r,
				      struct task_struct *task, const struct exec_facts *facts)
{
	bool is_read = follows_processes && !(facts->is_known && facts->exe_name);

	if (is_read)
		exec_send_code(cpu, task);
	process_identify(r, task);
	process_read_name(r->parent_comm, BPF_CORE_READ(task, real_parent));
	r->exe_name = facts->exe_name;
	r->exe_inode = facts->exe_inode;
	r->group_name = facts->group_name;
	r->is_known = facts->is_known;
	bpf_ringbuf_submit(r, is_read && !(cut.shed & SHED_BRIEF) ? BPF_RB_FORCE_WAKEUP
								  : ring_flags());
}

/*
 * Reports an exec, for probes that keep no state of threads. (offcpu keeps such state and reports
 * execs by a BPF program of its own.)
 */
static __always_inline void process_exec(struct cpu *cpu, struct task_struct *task)
{
	struct record_process *r;
	struct exec_facts facts = {};

	unwind_note_exec(task);
	exec_look(cpu, task, &facts);
	r = process_record(cpu, RECORD_EXEC);
	if (r)
		exec_send(cpu, r, task, &facts);
}

/*
 * Sends the control group into which the process of `task` was moved. A process is where its main
 * thread is; other threads may be in groups below (cgroup.threads). The kernel reports moves in
 * hierarchies of version 1, too: these leave the group as it was. The tracepoint
 * (since 4.9) comes after the move, with interrupts disabled, so that nothing else uses
 * the walker of this CPU meanwhile.
 */
static __always_inline void process_move(struct cpu *cpu, struct task_struct *task)
{
	__u32 walker = UNWIND_AT_EXEC;
	struct unwind_walk *w = bpf_map_lookup_elem(&unwind_walks, &walker);
	struct record_process *r;
	__u64 group_name;

	if (!follows_processes || !w || task->pid != task->tgid)
		return;
	group_name = name_group(cpu, &w->name, task);
	r = process_record(cpu, RECORD_MOVE);
	if (!r)
		return;
	process_identify(r, task);
	r->group_name = group_name;
	bpf_ringbuf_submit(r, ring_flags());
}

/* The most threads that have not been released and are added up at the exit of a process. */
enum { EXIT_THREADS = 16 };

/*
 * Returns the CPU time of the other threads of a process whose last thread exits. The kernel has
 * the sum over those that it has released. The others are few: the main thread, and threads that
 * exit at the same moment.
 */
static __noinline __u64 exited_cpu_ns(struct task_struct *task)
{
	struct signal_struct *signal = BPF_CORE_READ(task, signal);
	__u64 ns = BPF_CORE_READ(signal, sum_sched_runtime);
	struct list_head *at = BPF_CORE_READ(signal, thread_head.next);
	struct task_struct *other;
	int i;

	if (BPF_CORE_READ(signal, nr_threads) <= 1)
		return ns;
	for (i = 0; i < EXIT_THREADS && at != &signal->thread_head; i++) {
		other = (struct task_struct *)((__u64)at - bpf_core_field_offset(struct task_struct,
										 thread_node));
		if (other != task)
			ns += BPF_CORE_READ(other, se.sum_exec_runtime);
		at = BPF_CORE_READ(other, thread_node.next);
	}
	return ns;
}

/*
 * Sends the exit of a process, if the task is its last thread. `t` is the thread's state; NULL if
 * the probe keeps none, or if it has no room for it. The kernel updates a thread's CPU time at
 * clock ticks and switches only, but has the time from before tracing, too.
 */
static __always_inline void process_exit(struct cpu *cpu, struct task_struct *task,
					 const struct thread *t)
{
	struct record_process *r;
	__u64 on_ns = 0, known_ns;
	__u32 n_threads;

	if (task->signal->live.counter)
		return;
	/* Read before the record gets its place in the ring, so that the first one has more than 1.
	 */
	n_threads = *(volatile __u32 *)&task->signal->nr_threads;
	unwind_note_exit(task);
	r = process_record(cpu, RECORD_EXIT);
	if (!r)
		return;
	process_identify(r, task);
	process_read_name(r->comm, task);
	process_read_name(r->parent_comm, BPF_CORE_READ(task, real_parent));
	r->time_ns = bpf_ktime_get_ns();
	r->life_ns = bpf_ktime_get_boot_ns() - r->leader_boot_ns;
	if (t && t->status == THREAD_ON_CPU) {
		on_ns = t->sums.on_ns;
		if (r->time_ns > t->since_ns)
			on_ns += r->time_ns - t->since_ns;
		r->uid = t->uid;
		r->sums.on_ns = on_ns;
	}
	r->n_threads = n_threads;
	known_ns = task->se.sum_exec_runtime;
	r->cpu_ns = exited_cpu_ns(task) + (on_ns > known_ns ? on_ns : known_ns);
	bpf_ringbuf_submit(r, ring_flags());
}

#endif
