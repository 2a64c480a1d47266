/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_STACK_HOOK_H
#define STACKD_BPF_STACK_HOOK_H

/*
 * Where the stacks of waits can be taken, best first. The daemon chooses by what the kernel has and
 * sets the programs' variable of the same name before load. Numbers only: for the programs and for
 * the daemon.
 */

enum stack_hook {
	HOOK_SCHED_EXIT,    /* tp_btf/sched_exit_tp, 6.18: in the resumed thread, interrupts on */
	HOOK_FINISH_SWITCH, /* kprobe of finish_task_switch: the same place on older kernels */
	HOOK_SWITCH_OUT,    /* tp_btf/sched_switch: before it is known how long the wait will be */
	HOOK_N,
};

#endif
