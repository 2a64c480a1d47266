/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/group_name.h"

#include <string.h>

#include "common/base.h"
#include "common/own_function.h"

enum group_by group_by_parse(const char *text)
{
	static const char *const words[] = {
		[GROUP_BY_COMM] = "comm",	  [GROUP_BY_CGROUP] = "cgroup",
		[GROUP_BY_UNIT] = "unit",	  [GROUP_BY_CONTAINER] = "container",
		[GROUP_BY_USER] = "user",	  [GROUP_BY_MODULE] = "module",
		[GROUP_BY_FUNCTION] = "function", [GROUP_BY_REASON] = "reason",
		[GROUP_BY_LINE] = "line",
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
 * Returns the innermost frame of a user stack that is a function of the program itself; if there is
 * none, the innermost one outside libc, or else the leaf. NULL if the stack is NULL or has no
 * frame.
 */
static const struct frame *stack_own(const struct stack *stack)
{
	const struct frame *leaf = stack_leaf(stack, true), *best = leaf, *frame;
	enum function_origin origin, best_origin = FUNCTION_OF_LIBC;
	size_t i, n;

	if (!leaf || leaf->kind == FRAME_PSEUDO || stack->flags & STACK_IS_AMBIGUOUS)
		return leaf;
	n = stack->is_partial ? stack->n_raw : stack->n_frames;
	for (i = 0; i < n && best_origin != FUNCTION_OF_PROGRAM; i++) {
		frame = stack->frames[i];
		origin = frame->kind == FRAME_PSEUDO ? FUNCTION_OF_LIBC
						     : function_origin(frame->name, frame->module);
		if (origin > best_origin) {
			best = frame;
			best_origin = origin;
		}
	}
	return best;
}

/*
 * Returns the frame by which a wait or sample is grouped. For a sample, this is the innermost frame
 * of the kernel stack, or of the user stack if there is no kernel stack: the function that used the
 * CPU. For a wait, it is the program's own function if the user stack is known, because all
 * programs wait in the same few functions of the kernel and of libc.
 */
static const struct frame *leaf_of(const struct stack *kernel_stack, const struct stack *user_stack,
				   bool is_sample)
{
	const struct frame *kernel = stack_leaf(kernel_stack, is_sample);
	const struct frame *user = is_sample ? stack_leaf(user_stack, true) : stack_own(user_stack);

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
