/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_FUNCTION_SEARCH_H
#define STACKD_DAEMON_QUERY_FUNCTION_SEARCH_H

/*
 * Looks in stacks for the functions that a filter names. Remembers what it has found in the stacks
 * that it was asked about last, as the rows of windows have the same stacks again and again. Its
 * memory is in the arena of the query that owns it; one thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "daemon/window/stack.h"
#include "proto/wire.h"

/* The place of a function that is not in the stack. */
#define FUNCTION_NOWHERE UINT32_MAX

/* What is in a stack of the functions that a filter names. */
struct function_places {
	bool has_wanted;  /* one of wire_filter.functions */
	bool has_refused; /* one of wire_filter.not_functions */
	uint32_t callee;  /* number of the innermost frame of wire_filter.callers */
};

struct function_search;

/* Makes a search for the functions of the filter, which is borrowed. NULL when out of memory. */
struct function_search *function_search_new(const struct wire_filter *filter, struct arena *arena);

/* Looks for the functions in a stack. A stack that is NULL or has no frames has none of them. */
struct function_places function_search(struct function_search *search, const struct stack *stack);

/*
 * True if the function's name matches the pattern, in which * stands for any text. The pattern need
 * not have the arguments, nor the suffix of a part or a variant that a compiler has made of the
 * function, such as ".constprop.0".
 */
bool function_name_matches(const char *pattern, const char *name);

/*
 * Returns an id of the functions of the frames from number `from` on. Stacks whose functions are
 * equal from there on have the same id. 0 for NULL.
 */
uint64_t function_callers_id(const struct stack *stack, uint32_t from);

#endif
