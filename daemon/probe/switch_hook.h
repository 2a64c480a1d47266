/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_SWITCH_HOOK_H
#define STACKD_DAEMON_PROBE_SWITCH_HOOK_H

/*
 * Chooses the hook where the stacks of waits are taken, for the kinds of probes that have waits:
 * the best hook (bpf/stack_hook.h) that the settings and the kernel allow. Stores it in
 * probe->hook. Called on the thread that opens the probe.
 */

#include "bpf/stack_hook.h"
#include "daemon/probe/internal.h"

/* The ops `choose` and `hook` (struct probe_ops). If the chosen hook is not the best one,
 * probe->reason says why. */
int switch_hook_choose(struct probe *probe);
const char *switch_hook_name(const struct probe *probe);

/* Chooses which of the two programs is loaded: the one that probe->hook needs, or none. Runs before
 * the load. */
int switch_hook_configure(struct probe *probe, struct bpf_program *sched_exit,
			  struct bpf_program *finish_switch);

/* Attaches the program that probe->hook needs. HOOK_SWITCH_OUT needs neither: the program on
 * sched_switch, which the caller attaches, takes the stacks. */
int switch_hook_attach(struct probe *probe, struct bpf_program *sched_exit,
		       struct bpf_program *finish_switch);

#endif
