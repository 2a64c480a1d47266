/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_UNWIND_RULE_H
#define STACKD_DAEMON_UNWIND_RULE_H

/*
 * Converts the call frame information for one address to the form that BPF programs read. It says
 * how to find the caller's registers: by a frame and, if a frame cannot express it, a rule. No
 * state; any thread.
 */

#include <stdbool.h>

#include "bpf/unwind_shared.h"
#include "daemon/elf/cfi.h"

/*
 * Fills the frame. Returns true if the frame alone says how to restore the caller's registers.
 * Otherwise returns false and fills the rule, too. frame->kind is then UNWIND_RULE, or
 * UNWIND_INVALID if not even a rule can say it.
 */
bool unwind_rule_make(const struct cfi_registers *registers, bool is_signal,
		      struct unwind_frame *frame, struct unwind_rule *rule);

#endif
