/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_UNSEEN_H
#define STACKD_DAEMON_QUERY_UNSEEN_H

/*
 * Who was asked for and is not in the answer, in words: in go a merge, its filter and what was
 * recorded, out come a note or an error. Any thread.
 */

#include "common/arena.h"
#include "daemon/base/probe_kind.h"
#include "daemon/query/aggregate.h"
#include "proto/wire.h"

/*
 * Ids of the filter that no window had, while others were there. The note is the arena's, NULL
 * where there is nothing to say. is_live: what is recorded is of this host, now. 0 or -ENOMEM.
 */
int unseen_note(struct arena *arena, const struct aggregate *aggregate,
		const struct wire_filter *filter, enum probe_kind kind, bool is_live,
		const char **out);

/* Nobody of the filter was seen. Returns -ENODATA, or -ENOMEM. */
int unseen_error(const struct aggregate *aggregate, const struct wire_filter *filter,
		 enum probe_kind kind, bool is_live, struct wire_error *error);

enum { MOMENT_TEXT = 64 };

/* A time since the epoch for a message: 14:00:00 UTC, with its date where it is not today's. */
void moment_text(int64_t real_ns, int64_t now, char text[static MOMENT_TEXT]);

#endif
