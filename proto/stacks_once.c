/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proto/stacks_once.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/base.h"
#include "common/hash_table.h"
#include "proto/record.h"

/*
 * SENT_PLACES: the number of stacks that the answering side remembers at most, a power of two. Each
 * id has one place; a stack whose place another one took is sent whole once more.
 */
enum { SENT_PLACES = 1 << 14 };

struct stacks_sent {
	struct {
		uint64_t id;
		uint64_t frames; /* hash of the frames and flags that were sent */
	} places[SENT_PLACES];
};

struct kept_stack {
	uint64_t id;
	uint64_t frames; /* hash of its frames and flags */
	const struct wire_stack *stack;
	UT_hash_handle hh;
};

struct stacks_kept {
	struct arena *arena; /* has the stacks and the entries of the table */
	struct kept_stack *stacks;
};

/* Returns the id of a stack; 0 stands for no stack, whose one frame says why there is none. */
static uint64_t id_of(const struct wire_stack *stack)
{
	return stack && stack->id ? strtoull(stack->id, NULL, 16) : 0;
}

static uint64_t mix(uint64_t hash, int64_t number)
{
	hash = (hash ^ (uint64_t)number) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 32;
}

static uint64_t mix_string(uint64_t hash, const char *string)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a, 64 bits */

	if (!string)
		return mix(hash, -1);
	for (; *string; string++)
		h = (h ^ (unsigned char)*string) * UINT64_C(0x100000001b3);
	return mix(hash, (int64_t)h);
}

static uint64_t mix_frame(uint64_t hash, const struct wire_frame *frame)
{
	hash = mix_string(hash, frame->kind);
	hash = mix_string(hash, frame->name);
	hash = mix_string(hash, frame->module);
	hash = mix_string(hash, frame->address);
	hash = mix_string(hash, frame->build_id);
	hash = mix(hash, frame->offset);
	hash = mix(hash, frame->file_offset);
	hash = mix(hash, frame->file_address);
	if (!frame->source)
		return hash;
	hash = mix_string(hash, frame->source->file);
	return mix(mix(hash, frame->source->line), frame->source->inlined);
}

/* Returns a hash of all that a stack has besides its id: a later window may have other names. */
static uint64_t frames_hash(const struct wire_stack *stack)
{
	uint64_t hash = mix((uint64_t)stack->frames.n, stack->scheduler);

	for (size_t i = 0; i < stack->frames.n; i++)
		hash = mix_frame(hash, &stack->frames.v[i]);
	for (size_t i = 0; i < stack->flags.n; i++)
		hash = mix_string(hash, stack->flags.v[i]);
	return hash;
}

struct stacks_sent *stacks_sent_new(void)
{
	return calloc(1, sizeof(struct stacks_sent));
}

struct stacks_sent *stacks_sent_free(struct stacks_sent *sent)
{
	free(sent);
	return NULL;
}

/* Returns the stack to send: `stack`, or *brief, which has its id only. */
static const struct wire_stack *shortened(const struct stacks_sent *sent,
					  const struct wire_stack *stack, struct wire_stack *brief)
{
	uint64_t id = id_of(stack);

	if (!id || sent->places[id % SENT_PLACES].id != id ||
	    sent->places[id % SENT_PLACES].frames != frames_hash(stack))
		return stack;
	*brief = wire_stack_absent();
	brief->id = stack->id;
	return brief;
}

void stacks_sent_shorten(const struct stacks_sent *sent, const struct wire_row *row,
			 struct short_row *out)
{
	out->row = *row;
	out->row.kernel = shortened(sent, row->kernel, &out->kernel);
	out->row.user = shortened(sent, row->user, &out->user);
}

static void stack_note(struct stacks_sent *sent, const struct wire_stack *stack)
{
	uint64_t id = id_of(stack);

	if (!id || stack_is_brief(stack))
		return;
	sent->places[id % SENT_PLACES].id = id;
	sent->places[id % SENT_PLACES].frames = frames_hash(stack);
}

void stacks_sent_note(struct stacks_sent *sent, const struct wire_row *row)
{
	stack_note(sent, row->kernel);
	stack_note(sent, row->user);
}

struct stacks_kept *stacks_kept_new(struct arena *arena)
{
	struct stacks_kept *kept = calloc(1, sizeof(*kept));

	if (kept)
		kept->arena = arena;
	return kept;
}

struct stacks_kept *stacks_kept_free(struct stacks_kept *kept)
{
	if (!kept)
		return NULL;
	HASH_CLEAR(hh, kept->stacks);
	free(kept);
	return NULL;
}

void stacks_kept_freep(struct stacks_kept **kept)
{
	stacks_kept_free(*kept);
}

/* Keeps a copy of a whole stack, in the place of another one with this id. */
static int stack_keep(struct stacks_kept *kept, uint64_t id, const struct wire_stack *stack)
{
	uint64_t frames = frames_hash(stack);
	struct wire_stack *copy;
	struct kept_stack *entry;

	HASH_FIND(hh, kept->stacks, &id, sizeof(id), entry);
	if (entry && entry->frames == frames)
		return 0;
	copy = arena_alloc(kept->arena, sizeof(*copy));
	if (!copy || record_copy(&record_stack, stack, kept->arena, copy) < 0)
		return -ENOMEM;
	if (entry) {
		entry->stack = copy;
		entry->frames = frames;
		return 0;
	}
	entry = arena_alloc(kept->arena, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	*entry = (struct kept_stack){ .id = id, .frames = frames, .stack = copy };
	HASH_ADD(hh, kept->stacks, id, sizeof(entry->id), entry);
	return HASH_HAS(entry) ? 0 : -ENOMEM;
}

static int stack_fill(struct stacks_kept *kept, const struct wire_stack **stack)
{
	struct kept_stack *entry;
	uint64_t id = id_of(*stack);

	if (!id)
		return 0;
	if (!stack_is_brief(*stack))
		return stack_keep(kept, id, *stack);
	HASH_FIND(hh, kept->stacks, &id, sizeof(id), entry);
	if (!entry)
		return -EBADMSG;
	*stack = entry->stack;
	return 0;
}

int stacks_kept_fill(struct stacks_kept *kept, struct arena *arena, struct wire_rows *rows)
{
	struct wire_row *copy = arena_array(arena, rows->n + 1, sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	for (size_t i = 0; i < rows->n; i++) {
		int r;

		copy[i] = rows->v[i];
		r = stack_fill(kept, &copy[i].kernel);
		if (r < 0)
			return r;
		r = stack_fill(kept, &copy[i].user);
		if (r < 0)
			return r;
	}
	rows->v = copy;
	return 0;
}
