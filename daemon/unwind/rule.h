/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_UNWIND_RULE_H
#define STACKD_DAEMON_UNWIND_RULE_H

/*
 * Converts call frame information for one address to the form that the walk in the kernel reads. It
 * says how to find the caller's registers: by a frame and, if the frame is not enough, a rule.
 * No state; any thread.
 */

#include <stdbool.h>

#include "bpf/unwind_shared.h"
#include "daemon/elf/cfi.h"

/*
 * Fills the frame. Returns true if the frame alone restores the registers. Otherwise returns false
 * and fills the rule, too; frame->kind is then UNWIND_RULE, or UNWIND_INVALID if no rule can
 * express how to restore the registers.
 */
bool unwind_rule_make(const struct cfi_registers *registers, bool is_signal,
		      struct unwind_frame *frame, struct unwind_rule *rule);

#endif
