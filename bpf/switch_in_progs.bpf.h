/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_SWITCH_IN_PROGS_BPF_H
#define STACKD_BPF_SWITCH_IN_PROGS_BPF_H

/*
 * The programs that run in a thread just switched to, one of which the daemon loads (enum
 * stack_hook). Included below the probe's own resume(), which they call.
 */

#include <bpf/bpf_tracing.h>

/* Since 6.18 (and a bare tracepoint): also called without a switch, then is_switch is false. */
SEC("?tp_btf/sched_exit_tp")
int BPF_PROG(on_sched_exit, bool is_switch)
{
	if (is_switch)
		resume(ctx, bpf_get_current_task_btf());
	return 0;
}

/* finish_task_switch is static and often finish_task_switch.isra.0; the daemon finds its name. */
SEC("?kprobe")
int on_finish_switch(struct pt_regs *ctx)
{
	resume(ctx, bpf_get_current_task_btf());
	return 0;
}

#endif
