/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_THREAD_BPF_H
#define STACKD_BPF_THREAD_BPF_H

/*
 * Keeps the state of each thread: on a CPU, blocked or runnable, since when, and the time spent in
 * each state. Called from the scheduler's tracepoints under the run-queue lock.
 */

#include "offcpu_maps.bpf.h"

#include <bpf/bpf_core_read.h>

#define barrier() asm volatile("" ::: "memory")

static __always_inline void thread_begin(struct thread *t)
{
	t->seq_begin++;
	barrier();
}

static __always_inline void thread_done(struct thread *t)
{
	barrier();
	t->seq_done = t->seq_begin;
}

static __always_inline struct thread *thread_at(__u32 slot)
{
	return bpf_map_lookup_elem(&threads, &slot);
}

static __always_inline struct thread *thread_find(struct cpu *cpu, __u64 task)
{
	struct recent *recent;
	struct thread *t;
	__u32 *slot, hash;

	/*
	 * A pointer that is read back from a map is a number to the verifier, which forbids
	 * arithmetic on pointers.
	 */
	*(volatile __u64 *)&cpu->task = task;
	hash = (__u32) * (volatile __u64 *)&cpu->task;
	recent = &cpu->recent[(hash >> 6 ^ hash >> 12) & (RECENT - 1)];

	if (recent->task == task) {
		t = thread_at(recent->slot);
		if (t && t->task == task)
			return t;
	}
	slot = bpf_map_lookup_elem(&slots, &task);
	if (!slot)
		return NULL;
	t = thread_at(*slot);
	if (!t || t->task != task)
		return NULL;
	recent->task = task;
	recent->slot = t->slot;
	return t;
}

static __always_inline void thread_identify(struct thread *t, struct task_struct *task)
{
	t->tid = task->pid;
	t->tgid = task->tgid;
	t->start_boot_ns = task->start_boottime;
	t->leader_boot_ns = task->group_leader->start_boottime;
	t->exec_gen = (__u32)task->self_exec_id;
	if (task->flags & PF_KTHREAD)
		t->flags |= THREAD_IS_KERNEL;
	bpf_probe_read_kernel(t->comm, sizeof(t->comm), task->comm);
}

/*
 * Reads the thread's name again. Does not read it in the middle of an exec: the task may have its
 * new name already, or half of it, while the old one is needed until on_exec().
 */
static __always_inline void thread_read_name(struct thread *t, struct task_struct *task)
{
	if (bpf_core_field_exists(task->in_execve) && BPF_CORE_READ_BITFIELD(task, in_execve))
		return;
	bpf_probe_read_kernel(t->comm, sizeof(t->comm), task->comm);
}

/* Returns the number of the present window. It may change at any time: an event reads it once. */
static __always_inline __u32 cut_epoch(void)
{
	return *(volatile __u32 *)&cut.epoch;
}

/*
 * Returns the time of an event that is counted in the window `epoch`: `now`, but not before the
 * start of that window, nor after the start of the next. A program reads the number of the window
 * some ns after the clock, and the daemon writes it some ns after the window has begun. Without
 * this, a wait that begins or ends in between would be in the rows of one window, and in the sums
 * of its thread in another.
 */
static __always_inline __u64 cut_time(__u64 now, __u32 epoch)
{
	__u64 start = cut.start_ns[epoch & 1], next = cut.start_ns[!(epoch & 1)];

	if (now < start)
		return start;
	return next > start && now > next ? next : now;
}

struct thread_start {
	__u64 since_ns;
	__u64 seeded_ns;
	__u32 status;
	__u32 wait_state;
	__u32 flags;
	__u32 pad;
};

static __always_inline void thread_init(struct thread *t, __u32 slot, struct task_struct *task,
					const struct thread_start *start)
{
	__u32 epoch = cut_epoch();

	thread_begin(t);
	__builtin_memset(&t->sums, 0, sizeof(t->sums));
	__builtin_memset(&t->at_cut, 0, sizeof(t->at_cut));
	t->slot = slot;
	t->wake_ns = 0;
	t->kstack = t->ustack = STACK_NO_HOOK;
	t->odds = t->average_ns = 0;
	t->open_since_ns = t->open_kstack = 0;
	t->uid = __sync_fetch_and_add(&next_uid, 1) + 1;
	t->since_ns = start->flags & THREAD_IS_SEEDED ? start->since_ns
						      : cut_time(start->since_ns, epoch);
	t->seeded_ns = start->seeded_ns;
	t->wait_state = start->wait_state;
	t->flags = start->flags;
	t->epoch = epoch;
	t->seen_cut = epoch;
	thread_identify(t, task);
	t->status = start->status;
	t->task = (__u64)task;
	thread_done(t);
}

