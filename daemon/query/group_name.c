/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/group_name.h"

#include <string.h>

#include "common/base.h"

enum group_by group_by_parse(const char *text)
{
	static const char *const words[] = {
		[GROUP_BY_COMM] = "comm",
		[GROUP_BY_CGROUP] = "cgroup",
		[GROUP_BY_MODULE] = "module",
		[GROUP_BY_FUNCTION] = "function",
	};
	size_t i;

	for (i = GROUP_BY_COMM; text && i < ARRAY_SIZE(words); i++)
		if (strcmp(text, words[i]) == 0)
			return (enum group_by)i;
	return GROUP_BY_NONE;
}

/*
 * True for a function of the scheduler. Such functions are the innermost ones of every wait in the
 * kernel, so grouping by them would say nothing.
 */
static bool frame_is_scheduler(const struct frame *frame)
{
	static const char *const names[] = { "__schedule", "schedule", "io_schedule",
					     "preempt_schedule" };
	size_t i;

	for (i = 0; frame->name && i < ARRAY_SIZE(names); i++)
		if (strncmp(frame->name, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/*
 * Returns the innermost frame of a stack; for a wait, the innermost one outside the scheduler. NULL
 * if the stack is NULL or has no frame.
 */
static const struct frame *stack_leaf(const struct stack *stack, bool is_sample)
{
	static const struct frame ambiguous = {
		.kind = FRAME_PSEUDO,
		.name = (char *)"[two stacks with one id]",
	};
	size_t i = 0, n;

	if (!stack)
		return NULL;
	if (stack->flags & STACK_IS_AMBIGUOUS)
		return &ambiguous;
	/* A stack that was loaded for a query may have only its first frames, see store_query. */
	n = stack->is_partial ? stack->n_raw : stack->n_frames;
	if (!n || !stack->frames)
		return NULL;
	while (!is_sample && i + 1 < n && frame_is_scheduler(stack->frames[i]))
		i++;
	return stack->frames[i];
}

/*
 * Returns the frame by which a wait or sample is grouped. For a sample, this is the innermost frame
 * of the kernel stack, or of the user stack if there is no kernel stack. For a wait, it is the
 * innermost user frame if that is known, because in the kernel all programs wait in the same few
 * functions.
 */
static const struct frame *leaf_of(const struct stack *kernel_stack, const struct stack *user_stack,
				   bool is_sample)
{
	const struct frame *kernel = stack_leaf(kernel_stack, is_sample);
	const struct frame *user = stack_leaf(user_stack, true);

	if (!is_sample)
		return user && user->kind != FRAME_PSEUDO ? user : kernel ? kernel : user;
	return kernel ? kernel : user;
}

const char *group_name(enum group_by by, const struct stack *kernel, const struct stack *user,
		       bool is_sample)
{
	const struct frame *leaf = leaf_of(kernel, user, is_sample);
	const char *name;

	if (!leaf)
		return "[no stack]";
	/*
	 * The name of a pseudo frame says why there is no real frame. A frame of the kernel that is
	 * in no module is grouped under "[kernel]".
	 */
	if (by == GROUP_BY_FUNCTION || leaf->kind == FRAME_PSEUDO)
		name = leaf->name;
	else if (leaf->module)
		name = leaf->module;
	else
		name = leaf->kind == FRAME_KERNEL ? "[kernel]" : NULL;
	if (!name && leaf->module)
		name = leaf->module;
	return name ? name : "[unknown]";
}
