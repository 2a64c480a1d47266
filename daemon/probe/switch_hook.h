/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_SWITCH_HOOK_H
#define STACKD_DAEMON_PROBE_SWITCH_HOOK_H

/*
 * A hook is a place in the kernel at which the stacks of waits can be taken. Chooses the hook of a
 * probe that records waits: the best one of bpf/stack_hook.h that the settings and the kernel
 * allow. Stores it in probe->hook. Called on the thread that opens the probe.
 */

#include "bpf/stack_hook.h"
#include "daemon/probe/internal.h"

/*
 * Implement the members `choose` and `hook` of struct probe_ops. If switch_hook_choose() cannot
 * take the best hook, probe->reason says why.
 */
int switch_hook_choose(struct probe *probe);
const char *switch_hook_name(const struct probe *probe);

/*
 * Selects the program that probe->hook needs: `sched_exit`, `finish_switch` or neither of them.
 * Called before the programs are loaded.
 */
int switch_hook_configure(struct probe *probe, struct bpf_program *sched_exit,
			  struct bpf_program *finish_switch);

/*
 * Attaches the BPF program that probe->hook needs: `sched_exit` or `finish_switch`. Attaches none
 * for HOOK_SWITCH_OUT: with this hook, the program on sched_switch takes the stacks, and the caller
 * attaches that program.
 */
int switch_hook_attach(struct probe *probe, struct bpf_program *sched_exit,
		       struct bpf_program *finish_switch);

#endif
