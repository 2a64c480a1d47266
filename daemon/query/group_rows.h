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

enum query_group {
	QUERY_GROUP_NONE,
	QUERY_GROUP_COMM,
	QUERY_GROUP_CGROUP,
	QUERY_GROUP_MODULE,
	QUERY_GROUP_FUNCTION,
};

/* QUERY_GROUP_NONE for any other word. */
enum query_group query_group_parse(const char *text);

/*
 * rows become *out: one for each key, idle and short waits on their own, by
 * key. Their process is one of those they stand for. 0 or -ENOMEM.
 */
int query_group_rows(struct arena *arena, enum query_group by, const struct wire_rows *rows,
		     struct wire_rows *out);

#endif
