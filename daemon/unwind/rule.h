/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_UNWIND_RULE_H
#define STACKD_DAEMON_UNWIND_RULE_H

/*
 * Converts the call frame information for one address to the form that BPF programs read. This form
 * says how to find the caller's registers: by a frame and, if a frame cannot express it, also by a
 * rule. No state; any thread.
 */

#include <stdbool.h>

#include "bpf/unwind_shared.h"
#include "daemon/elf/cfi.h"

/*
 * Fills the frame; is_signal: the function is said to be a signal frame. Returns true if the frame
 * alone says how to restore the caller's registers. Otherwise fills the rule, too, sets frame->kind
 * to UNWIND_RULE, and returns false. If not even a rule can say it, frame->kind is UNWIND_INVALID.
 */
bool unwind_rule_make(const struct cfi_registers *registers, bool is_signal,
		      struct unwind_frame *frame, struct unwind_rule *rule);

#endif
