/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_WAIT_STACKS_BPF_H
#define STACKD_BPF_WAIT_STACKS_BPF_H

/*
 * Takes the stacks of a wait that has just ended or is about to begin, by means of the stack
 * caches.
 */

#include "hook.bpf.h"
#include "kstack_cache.bpf.h"
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

#endif
