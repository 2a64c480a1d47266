/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_UNWIND_RULE_H
#define STACKD_DAEMON_UNWIND_RULE_H

/*
 * Converts the rules for the caller's registers at one address, as call frame information has them,
 * to the form that the walk in the kernel reads: a frame, with a rule if need be. No state, any
 * thread.
 */

#include <stdbool.h>

#include "bpf/unwind_shared.h"
#include "daemon/elf/cfi.h"

/*
 * Fills the frame. Returns true if the frame says it all. Returns false if it needs a rule, which
 * is filled, too; frame->kind is then UNWIND_RULE, or UNWIND_INVALID if no rule can express it.
 */
bool unwind_rule_make(const struct cfi_registers *registers, bool is_signal,
		      struct unwind_frame *frame, struct unwind_rule *rule);

#endif
