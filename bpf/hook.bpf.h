/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_HOOK_BPF_H
#define STACKD_BPF_HOOK_BPF_H

/*
 * Two settings that the probes offcpu and offwake share: which program takes the stacks of ended
 * waits, and the length of the shortest wait that gets stacks. The daemon sets them before load.
 */

#include <linux/types.h>

#include "stack_hook.h"

const volatile __u32 stack_hook = HOOK_SCHED_EXIT;
const volatile __u64 min_wait_ns = 100000;

/*
 * Waits shorter than this are never recorded by chance: min_wait_ns, unless the settings ask for
 * samples of the waits below it.
 */
const volatile __u64 sample_from_ns = 0;

#endif
