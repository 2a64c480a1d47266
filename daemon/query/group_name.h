/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_GROUP_NAME_H
#define STACKD_DAEMON_QUERY_GROUP_NAME_H

/*
 * Names the group to which a wait or sample belongs if rows are grouped by thread name, cgroup, a
 * part of the cgroup, module, function or reason. No state; any thread.
 */

#include <stdbool.h>

#include "daemon/window/stack.h"

enum group_by {
	GROUP_BY_NONE,
	GROUP_BY_COMM,
	GROUP_BY_CGROUP,
	GROUP_BY_UNIT,
	GROUP_BY_CONTAINER,
	GROUP_BY_USER,
	GROUP_BY_MODULE,
	GROUP_BY_FUNCTION,
	GROUP_BY_REASON,
	/*
	 * for a line of text: all waits for one reason of those threads whose names differ in
	 * digits only, of all processes of one name; of samples, all of such threads. See struct
	 * aggregate_line
	 */
	GROUP_BY_LINE,
};

/* group_name() looks only at this many frames of a stack, beginning with the leaf. */
enum { GROUP_FRAMES = 32 };

/* Returns the value that the word `text` stands for; GROUP_BY_NONE for NULL and for other words. */
enum group_by group_by_parse(const char *text);

/* True if the groups are named after the cgroup of the process, or after a part of it. */
bool group_by_is_of_cgroup(enum group_by by);

enum { GROUP_CGROUP_NAME_MAX = 4096 };

/*
 * Writes the name of the group of processes in a cgroup if group_by_is_of_cgroup(by): the path of
 * the cgroup; the unit of systemd, the innermost *.service or *.scope; the container, as a name or
 * the first 12 digits of its id; or the user whose login session it is. `cgroup` may be NULL.
 */
void group_cgroup_name(enum group_by by, const char *cgroup,
		       char name_out[static GROUP_CGROUP_NAME_MAX]);

/*
 * Returns the name of the module or function by which a wait or sample is grouped. Each of its two
 * stacks may be NULL. The string lives as long as the stacks.
 */
const char *group_name(enum group_by by, const struct stack *kernel, const struct stack *user,
		       bool is_sample);

#endif
