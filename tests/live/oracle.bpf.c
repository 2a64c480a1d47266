/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Keeps a second account of the scheduler's events, as simple as possible: by tid, with the time of
 * the last event of each kind, without states, windows or caches. When a thread comes back to a
 * CPU, those of these times that lie after its switch-out say since when it waited for a CPU.
 */

#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "oracle.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ORACLE_THREADS);
	__type(key, __u32);
	__type(value, struct oracle_thread);
} threads SEC(".maps");

static __always_inline struct oracle_thread *thread_get(struct task_struct *task, bool add)
{
	static const struct oracle_thread none;
	__u32 tid = task->pid;
	struct oracle_thread *t = bpf_map_lookup_elem(&threads, &tid);

	if (t || !add)
		return t;
	bpf_map_update_elem(&threads, &tid, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&threads, &tid);
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task)
{
	struct oracle_thread *t = thread_get(task, false);

	if (t)
		t->waking_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *task)
{
	struct oracle_thread *t = thread_get(task, false);

	if (t)
		t->wakeup_ns = bpf_ktime_get_ns();
	return 0;
}

static __always_inline void thread_out(struct oracle_thread *t, struct task_struct *task, __u64 now)
{
	bool is_queued = task->on_rq;

	if (bpf_core_field_exists(task->se.sched_delayed) && task->se.sched_delayed)
		is_queued = false;
	if (t->in_ns)
		t->on_ns += now - t->in_ns;
	else if (t->out_ns)
		t->lost_ns += now - t->out_ns;
	t->last_in_ns = t->in_ns;
	t->in_ns = 0;
	t->out_ns = now;
	t->out_queued = is_queued;
}

static __always_inline void thread_in(struct oracle_thread *t, __u64 now)
{
	__u64 in = t->in_ns, out = t->out_ns, from = out;

	t->in_ns = now;
	if (in)
		t->lost_ns += now - in;
	if (in || !out)
		return;
	if (!t->out_queued) {
		from = t->wakeup_ns >= out ? t->wakeup_ns : now;
		if (t->waking_ns >= out)
			from = t->waking_ns;
		else if (t->waking_ns >= t->last_in_ns)
			t->early_ns += now - from;
		else
			t->lost_ns += now - from;
	}
	t->blocked_ns += from - out;
	t->runnable_ns += now - from;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	__u64 now = bpf_ktime_get_ns();
	struct oracle_thread *t;

	if (prev->pid) {
		t = thread_get(prev, true);
		if (t)
			thread_out(t, prev, now);
	}
	if (next->pid) {
		t = thread_get(next, true);
		if (t)
			thread_in(t, now);
	}
	return 0;
}

SEC("tp_btf/sched_process_free")
int BPF_PROG(on_free, struct task_struct *task)
{
	__u32 tid = task->pid;

	bpf_map_delete_elem(&threads, &tid);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
