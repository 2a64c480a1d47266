/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/shared.h"
#include "common/base.h"
#include "daemon/base/hash.h"
#include "daemon/window/stack_internal.h"

/* Stacks with one of these flags have no frames of their own. */
#define NO_FRAMES (STACK_IS_LOST | STACK_IS_AMBIGUOUS)

/*
 * Returns a hash over everything that makes two stacks equal. The store identifies stacks by it, so
 * it must not depend on where the frames are in memory.
 */
static uint64_t content_hash(const struct stack *stack)
{
	const uint64_t words[] = { stack->id, stack->flags, stack->is_idle, stack->is_merged };
	uint64_t hash = hash64(HASH64_SEED, words, sizeof(words));
	size_t i;

	for (i = 0; i < stack->n_frames; i++) {
		const struct frame_entry *entry = (const struct frame_entry *)stack->frames[i];
		const uint64_t names[] = { entry->key.name, entry->key.module };

		hash = hash64(hash, names, sizeof(names));
	}
	return hash < STACK_ID_FIRST ? hash + STACK_ID_FIRST : hash;
}

/* True if both stacks have the same frames. Frames are equal if they are the same object. */
static bool is_equal(const struct stack *a, const struct stack *b)
{
	return a->flags == b->flags && a->n_frames == b->n_frames && a->is_idle == b->is_idle &&
	       a->is_merged == b->is_merged &&
	       memcmp(a->frames, b->frames, a->n_frames * sizeof(struct frame *)) == 0;
}

static struct stack_entry *shared_add(struct stack_table *table, const struct stack *from,
				      uint64_t hash)
{
	struct stack_entry *entry = stack_entry_new(hash, 0, from->n_frames);
	struct stack *stack;
	size_t i;

	if (!entry)
		return NULL;
	stack = &entry->stack;
	HASH_ADD(hh, table->shared, stack.raw_id, sizeof(stack->raw_id), entry);
	if (!HASH_HAS(entry)) {
		free(entry);
		return NULL;
	}
	stack->id = from->id;
	stack->place_id = from->place_id;
	stack->functions_id = from->functions_id;
	stack->flags = from->flags;
	stack->is_user = true;
	stack->is_merged = from->is_merged;
	stack->is_idle = from->is_idle;
	for (i = 0; i < from->n_frames; i++) {
		stack->frames[i] = from->frames[i];
		stack->frames[i]->refs++;
	}
	stack->n_frames = from->n_frames;
	stack->is_resolved = true;
	table->bytes += stack_entry_bytes(entry);
	return entry;
}

struct stack *stack_table_share(struct stack_table *table, struct stack *stack)
{
	struct stack_entry *entry;
	struct stack *shared = NULL;
	uint64_t hash;

	if (!stack->is_resolved || !stack->n_frames || stack->flags & NO_FRAMES)
		return NULL;
	hash = content_hash(stack);
	pthread_mutex_lock(&table->lock);
	HASH_FIND(hh, table->shared, &hash, sizeof(hash), entry);
	if (!entry)
		entry = shared_add(table, stack, hash);
	if (entry && is_equal(&entry->stack, stack))
		shared = stack_ref(&entry->stack);
	pthread_mutex_unlock(&table->lock);
	return shared;
}
