/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_GROUP_NAME_H
#define STACKD_DAEMON_QUERY_GROUP_NAME_H

/*
 * Names the group to which a wait or sample belongs if rows are grouped by thread name, cgroup,
 * module or function. No state; any thread.
 */

#include <stdbool.h>

#include "daemon/window/stack.h"

enum group_by {
	GROUP_BY_NONE,
	GROUP_BY_COMM,
	GROUP_BY_CGROUP,
	GROUP_BY_MODULE,
	GROUP_BY_FUNCTION,
};

/* group_name() looks only at this many frames of a stack, beginning with the leaf. */
enum { GROUP_FRAMES = 8 };

/* Returns the value that the word `text` stands for; GROUP_BY_NONE for NULL and for other words. */
enum group_by group_by_parse(const char *text);

/*
 * Returns the name of the module or function by which a wait or sample is grouped. Each of its two
 * stacks may be NULL. The string lives as long as the stacks.
 */
const char *group_name(enum group_by by, const struct stack *kernel, const struct stack *user,
		       bool is_sample);

#endif
