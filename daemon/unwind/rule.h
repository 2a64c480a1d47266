/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_UNWIND_RULE_H
#define STACKD_DAEMON_UNWIND_RULE_H

/*
 * One place's registers as the walk in the kernel wants them: in goes what the call frame
 * information says, out comes a frame that says it all, or a rule. No state, any thread.
 */

#include <stdbool.h>

#include "bpf/unwind_shared.h"
#include "daemon/elf/cfi.h"

/*
 * Fills the frame; true when that is all. False when it takes a rule, which is then
 * filled: the frame's kind is UNWIND_RULE, or UNWIND_INVALID when no rule can say it.
 */
bool unwind_rule_make(const struct cfi_registers *place, bool is_signal, struct unwind_frame *frame,
		      struct unwind_rule *rule);

#endif