static __always_inline void slot_release(struct thread *t)
{
	__u32 slot = t->slot;

	thread_begin(t);
	t->task = 0;
	t->uid = 0;
	thread_done(t);
	bpf_map_push_elem(&free_slots, &slot, 0);
}

/*
 * Adds an entry for a thread, in the state that `start` describes. Returns NULL if there is no room
 * or another CPU has just added the thread.
 */
static __noinline struct thread *thread_add(struct cpu *cpu, struct task_struct *task,
					    const struct thread_start *start)
{
	__u64 key = (__u64)task;
	struct thread *t;
	__u32 slot;
	long r;

	if (bpf_map_pop_elem(&free_slots, &slot)) {
		cpu->counts.lost[LOST_THREADS]++;
		return NULL;
	}
	t = thread_at(slot);
	if (!t)
		return NULL;
	thread_init(t, slot, task, start);
	r = bpf_map_update_elem(&slots, &key, &slot, BPF_NOEXIST);
	if (r) {
		if (r != -17 /* -EEXIST: another CPU has added the thread first */)
			cpu->counts.lost[LOST_THREADS]++;
		slot_release(t);
		return NULL;
	}
	return t;
}

/*
 * Adds an entry for a task that was just created. If there is an entry with the task's address
 * already, it belongs to a freed task and is overwritten.
 */
static __noinline void thread_renew(struct cpu *cpu, struct task_struct *task,
				    const struct thread_start *start)
{
	struct thread *t = thread_find(cpu, (__u64)task);

	if (t)
		thread_init(t, t->slot, task, start);
	else
		thread_add(cpu, task, start);
}

static __always_inline __u64 span_ns(__u64 from, __u64 to)
{
	return to > from ? to - from : 0;
}

/*
 * Returns the time from which on the thread's present state counts in its sums. That is the start
 * of the state. If the state began before tracing, it is the start of the window in which the
 * thread was added, or a later time.
 */
static __always_inline __u64 thread_from(const struct thread *t)
{
	return t->flags & THREAD_IS_SEEDED ? t->seeded_ns : t->since_ns;
}

/*
 * A thread that is about to sleep may be woken before its switch-out. It has left its run queue
 * already, and the waker waits until the thread is off its CPU, see on_cpu in try_to_wake_up().
 * Each sleep ends with a sched_waking, so if none came after the switch-out, the one before it
 * ended the sleep, which then has no length. On a virtual machine, the two may be far apart, as its
 * host may take the CPU away in between.
 *
 * If sched_switch did not show the switch-out, an earlier sleep of the thread may have been hidden,
 * too, and its wakeup may be older than the present sleep. It counts only if it came at most
 * EARLY_NS before the switch-out.
 */
enum { EARLY_NS = 1000000 };

/* True if the thread was woken just before its switch-out, so that its sleep has no length. */
static __always_inline bool wake_is_early(const struct thread *t)
{
	__u64 wake = t->wake_ns, since = t->since_ns;

	if (t->status != THREAD_BLOCKED || !wake || wake >= since)
		return false;
	return t->flags & THREAD_IS_SHOWN || since - wake < EARLY_NS;
}

/*
 * At a thread's first event in the window `epoch`, stores in at_cut its sums as they were at the
 * start of the window. If the thread was off its CPU before the event, it was blocked until wake_ns
 * and runnable from then on.
 */
static __always_inline void thread_cross_cut(struct thread *t, __u32 epoch, __u64 wake_ns)
{
	__u64 at, from = thread_from(t);

	if (t->epoch == epoch)
		return;
	at = cut.start_ns[epoch & 1];
	t->at_cut = t->sums;
	if (t->status == THREAD_ON_CPU) {
		t->at_cut.on_ns += span_ns(from, at);
	} else {
		t->at_cut.blocked_ns += span_ns(from, at < wake_ns ? at : wake_ns);
		t->at_cut.runnable_ns += span_ns(wake_ns > from ? wake_ns : from, at);
	}
	t->epoch = epoch;
}

/* Does so at an event of a thread that is on its CPU. Returns the time of the event. */
static __always_inline __u64 thread_cross_now(struct thread *t, __u64 now)
{
	__u32 epoch = cut_epoch();

	now = cut_time(now, epoch);
	thread_cross_cut(t, epoch, now);
	return now;
}

/*
 * True if the program's context lies on the kernel stack of the task that was last switched to, so
 * that this task is the current one. To ask the kernel for the current task would be a call. False
 * says nothing: the kernel may have larger stacks, and a program that interrupts this function may
 * write cpu->task, too.
 */
static __always_inline bool stack_is_of_running(struct cpu *cpu, void *ctx)
{
	*(void *volatile *)&cpu->task = ctx;
	return (*(volatile __u64 *)&cpu->task & ~STACK_MASK) == cpu->stack;
}

#endif
