/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_WAIT_STACKS_BPF_H
#define STACKD_BPF_WAIT_STACKS_BPF_H

/*
 * Takes the stacks of a wait that has just ended or is about to begin, by means of the stack
 * caches.
 */

#include "hook.bpf.h"
#include "kstack_cache.bpf.h"
#include "run_time.bpf.h"
#include "sample.h"
#include "ustack_cache.bpf.h"

/*
 * Returns the id of the current task's kernel stack. At a tracepoint the first two frames are the
 * program and its caller, which lie below the context. At a kprobe the first frame is the probed
 * function, whose address is in the context.
 */
static __always_inline __u64 kernel_stack(void *ctx, struct cpu *cpu, struct task_struct *task,
					  void *top, __u64 hint)
{
	__u32 first = stack_hook == HOOK_FINISH_SWITCH ? 0 : 2;
	struct kstack_lookup look;
	__u64 id = kstack_find(&look, ctx, top, hint, first, 0);

	if (id)
		return id;
	if (!look.frames)
		return STACK_NONE;
	return kstack_learn(&look, cpu, task,
			    bpf_get_stack(ctx, look.frames->ip, 8 * STACK_DEPTH, 0));
}

/*
 * Takes the kernel and the user stack of the current task. `walker` is the enum unwind_walker of
 * the calling program.
 */
static __always_inline void stacks_take(void *ctx, struct cpu *cpu, struct task_struct *task,
					__u32 walker, __u64 *kstack, __u64 *ustack)
{
	void *top = (void *)bpf_task_pt_regs(task);
	__u64 hint = task->start_boottime ^ (__u32)task->pid;
	struct unwind_walk *w = NULL;
	struct stack_owner user;

	if (!(task->flags & PF_KTHREAD))
		w = unwind_begin(task, walker);
	if (w)
		hint = hash_mix(hash_mix(hint, w->pc), w->sp);
	hint = hash_mix(hint, 0) >> 32;
	*kstack = kernel_stack(ctx, cpu, task, top, hint);
	if (!w)
		return;
	user.leader_boot_ns = task->group_leader->start_boottime;
	user.tgid = task->tgid;
	user.exec_gen = (__u32)task->self_exec_id;
	*ustack = user_stack(cpu, w, hint, &user);
}

/*
 * Takes the stacks of the current thread, which is about to wait, with the odds that sample.h gives
 * for the average of its last waits. *random is the state of sample_random(). Returns the odds. If
 * the stacks are not taken, the ids say so. Changes *now to the time after that, so that the wait
 * begins then: it would otherwise be longer only because it is recorded.
 */
static __always_inline __u32 stacks_take_early(void *ctx, struct cpu *cpu, struct task_struct *task,
					       __u32 average_ns, struct run *run, __u64 *random,
					       __u64 *now, __u64 *kstack, __u64 *ustack)
{
	__u32 odds = sample_odds(average_ns, cut.sample_below_ns[cut.epoch & 1]);
	__u64 begin_ns;

	*kstack = *ustack = STACK_NO_HOOK;
	if (odds && !*random)
		*random = (__u64)bpf_get_prandom_u32() << 1 | 1;
	if (odds && !sample_has_luck(sample_random(random), odds))
		return odds;
	*kstack = *ustack = STACK_NONE;
	begin_ns = bpf_ktime_get_ns();
	stacks_take(ctx, cpu, task, UNWIND_AT_SWITCH, kstack, ustack);
	run_walked(run, begin_ns);
	*now = bpf_ktime_get_ns();
	return odds;
}

/*
 * Takes the kernel stack of a thread that has waited for longer than its last waits let expect, and
 * to which the CPU is about to switch. The thread's user stack cannot be read yet.
 */
static __noinline int kernel_stack_take_late(struct cpu *cpu, struct task_struct *task,
					     __u64 *kstack, __u64 *ustack)
{
	struct scratch *s = scratch_get(SCRATCH_SWITCH);
	struct stack_owner kernel = {};

	*ustack = task->flags & PF_KTHREAD ? STACK_NONE : STACK_NO_HOOK;
	*kstack = STACK_NO_HOOK;
	if (s)
		*kstack = stack_take(cpu, s, bpf_get_task_stack(task, s->ip, 8 * STACK_DEPTH, 0),
				     &kernel);
	return 0;
}

#endif
