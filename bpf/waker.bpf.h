/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_WAKER_BPF_H
#define STACKD_BPF_WAKER_BPF_H

/*
 * Finds who is to blame for a sleep of CULPRIT_MIN_NS or longer: the thread that ended it, as it
 * let go of a lock, wrote to a pipe, or ended as a child. If that one slept for most of the time
 * itself, for a lock, a pipe or a child, the one to blame for that is to blame, and so on: locks
 * are often handed from one waiting thread to the next. Nobody is to blame if no single one took
 * more than half of the time, as in a long queue, or if the one that ended it slept for most of the
 * time for anything else, such as the next message: who sent one may have nothing to do with what
 * follows. Nobody ends a sleep by a signal, an interrupt, a softirq or a timer.
 */

#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "thread.bpf.h"

/* "ksoftirq": how the names of the threads begin that run softirqs on their own stack. */
#define KSOFTIRQ 0x71726974666f736bULL

/* System calls, from arch/x86/entry/syscalls/syscall_64.tbl. */
enum {
	NR_READ = 0,
	NR_WRITE = 1,
	NR_POLL = 7,
	NR_SELECT = 23,
	NR_WAIT4 = 61,
	NR_SEMOP = 65,
	NR_FCNTL = 72,
	NR_FLOCK = 73,
	NR_RT_SIGTIMEDWAIT = 128,
	NR_FUTEX = 202,
	NR_SEMTIMEDOP = 220,
	NR_EPOLL_WAIT = 232,
	NR_WAITID = 247,
	NR_PSELECT6 = 270,
	NR_PPOLL = 271,
	NR_EPOLL_PWAIT = 281,
	NR_IO_URING_ENTER = 426,
	NR_EPOLL_PWAIT2 = 441,
	NR_FUTEX_WAITV = 449,
};

/* From include/uapi/linux/futex.h; 2 is the value of a mutex of glibc, musl or Rust with waiters.
 */
enum { FUTEX_OP = 0x7f, FUTEX_OP_WAIT = 0, FUTEX_OP_WAIT_BITSET = 9, FUTEX_CONTENDED = 2 };
enum { FUTEX_OP_LOCK_PI = 6, FUTEX_OP_LOCK_PI2 = 13 };

/*
 * True if the program runs as part of what the current task does in the kernel; false if an
 * interrupt brought the CPU here, or that is not known. Interrupts and softirqs have a stack of
 * their own (call_on_irqstack_cond() in arch/x86/include/asm/irq_stack.h). Only those that
 * interrupt user space use the task's; the entry code has then set orig_ax of the task's registers
 * to -1 (arch/x86/include/asm/idtentry.h). The CPU's preempt_count would say it, too, but libbpf
 * finds a kernel's variable that may be missing, as this one on 6.2 to 6.14, only with
 * CAP_SYS_ADMIN.
 */
static __always_inline bool is_of_task(struct cpu *cpu, void *ctx, struct task_struct *task)
{
	struct pt_regs___kernel *regs;

	if (!stack_is_of_running(cpu, ctx))
		return false;
	if (task->flags & PF_KTHREAD) {
		__u64 name;

		bpf_probe_read_kernel(&name, sizeof(name), task->comm);
		return name != KSOFTIRQ;
	}
	/* A task that is killed while it computes ends where an interrupt brought it. */
	if (task->flags & PF_EXITING)
		return true;
	regs = (struct pt_regs___kernel *)bpf_task_pt_regs(task);
	return regs->orig_ax != -1UL;
}

/*
 * True if a sleeping task waits for others in a system call that a timer may end, too: such a sleep
 * is no work of its own, whatever ends it.
 */
static __always_inline bool is_for_others(struct task_struct *task)
{
	struct pt_regs___kernel *regs = (struct pt_regs___kernel *)bpf_task_pt_regs(task);

	if (task->flags & PF_KTHREAD)
		return false;
	switch (regs->orig_ax) {
	case NR_POLL:
	case NR_SELECT:
	case NR_RT_SIGTIMEDWAIT:
	case NR_FUTEX:
	case NR_SEMTIMEDOP:
	case NR_EPOLL_WAIT:
	case NR_PSELECT6:
	case NR_PPOLL:
	case NR_EPOLL_PWAIT:
	case NR_IO_URING_ENTER:
	case NR_EPOLL_PWAIT2:
	case NR_FUTEX_WAITV:
		return true;
	}
	return false;
}

/*
 * True if who ends the sleep of a task is to blame for what the task did not do meanwhile: it is
 * for a lock, a pipe or a child.
 */
static __always_inline bool is_passed_on(struct task_struct *task, __u32 wait_state)
{
	struct pt_regs___kernel *regs = (struct pt_regs___kernel *)bpf_task_pt_regs(task);
	__u32 op;

	if (wait_state & TASK_UNINTERRUPTIBLE)
		return true;
	if (task->flags & PF_KTHREAD)
		return false;
	switch (regs->orig_ax) {
	case NR_READ:
	case NR_WRITE:
	case NR_WAIT4:
	case NR_SEMOP:
	case NR_FCNTL:
	case NR_FLOCK:
	case NR_SEMTIMEDOP:
	case NR_WAITID:
		return true;
	case NR_FUTEX:
		op = regs->si & FUTEX_OP;
		if (op == FUTEX_OP_LOCK_PI || op == FUTEX_OP_LOCK_PI2)
			return true;
		return (op == FUTEX_OP_WAIT || op == FUTEX_OP_WAIT_BITSET) &&
		       (__u32)regs->dx == FUTEX_CONTENDED;
	}
	return false;
}

