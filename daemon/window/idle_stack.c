/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/window/idle_stack.h"

#include <string.h>

#include "common/own_function.h"

static bool is_listed(char *const *functions, const char *name)
{
	size_t n;

	for (; name && *functions; functions++) {
		n = strlen(*functions);
		/*
		 * The name may have a suffix: compilers may rename do_poll to do_poll.constprop.0.
		 */
		if (strncmp(*functions, name, n) == 0 && (name[n] == '\0' || name[n] == '.'))
			return true;
	}
	return false;
}

/*
 * Returns the index of the first frame of a user stack that is not one of libc's helpers for
 * waiting. Counts the leaf as a helper if it has no name, because libraries are mostly installed
 * without the names of such functions.
 */
static size_t helpers_skip(const struct stack *stack)
{
	struct frame *const *frames = stack->frames;
	size_t i = 0;

	while (i + 1 < stack->n_frames && frames[0]->file_id &&
	       frames[i + 1]->file_id == frames[0]->file_id &&
	       (function_is_libc_helper(frames[i]->name) ||
		(i == 0 && function_is_nameless(frames[0]->name))))
		i++;
	return i;
}

/* True if the walk of the stack ended before the thread's first function, or may have. */
static bool is_cut(const struct stack *stack)
{
	return stack->flags & (STACK_IS_TRUNCATED | STACK_IS_FRAME_POINTERS | STACK_IS_FAULT |
			       STACK_IS_NO_TABLE | STACK_IS_NO_MAPPING | STACK_IS_NO_ROW);
}

bool idle_stack(char *const *functions, const struct stack *stack)
{
	size_t i, n = stack->process && stack->n_frames > 1 ? 1 : stack->n_frames;

	for (i = 0; i < n; i++)
		if (is_listed(functions, stack->frames[i]->name))
			return true;
	if (!stack->process || is_cut(stack))
		return false;
	i = helpers_skip(stack);
	return i > 0 && stack->n_frames - 1 - i <= IDLE_LOOP_MAX &&
	       is_listed(functions, stack->frames[i]->name);
}
