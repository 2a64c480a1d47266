/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_SWITCH_HOOK_H
#define STACKD_DAEMON_PROBE_SWITCH_HOOK_H

/*
 * Where the stacks of waits are taken, for the probes that have waits: in comes a probe and its way
 * to try one hook, out comes the best that the kernel allows. The thread that opens the probe.
 */

#include "daemon/probe/internal.h"

/* As enum stack_hook in bpf/hook.bpf.h. */
enum probe_hook { HOOK_SCHED_EXIT, HOOK_FINISH_SWITCH, HOOK_SWITCH_OUT, HOOK_N };

const char *probe_hook_name(unsigned int hook);

/* Loads and attaches with probe->hook; undoes what it did when it fails. 0 or negative errno. */
typedef int (*probe_try_fn)(struct probe *probe);

/*
 * The best hook first, or the one that is set. 0 or negative errno; probe->reason is why the one
 * above was refused.
 */
int probe_hook_choose(struct probe *probe, probe_try_fn try_fn);

/* Attaches the program of probe->hook, where that is not the one at switch-out. */
int probe_hook_attach(struct probe *probe, struct bpf_program *sched_exit,
		      struct bpf_program *finish_switch);

/* Whether a struct of the running kernel has that member. */
bool probe_kernel_has_member(const char *type, const char *member);

#endif
