/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_GROUP_NAME_H
#define STACKD_DAEMON_QUERY_GROUP_NAME_H

/*
 * Names the group of a wait or sample where rows are by thread name, cgroup, module or function. No
 * state; any thread.
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

/* The number of frames, from the leaf on, by which a stack is named. */
enum { GROUP_FRAMES = 8 };

/* Returns the value that the word `text` stands for; GROUP_BY_NONE for NULL and for other words. */
enum group_by group_by_parse(const char *text);

/*
 * Returns the module or function by which a wait or sample with these stacks is grouped, each of
 * which may be NULL. The string lives as long as the stacks.
 */
const char *group_name(enum group_by by, const struct stack *kernel, const struct stack *user,
		       bool is_sample);

#endif
