/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_GROUP_ROWS_H
#define STACKD_DAEMON_QUERY_GROUP_ROWS_H

/*
 * Groups rows of an answer by thread name, cgroup, module or function. Takes rows whose frames have
 * names; returns one row for each group, with the group's key and sums. The memory is that of the
 * arena. No state; any thread.
 */

#include <stdbool.h>
#include <stddef.h>

#include "common/arena.h"
#include "proto/wire.h"

enum group_by {
	GROUP_BY_NONE,
	GROUP_BY_COMM,
	GROUP_BY_CGROUP,
	GROUP_BY_MODULE,
	GROUP_BY_FUNCTION,
};

/* Returns the value that the word `text` stands for; GROUP_BY_NONE for NULL and for other words. */
enum group_by group_by_parse(const char *text);

/*
 * Sets *out to one row for each key, sorted by key. Idle rows and rows of short waits are grouped
 * apart from the others. The process of a new row is that of any row in the group. Returns 0 or
 * -ENOMEM.
 */
int group_rows(struct arena *arena, enum group_by by, const struct wire_rows *rows,
	       struct wire_rows *out);

#endif
