/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_WAIT_STACKS_BPF_H
#define STACKD_BPF_WAIT_STACKS_BPF_H

/*
 * The stacks of a wait that has ended, or begins: in goes the task at hand, out come their ids.
 * Included after maps.bpf.h and hook.bpf.h.
 */

#include "kstack_cache.bpf.h"
#include "ustack_cache.bpf.h"

/*
 * At a tracepoint the first two frames are the program and what called it; of a kprobe the context
 * has the function's own address.
 */
static __always_inline __u32 chain_first(void)
{
	return stack_hook == HOOK_FINISH_SWITCH ? 0 : 2;
}

static __always_inline long chain_walk(void *ctx, struct scratch *s, __u64 first_ip)
{
	return bpf_get_stack(ctx, s->ip, 8 * STACK_DEPTH, 0);
}

/* Of the task that runs now, kernel and user; walker is whose room the walk takes. */
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
	*kstack = kernel_stack(ctx, cpu, task, top, hint, 0);
	if (!w)
		return;
	user.leader_boot_ns = task->group_leader->start_boottime;
	user.tgid = task->tgid;
	user.exec_gen = (__u32)task->self_exec_id;
	*ustack = user_stack(cpu, w, hint, &user);
}

#endif
