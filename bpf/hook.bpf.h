/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_HOOK_BPF_H
#define STACKD_BPF_HOOK_BPF_H

/*
 * Where the stacks of ended waits are taken, and of which: what the probes of waits share. Set by
 * the daemon before load.
 */

#include <linux/types.h>

/* Where stacks are taken, best first; chosen at load by what the kernel has. */
enum stack_hook {
	HOOK_SCHED_EXIT,    /* tp_btf/sched_exit_tp, 6.18: in the resumed thread, interrupts on */
	HOOK_FINISH_SWITCH, /* kprobe of finish_task_switch: the same place on older kernels */
	HOOK_SWITCH_OUT,    /* tp_btf/sched_switch: before it is known how long the wait will be */
};

const volatile __u32 stack_hook = HOOK_SCHED_EXIT;
const volatile __u64 min_wait_ns = 100000;

#endif
