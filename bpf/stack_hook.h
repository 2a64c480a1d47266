/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_STACK_HOOK_H
#define STACKD_BPF_STACK_HOOK_H

/*
 * The points at which the stacks of waits can be taken, best first. The daemon chooses one by what
 * the kernel has, and sets the programs' variable stack_hook before load.
 */

enum stack_hook {
	HOOK_SCHED_EXIT,    /* tp_btf/sched_exit_tp, 6.18: in the resumed thread, interrupts on */
	HOOK_FINISH_SWITCH, /* kprobe of finish_task_switch: in the resumed thread, before 6.18 */
	HOOK_SWITCH_OUT,    /* tp_btf/sched_switch: before the wait, when its length is not known */
	HOOK_N,
};

#endif
