/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/function_search.h"

#include <string.h>

#include "common/base.h"
#include "daemon/probe/target.h"
#include "daemon/window/stack_id.h"

/* The number of stacks whose places are remembered, a power of two. */
enum { MEMORY = 4096 };

/* A longer name matches only as a whole. */
enum { NAME_BYTES = 1024 };

struct place {
	uint64_t id; /* stack->id; 0: the slot is free */
	struct function_places places;
};

struct function_search {
	const struct wire_filter *filter;
	struct place *memory;
};

struct function_search *function_search_new(const struct wire_filter *filter, struct arena *arena)
{
	struct function_search *search = arena_alloc(arena, sizeof(*search));
	struct place *memory = arena_array(arena, MEMORY, sizeof(*memory));

	if (!search || !memory)
		return NULL;
	*search = (struct function_search){ .filter = filter, .memory = memory };
	memset(memory, 0, MEMORY * sizeof(*memory));
	return search;
}

/*
 * Returns the length of the name without its arguments. A name that begins with a parenthesis, such
 * as "(anonymous namespace)::run(int)", and the call operator keep their first pair.
 */
static size_t length_without_arguments(const char *name)
{
	static const char call[] = "operator()";
	const char *from = name, *end;

	if (*from == '(')
		from = strchr(from, ')');
	end = from ? strchr(from, '(') : NULL;
	if (end && end - name >= 8 && strncmp(end - 8, call, strlen(call)) == 0)
		end = strchr(end + 2, '(');
	return end ? (size_t)(end - name) : strlen(name);
}

/* Returns the length of the name without the suffixes that compilers add. */
static size_t length_without_suffixes(const char *name)
{
	static const char *const suffixes[] = { ".constprop.", ".isra.", ".part.", ".cold",
						".llvm." };
	size_t n = strlen(name), i;
	const char *at;

	for (i = 0; i < ARRAY_SIZE(suffixes); i++) {
		at = strstr(name, suffixes[i]);
		if (at && at > name && (size_t)(at - name) < n)
			n = (size_t)(at - name);
	}
	return n;
}

static bool head_matches(const char *pattern, const char *name, size_t n)
{
	char head[NAME_BYTES];

	if (n == 0 || n >= sizeof(head) || !name[n])
		return false;
	memcpy(head, name, n);
	head[n] = '\0';
	return target_glob(pattern, head);
}

bool function_name_matches(const char *pattern, const char *name)
{
	return target_glob(pattern, name) ||
	       head_matches(pattern, name, length_without_arguments(name)) ||
	       head_matches(pattern, name, length_without_suffixes(name));
}

static bool names_have(const struct wire_strs *patterns, const char *name)
{
	size_t i;

	for (i = 0; i < patterns->n; i++)
		if (function_name_matches(patterns->v[i], name))
			return true;
	return false;
}

static struct function_places places_find(const struct wire_filter *filter,
					  const struct stack *stack)
{
	struct function_places places = { .callee = FUNCTION_NOWHERE };
	size_t i;

	for (i = 0; i < stack->n_frames; i++) {
		const struct frame *frame = stack->frames[i];

		if (!frame->name || frame->kind == FRAME_PSEUDO)
			continue;
		places.has_wanted |= names_have(&filter->functions, frame->name);
		places.has_refused |= names_have(&filter->not_functions, frame->name);
		if (places.callee == FUNCTION_NOWHERE && names_have(&filter->callers, frame->name))
			places.callee = (uint32_t)i;
	}
	return places;
}

struct function_places function_search(struct function_search *search, const struct stack *stack)
{
	struct place *place;

	if (!stack || !stack->is_resolved || !stack->frames || stack->flags & STACK_IS_AMBIGUOUS)
		return (struct function_places){ .callee = FUNCTION_NOWHERE };
	place = &search->memory[(stack->id ^ stack->id >> 32) % MEMORY];
	if (place->id != stack->id || !stack->id)
		*place = (struct place){ stack->id, places_find(search->filter, stack) };
	return place->places;
}

uint64_t function_callers_id(const struct stack *stack, uint32_t from)
{
	if (!stack)
		return 0;
	if (stack->flags & STACK_IS_AMBIGUOUS || !stack->is_resolved || from >= stack->n_frames)
		return stack_functions(stack);
	return stack_functions_id_of(stack->frames + from, stack->n_frames - from);
}
