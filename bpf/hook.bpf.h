/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_HOOK_BPF_H
#define STACKD_BPF_HOOK_BPF_H

/*
 * The settings that offcpu and offwake share: by which program they take the stacks of ended waits,
 * and from which length of a wait on. The daemon sets them before load.
 */

#include <linux/types.h>

#include "stack_hook.h"

const volatile __u32 stack_hook = HOOK_SCHED_EXIT;
const volatile __u64 min_wait_ns = 100000;

#endif
