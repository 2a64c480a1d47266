/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_FLOOD_H
#define STACKD_DAEMON_QUERY_FLOOD_H

/*
 * Finds out whose programs fill a window: the tables in which a probe counts are shared by all
 * users, so that one who starts very many threads costs the others some of their waits. No state;
 * any thread.
 */

#include "common/arena.h"
#include "daemon/window/window.h"

struct flood {
	const char *cgroup;   /* in the arena; NULL: no control group has half of the rows */
	unsigned int percent; /* its share of the window's rows */
};

/*
 * Finds the control group that has at least half of a window's rows. The groups below
 * /user.slice/user-UID.slice count as one. A folded row counts once for each process that it stands
 * for. Returns 0 or -ENOMEM.
 */
int flood_find(const struct window *window, struct arena *arena, struct flood *out);

#endif
