/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_REASON_TIMES_H
#define STACKD_DAEMON_QUERY_REASON_TIMES_H

/*
 * The times of some waits by reason, as a list: most groups have a few of more than a hundred
 * reasons. Lists are in an arena. One thread.
 */

#include <stdint.h>

#include "common/arena.h"
#include "common/wait_reason.h"
#include "proto/wire.h"

struct reason_time {
	enum wait_reason reason;
	uint64_t ns;
	struct reason_time *next;
};

/*
 * Adds a time to that of a reason. A new entry is taken from *spare or, if that is empty, made in
 * the arena. Returns 0 or -ENOMEM.
 */
int reason_times_add(struct reason_time **list, enum wait_reason reason, uint64_t ns,
		     struct reason_time **spare, struct arena *arena);

/* Adds all times of *from to those of *to. *from is empty then; entries left over go to *spare. */
void reason_times_move(struct reason_time **to, struct reason_time **from,
		       struct reason_time **spare);

/*
 * Lists the times in the arena, the longest first. If they are more than `whole`, as estimates may
 * be before they are brought to their exact sum, takes less of each, in proportion. Returns 0 or
 * -ENOMEM.
 */
int reason_times_wire(const struct reason_time *list, uint64_t whole, struct arena *arena,
		      struct wire_reason_times *out);

#endif
