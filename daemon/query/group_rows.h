/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_GROUP_ROWS_H
#define STACKD_DAEMON_QUERY_GROUP_ROWS_H

/*
 * Groups rows of an answer that have a name in common: by thread name, cgroup, module or function.
 * Takes rows whose frames have names, returns fewer rows, each with a key and sums. Memory is the
 * arena's. No state; any thread.
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

/* Returns GROUP_BY_NONE for NULL and for any other word. */
enum group_by group_by_parse(const char *text);

/*
 * Sets *out to one row for each key, in order of the keys; idle rows and sums of short waits get
 * rows of their own. The process of a row is any one of those that it stands for. 0 or -ENOMEM.
 */
int group_rows(struct arena *arena, enum group_by by, const struct wire_rows *rows,
	       struct wire_rows *out);

#endif