/* True if a signal is about to end the sleep of a task. */
static __always_inline bool has_signal(struct task_struct *task)
{
	unsigned long sent = task->pending.signal.sig[0] |
			     BPF_CORE_READ(task, signal, shared_pending.signal.sig[0]);

	return sent & ~task->blocked.sig[0];
}

static __always_inline void blame_self(struct sleep *s, __u64 ns)
{
	__u64 id = bpf_get_current_pid_tgid();

	s->acted_ns = s->wake_ns;
	s->blamed_ns = ns;
	s->tgid = id >> 32;
	s->tid = (__u32)id;
	bpf_get_current_comm(s->comm, sizeof(s->comm));
}

static __always_inline void blame_other(struct sleep *s, const struct sleep *of, __u64 ns)
{
	s->acted_ns = of->acted_ns;
	s->blamed_ns = ns;
	s->tgid = of->tgid;
	s->tid = of->tid;
	__builtin_memcpy(s->comm, of->comm, sizeof(s->comm));
}

/*
 * Decides who is to blame for a sleep of the thread `tid` that the current thread ends: who is to
 * blame for the row of sleeps of the current thread, or this thread itself, if that one took more
 * than half of the time; else nobody.
 */
static __always_inline void blame_find(struct cpu *cpu, struct task_struct *current, __u32 tid,
				       struct sleep *s)
{
	const struct thread *self = thread_find(cpu, (__u64)current);
	__u64 whole_ns = s->wake_ns - s->since_ns, from, ns;
	const struct waker *own;
	const struct sleep *row;
	__u32 slot;

	/* It is not known whether a thread slept that the filter leaves out. */
	if (!self)
		return;
	slot = self->slot;
	own = bpf_map_lookup_elem(&wakers, &slot);
	if (!own || own->uid != self->uid || own->row.wake_ns <= s->since_ns) {
		blame_self(s, whole_ns);
		return;
	}
	row = &own->row;
	from = row->since_ns > s->since_ns ? row->since_ns : s->since_ns;
	ns = row->acted_ns > from ? row->acted_ns - from : 0;
	if (ns > row->blamed_ns)
		ns = row->blamed_ns;
	if (row->tid && ns > whole_ns / 2) {
		if (row->tid != tid)
			blame_other(s, row, ns);
		return;
	}
	ns = whole_ns - (row->wake_ns - from);
	if (ns > whole_ns / 2)
		blame_self(s, ns);
}

/* Adds a sleep to the row of its thread, or begins another row. */
static __always_inline void row_add(struct sleep *row, const struct sleep *s, bool is_passed)
{
	if (s->since_ns - row->wake_ns >= s->wake_ns - s->since_ns) {
		*row = *s;
		if (!is_passed)
			row->tid = 0;
		return;
	}
	row->wake_ns = s->wake_ns;
	if (!is_passed || !s->tid)
		return;
	if (row->tid == s->tid) {
		row->blamed_ns += s->blamed_ns;
		row->acted_ns = s->acted_ns;
	} else if (!row->tid || s->blamed_ns > row->blamed_ns) {
		blame_other(row, s, s->blamed_ns);
	}
}

/* Notes who is to blame for the sleep of a thread that is woken now. Runs in the waker. */
static __noinline int waker_note(struct cpu *cpu, void *ctx, struct task_struct *task,
				 const struct thread *t)
{
	struct sleep s = { .since_ns = t->since_ns, .wake_ns = t->wake_ns };
	struct task_struct *current = bpf_get_current_task_btf();
	__u32 slot = t->slot, wait_state = t->wait_state;
	__u64 uid = t->uid;
	bool is_of_thread;
	struct waker *waker;

	is_of_thread = is_of_task(cpu, ctx, current) && !has_signal(task);
	if (!is_of_thread && !is_for_others(task))
		return 0;
	waker = bpf_map_lookup_elem(&wakers, &slot);
	if (!waker)
		return 0;
	if (waker->uid != uid) {
		__builtin_memset(waker, 0, sizeof(*waker));
		waker->uid = uid;
	}
	if (is_of_thread)
		blame_find(cpu, current, t->tid, &s);
	waker->last = s;
	row_add(&waker->row, &s, is_of_thread && is_passed_on(task, wait_state));
	return 0;
}

/* Sets w->culprits.held_up_by, if somebody is to blame for the sleep of the wait. */
static __noinline int waker_set(struct pending_wait *w, __u32 slot)
{
	const struct waker *waker = bpf_map_lookup_elem(&wakers, &slot);
	struct culprit *by = &w->culprits.held_up_by;

	if (!waker || waker->last.wake_ns != w->wake_ns || !waker->last.tid)
		return 0;
	by->ns = waker->last.blamed_ns;
	by->tgid = waker->last.tgid;
	by->tid = waker->last.tid;
	__builtin_memcpy(by->comm, waker->last.comm, sizeof(by->comm));
	return 0;
}

#endif
