/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_SWITCH_HOOK_H
#define STACKD_DAEMON_PROBE_SWITCH_HOOK_H

/*
 * Chooses where the stacks of waits are taken, for the kinds of probes that have waits: the best
 * place (bpf/stack_hook.h) that the settings want and the kernel allows. probe->hook holds it. The
 * thread that opens the probe.
 */

#include "bpf/stack_hook.h"
#include "daemon/probe/internal.h"

/* The ops `choose` and `hook`. After a success probe->reason says why no better hook was taken. */
int switch_hook_choose(struct probe *probe);
const char *switch_hook_name(const struct probe *probe);

/* Before load: loads that of the two programs which the hook needs, and not the other. */
int switch_hook_configure(struct probe *probe, struct bpf_program *sched_exit,
			  struct bpf_program *finish_switch);

/* Attaches the program of the hook. At switch-out it is the one on sched_switch: then none here. */
int switch_hook_attach(struct probe *probe, struct bpf_program *sched_exit,
		       struct bpf_program *finish_switch);

#endif
