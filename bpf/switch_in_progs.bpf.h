/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_SWITCH_IN_PROGS_BPF_H
#define STACKD_BPF_SWITCH_IN_PROGS_BPF_H

/*
 * The BPF programs that run in a thread to which the CPU has just switched. Which of them the
 * daemon loads depends on the enum stack_hook.
 */

#include "kernel.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/*
 * Defines the BPF programs at switch-in, which call handler(ctx).
 *
 * sched_exit_tp exists since 6.18. It is a bare tracepoint, and also fires without a switch, with
 * is_switch false. finish_task_switch is static and often named finish_task_switch.isra.0; the
 * daemon finds its name.
 */
#define SWITCH_IN_PROGRAMS(handler)                 \
	SEC("?tp_btf/sched_exit_tp")                \
	int BPF_PROG(on_sched_exit, bool is_switch) \
	{                                           \
		if (is_switch)                      \
			handler(ctx);               \
		return 0;                           \
	}                                           \
                                                    \
	SEC("?kprobe")                              \
	int on_finish_switch(struct pt_regs *ctx)   \
	{                                           \
		handler(ctx);                       \
		return 0;                           \
	}

#endif
