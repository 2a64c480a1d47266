/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_GROUP_ROWS_H
#define STACKD_DAEMON_QUERY_GROUP_ROWS_H

/*
 * Rows of an answer by what many of them have in common: rows with names in, fewer rows out, each
 * with a key and the sums. Everything is the arena's. Any thread.
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

/* GROUP_BY_NONE for any other word. */
enum group_by group_by_parse(const char *text);

/*
 * rows become *out: one for each key, idle and short waits on their own, by
 * key. Their process is one of those they stand for. 0 or -ENOMEM.
 */
int group_rows(struct arena *arena, enum group_by by, const struct wire_rows *rows,
	       struct wire_rows *out);

#endif
