/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The programs of the on-CPU probe (stage 1 in the README). A perf event on each CPU takes a sample
 * of what runs there. A sample has the whole identity of its thread, so that no other probe has to
 * be loaded. on_sample runs in an interrupt (an NMI with a hardware counter), on top of any other
 * program, so it shares no buffers with other programs.
 *
 * | hook                   | program               | in                 | maps it writes       |
 * |------------------------|-----------------------|--------------------|----------------------|
 * | perf_event             | on_sample             | here               | windows, seen, ring, |
 * |                        |                       |                    | marks of use         |
 * | tp_btf/sched_process_* | on_fork, _exec, _exit | follow_progs.bpf.h | ring,                |
 * |                        |                       |                    | unwind_processes     |
 *
 * Marks of use: those in unwind_tables, unwind_words and unwind_processes. All programs write
 * `cpus`.
 */

#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "filter.bpf.h"
#include "layout.h"

#include "follow_progs.bpf.h"
#include "mapping.bpf.h"
#include "maps.bpf.h"
#include "run_time.bpf.h"
#include "stack.bpf.h"
#include "unwind.bpf.h"

const volatile bool with_idle = false;

static __always_inline void stacks_take(void *ctx, struct cpu *cpu, struct task_struct *task,
					struct sample_key *key)
{
	struct scratch *s = scratch_get(SCRATCH_SWITCH);
	struct stack_owner kernel = {}, user;
	struct unwind_walk *w;
	__u32 epoch;
	long r;

	if (!s)
		return;
	r = bpf_get_stack(ctx, s->ip, 8 * STACK_DEPTH, 0);
	/* r is 0 if the sample hit user mode, where there is no kernel stack. */
	if (r < 0)
		key->kstack = STACK_FAULT;
	else if (r)
		key->kstack = stack_take_sent(cpu, s->ip, (__u32)r / 8, UNWIND_IS_SAMPLE, &kernel,
					      0, &epoch);
	if (key->flags & SAMPLE_IS_KERNEL)
		return;
	user.leader_boot_ns = key->leader_boot_ns;
	user.tgid = key->tgid;
	user.exec_gen = key->exec_gen;
	/* An exiting thread may have no user memory any more. */
	w = task->flags & PF_EXITING ? NULL : unwind_user(task, UNWIND_AT_SAMPLE);
	if (w)
		key->ustack = stack_take_user(cpu, w, &user);
}

/* Returns the row of a key. A new row gets the name that the thread has now. */
static __always_inline struct sample_sums *sample_row(void *window, const struct sample_key *key,
						      struct task_struct *task)
{
	struct sample_sums *row = bpf_map_lookup_elem(window, key), sums = {};

	if (row)
		return row;
	bpf_probe_read_kernel(sums.comm, sizeof(sums.comm), task->comm);
	bpf_map_update_elem(window, key, &sums, BPF_NOEXIST);
	return bpf_map_lookup_elem(window, key);
}

/*
 * Adds a sample to its row. The sample also stands for those that were skipped on its CPU since the
 * one before.
 */
static __always_inline void sample_add(struct cpu *cpu, const struct sample_key *key,
				       struct task_struct *task)
{
	__u64 count = 1 + cpu->counts.calls_passed;
	__u32 slot = cut.epoch & 1;
	struct sample_sums *row;
	void *window = bpf_map_lookup_elem(&windows, &slot);

	cpu->counts.calls_passed = 0;
	if (!window) {
		cpu->counts.lost[LOST_NO_MAP] += count;
		return;
	}
	row = sample_row(window, key, task);
	if (!row) {
		cpu->counts.lost[LOST_SAMPLE_KEYS] += count;
		return;
	}
	cpu->counts.samples_kept += count;
	/* Atomic: the idle tasks of all CPUs share one row. */
	__sync_fetch_and_add(&row->count, count);
}

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct cpu *cpu = cpu_get();
	struct sample_key key = {};

	if (!cpu)
		return 0;
	WALK_TIMED(cpu);
	cpu->counts.samples++;
	if (!with_idle && !task->pid) {
		cpu->counts.samples_idle++;
		return 0;
	}
	if (!filter_has_thread(task) || !filter_has_moment(task)) {
		cpu->counts.filtered++;
		return 0;
	}
	if (cpu->counts.calls_passed + 1 < cut.sample_every) {
		cpu->counts.calls_passed++;
		return 0;
	}
	key.start_boot_ns = task->start_boottime;
	key.leader_boot_ns = task->group_leader->start_boottime;
	key.tid = task->pid;
	key.tgid = task->tgid;
	key.exec_gen = (__u32)task->self_exec_id;
	if (task->flags & PF_KTHREAD)
		key.flags = SAMPLE_IS_KERNEL;
	stacks_take(ctx, cpu, task, &key);
	sample_add(cpu, &key, task);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
