/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/window/stack.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "bpf/shared.h"
#include "common/base.h"
#include "daemon/window/stack_id.h"
#include "daemon/window/stack_internal.h"

/*
 * relieve() drops old windows to free memory, which takes milliseconds. If a call has freed little,
 * this is the minimum time until the next call.
 */
#define RELIEVE_EVERY_NS (100 * NS_PER_MS)

/*
 * A sweep looks at SWEEP_AT_ONCE stacks, then releases the lock and pauses for other threads.
 * Stacks without references may take 1 / IDLE_SHARE of the table's limit.
 */
enum { SWEEP_AT_ONCE = 2048, SWEEP_PAUSE_US = 200, IDLE_SHARE = 32 };

/* The limits of one sweep, and the memory of the stacks that it has kept so far, in bytes. */
struct sweep {
	int64_t oldest_ns; /* stacks without references that were not used since then are freed */
	int64_t cut_ns;	   /* stacks used since then are kept, see stack_table_sweep() */
	size_t idle_bytes; /* stacks without references */
	size_t referred_bytes;
};

/*
 * Number of times that this thread asked for a stack whose frames never arrived. Counted per
 * thread, because each session has a drain thread that reports the losses of its session.
 */
static _Thread_local uint64_t unknown_here;

static const struct {
	const char *name;
	unsigned int flag;
} pseudos[PSEUDOS] = {
	[STACK_FAULT] = { "[stack unreadable]", STACK_IS_FAULT },
	[STACK_NEW_THREAD] = { "[new thread]", STACK_IS_NEW_THREAD },
	[STACK_NO_HOOK] = { "[stack not taken]", STACK_IS_NO_HOOK },
	[STACK_UNREAD] = { "[user stack not read]", STACK_IS_UNREAD },
	[LOST_KERNEL] = { "[kernel stack lost]", STACK_IS_LOST },
	[LOST_USER] = { "[user stack lost]", STACK_IS_LOST },
};

/*
 * Makes table->pseudo[which], a stack with a single made-up frame, which says why there is no
 * stack. It lives as long as the table.
 */
static int pseudo_init(struct stack_table *table, unsigned int which)
{
	struct stack *stack = &table->pseudo[which];
	struct frame *frame;

	stack->frames = calloc(1, sizeof(struct frame *));
	frame = calloc(1, sizeof(*frame));
	if (!stack->frames || !frame) {
		free(frame);
		return -ENOMEM;
	}
	stack->frames[0] = frame;
	stack->n_frames = 1;
	frame->kind = FRAME_PSEUDO;
	frame->name = strdup(pseudos[which].name);
	if (!frame->name)
		return -ENOMEM;
	stack->raw_id = stack->id = stack->place_id = which;
	stack->functions_id = stack_functions_id_of(stack->frames, 1);
	stack->flags = pseudos[which].flag;
	stack->is_resolved = true;
	stack->refs = 1;
	return 0;
}

int stack_table_new(size_t max_bytes, struct stack_table **out)
{
	struct stack_table *table = calloc(1, sizeof(*table));
	unsigned int i;
	int r;

	if (!table)
		return -ENOMEM;
	table->max_bytes = max_bytes;
	pthread_mutex_init(&table->lock, NULL);
	for (i = 0; i < PSEUDOS; i++) {
		r = pseudos[i].name ? pseudo_init(table, i) : 0;
		if (r) {
			stack_table_free(table);
			return r;
		}
	}
	*out = table;
	return 0;
}

void stack_table_set_max(struct stack_table *table, size_t max_bytes)
{
	pthread_mutex_lock(&table->lock);
	table->max_bytes = max_bytes;
	pthread_mutex_unlock(&table->lock);
}

static size_t stack_bytes(size_t n_raw, size_t n_frames)
{
	return sizeof(struct stack_entry) + n_raw * sizeof(uint64_t) + n_frames * sizeof(void *);
}

size_t stack_entry_bytes(const struct stack_entry *entry)
{
	return stack_bytes(entry->n_raw, entry->n_frames);
}

static void stack_free(struct stack_entry *entry)
{
	process_unref(entry->stack.process);
	free(entry);
}

/*
 * Removes the stack from the table's hash table; the caller frees the stack. Called with the lock
 * held.
 */
static void stack_remove(struct stack_table *table, struct stack_entry *entry)
{
	if (table->sweep_next == entry)
		table->sweep_next = entry->hh.next;
	HASH_DEL(table->stacks, entry);
	table->bytes -= stack_entry_bytes(entry);
}

static void frames_release(struct stack_table *table, struct stack *stack)
{
	size_t i;

	for (i = 0; i < stack->n_frames; i++)
		stack_frame_release(table, stack->frames[i]);
}

static void stack_release(struct stack_table *table, struct stack_entry *entry)
{
	stack_remove(table, entry);
	frames_release(table, &entry->stack);
	stack_free(entry);
}

void stack_table_set_relief(struct stack_table *table, void (*relieve)(void *userdata),
			    void *userdata)
{
	table->relieve = relieve;
	table->relieve_data = userdata;
}

/*
 * Frees the stacks in table->dropped that are no longer referenced or, if is_end is set, all of
 * them. Called with the lock held.
 */
static void dropped_sweep(struct stack_table *table, bool is_end)
{
	struct stack_entry **at = &table->dropped, *entry;

	while ((entry = *at)) {
		if (entry->stack.refs > 1 && !is_end) {
			at = &entry->next;
			continue;
		}
		*at = entry->next;
		if (!(entry->stack.flags & STACK_IS_LOST)) {
			frames_release(table, &entry->stack);
			table->bytes -= stack_entry_bytes(entry);
		}
		stack_free(entry);
	}
}

/*
 * Frees the shared stacks without references or, if is_end is true, all of them. Returns the memory
 * of those that are left, in bytes.
 */
static size_t shared_sweep(struct stack_table *table, bool is_end)
{
	struct stack_entry *entry, *next;
	size_t bytes = 0;

	HASH_ITER (hh, table->shared, entry, next) {
		if (entry->stack.refs > 1 && !is_end) {
			bytes += stack_entry_bytes(entry);
			continue;
		}
		HASH_DEL(table->shared, entry);
		table->bytes -= stack_entry_bytes(entry);
		frames_release(table, &entry->stack);
		free(entry);
	}
	return bytes;
}

struct stack_table *stack_table_free(struct stack_table *table)
{
	struct stack_entry *entry, *next;
	unsigned int i;

	if (!table)
		return NULL;
	HASH_ITER (hh, table->stacks, entry, next)
		stack_release(table, entry);
	shared_sweep(table, true);
	dropped_sweep(table, true);
	for (i = 0; i < PSEUDOS; i++) {
		if (table->pseudo[i].n_frames) {
			free(table->pseudo[i].frames[0]->name);
			free(table->pseudo[i].frames[0]);
		}
		free(table->pseudo[i].frames);
	}
	pthread_mutex_destroy(&table->lock);
	free(table);
	return NULL;
}

struct stack_entry *stack_entry_new(uint64_t raw_id, size_t n_raw, size_t n_frames)
{
	struct stack_entry *entry = calloc(1, stack_bytes(n_raw, n_frames));

	if (!entry)
		return NULL;
	entry->n_raw = n_raw;
	entry->n_frames = n_frames;
	entry->stack.ip = n_raw ? (uint64_t *)(entry + 1) : NULL;
	entry->stack.frames = (struct frame **)((uint64_t *)(entry + 1) + n_raw);
	entry->stack.n_raw = n_raw;
	entry->stack.raw_id = raw_id;
	entry->stack.refs = 1;
	return entry;
}

static bool is_full(const struct stack_table *table, size_t n_raw)
{
	return table->bytes + stack_bytes(n_raw, n_raw) > table->max_bytes;
}

static struct stack_entry *stack_add(struct stack_table *table, uint64_t raw_id,
				     struct process *process, const uint64_t *ip, size_t n)
{
	struct stack_entry *entry;

	if (is_full(table, n)) {
		table->full++;
		return NULL;
	}
	/* Even a stack without addresses needs room for a frame: it may be marked as lost. */
	entry = stack_entry_new(raw_id, n, n ? n : 1);
	if (!entry)
		return NULL;
	if (n)
		memcpy(entry->stack.ip, ip, n * sizeof(*ip));
	HASH_ADD(hh, table->stacks, stack.raw_id, sizeof(raw_id), entry);
	if (!HASH_HAS(entry)) {
		stack_free(entry);
		return NULL;
	}
	entry->stack.process = process ? process_ref(process) : NULL;
	entry->stack.is_user = process != NULL;
	table->bytes += stack_entry_bytes(entry);
	return entry;
}

/*
 * A stack has arrived with an id that the table has already. Compares its process and its addresses
 * with those of the table's stack. If they differ, marks the table's stack as ambiguous, because
 * the id then identifies neither of the two stacks.
 */
static void stack_mark_if_ambiguous(struct stack_table *table, struct stack *stack,
				    struct process *process, const uint64_t *ip, size_t n)
{
	if (stack->n_raw == n && stack->process == process &&
	    (!n || memcmp(stack->ip, ip, n * sizeof(*ip)) == 0))
		return;
	if (!(stack->flags & STACK_IS_AMBIGUOUS))
		table->ambiguous++;
	stack->flags |= STACK_IS_AMBIGUOUS;
}

/*
 * True if a stack without references that was not used since the cut is to be freed: it will not be
 * used again, or not soon, or such stacks take too much memory.
 */
static bool is_useless(const struct stack_table *table, const struct stack_entry *entry,
		       const struct sweep *sweep)
{
	return entry->stack.seen_ns < sweep->oldest_ns ||
	       sweep->idle_bytes + stack_entry_bytes(entry) > table->max_bytes / IDLE_SHARE ||
	       (entry->stack.process && process_has_exited(entry->stack.process));
}

/* Frees the stack if stack_table_sweep() has to free it (see there). Called with the lock held. */
static void stack_sweep(struct stack_table *table, struct stack_entry *entry, struct sweep *sweep)
{
	const struct stack *stack = &entry->stack;

	if (stack->refs > 1 + stack->holds)
		sweep->referred_bytes += stack_entry_bytes(entry);
	if (stack->refs > 1 || !stack->is_resolved || stack->seen_ns >= sweep->cut_ns)
		return;
	if (is_useless(table, entry, sweep))
		stack_release(table, entry);
	else
		sweep->idle_bytes += stack_entry_bytes(entry);
}

/*
 * Makes room for a new stack: first calls relieve(), which drops old windows; then drops the stacks
 * to which only those windows referred. Called with the lock held; releases it during relieve().
 */
static void old_windows_drop(struct stack_table *table)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);
	struct sweep sweep = { .oldest_ns = INT64_MAX, .cut_ns = INT64_MAX };
	struct stack_entry *entry, *next;

	if (!table->relieve || now < table->relieve_after_ns)
		return;
	/* Keeps other threads from calling relieve() as long as this call runs without the lock. */
	table->relieve_after_ns = INT64_MAX;
	pthread_mutex_unlock(&table->lock);
	table->relieve(table->relieve_data);
	pthread_mutex_lock(&table->lock);
	HASH_ITER (hh, table->stacks, entry, next)
		stack_sweep(table, entry, &sweep);
	shared_sweep(table, false);
	dropped_sweep(table, false);
	table->relieve_after_ns = now;
	if (table->bytes > table->max_bytes / 8 * 7)
		table->relieve_after_ns += RELIEVE_EVERY_NS;
}

struct stack *stack_table_put(struct stack_table *table, uint64_t raw_id, struct process *process,
			      const uint64_t *ip, size_t n, bool *is_new_out)
{
	struct stack_entry *entry;

	*is_new_out = false;
	pthread_mutex_lock(&table->lock);
	HASH_FIND(hh, table->stacks, &raw_id, sizeof(raw_id), entry);
	if (!entry && is_full(table, n)) {
		old_windows_drop(table);
		HASH_FIND(hh, table->stacks, &raw_id, sizeof(raw_id), entry);
	}
	if (entry) {
		stack_mark_if_ambiguous(table, &entry->stack, process, ip, n);
	} else {
		entry = stack_add(table, raw_id, process, ip, n);
		*is_new_out = entry != NULL;
	}
	if (entry) {
		entry->stack.seen_ns = clock_ns(CLOCK_MONOTONIC);
		stack_ref(&entry->stack);
	}
	pthread_mutex_unlock(&table->lock);
	return entry ? &entry->stack : NULL;
}

/*
 * Turns a stack that cannot be resolved into one with a single frame, which says that the stack was
 * lost. Used if another session has a reference to the stack, so that it cannot be freed.
 */
static void stack_lose(struct stack_table *table, struct stack_entry *entry)
{
	struct stack *stack = &entry->stack;
	const struct stack *lost = &table->pseudo[stack->process ? LOST_USER : LOST_KERNEL];

	stack_remove(table, entry);
	entry->next = table->dropped;
	table->dropped = entry;
	stack->n_raw = 0;
	stack->frames[0] = lost->frames[0];
	stack->n_frames = 1;
	stack->id = stack->place_id = lost->id;
	stack->functions_id = lost->functions_id;
	stack->flags = lost->flags;
	stack->is_resolved = true;
}

void stack_table_drop(struct stack_table *table, struct stack *stack)
{
	struct stack_entry *entry = (struct stack_entry *)stack;

	pthread_mutex_lock(&table->lock);
	stack_unref(stack);
	if (stack->refs == 1)
		stack_release(table, entry);
	else
		stack_lose(table, entry);
	pthread_mutex_unlock(&table->lock);
}

struct stack *stack_table_again(struct stack_table *table, const struct stack *stack)
{
	const unsigned int of_naming = STACK_IS_AMBIGUOUS | STACK_IS_FROZEN | STACK_IS_OF_PROGRAM;
	struct stack_entry *entry = NULL;
	struct stack *again;

	pthread_mutex_lock(&table->lock);
	if (!is_full(table, stack->n_raw))
		entry = stack_entry_new(stack->raw_id, stack->n_raw, stack->n_raw);
	if (entry)
		table->bytes += stack_entry_bytes(entry);
	pthread_mutex_unlock(&table->lock);
	if (!entry)
		return NULL;
	again = &entry->stack;
	memcpy(again->ip, stack->ip, stack->n_raw * sizeof(*stack->ip));
	again->process = stack->process ? process_ref(stack->process) : NULL;
	again->is_user = stack->is_user;
	again->is_sample = stack->is_sample;
	again->mappings = stack->mappings;
	again->flags = stack->flags & ~of_naming;
	again->seen_ns = stack->seen_ns;
	return again;
}

/* Frees a stack that is not in the table. Called with the lock held. */
static void again_free(struct stack_table *table, struct stack_entry *entry)
{
	frames_release(table, &entry->stack);
	table->bytes -= stack_entry_bytes(entry);
	stack_free(entry);
}

void stack_table_discard(struct stack_table *table, struct stack *again)
{
	pthread_mutex_lock(&table->lock);
	again_free(table, (struct stack_entry *)again);
	pthread_mutex_unlock(&table->lock);
}

struct stack *stack_table_replace(struct stack_table *table, struct stack *stack,
				  struct stack *again)
{
	struct stack_entry *old = (struct stack_entry *)stack, *new = (struct stack_entry *)again;
	struct stack_entry *present;

	pthread_mutex_lock(&table->lock);
	HASH_FIND(hh, table->stacks, &stack->raw_id, sizeof(stack->raw_id), present);
	if (present != old || stack->flags & STACK_IS_AMBIGUOUS) {
		again_free(table, new);
		pthread_mutex_unlock(&table->lock);
		return NULL;
	}
	stack_remove(table, old);
	table->bytes += stack_entry_bytes(old);
	old->next = table->dropped;
	table->dropped = old;
	HASH_ADD(hh, table->stacks, stack.raw_id, sizeof(again->raw_id), new);
	if (HASH_HAS(new)) {
		stack_ref(again);
	} else {
		again_free(table, new);
		again = NULL;
	}
	pthread_mutex_unlock(&table->lock);
	return again;
}

struct stack *stack_table_successor(struct stack_table *table, const struct stack *stack)
{
	struct stack_entry *entry;
	struct stack *successor = NULL;

	pthread_mutex_lock(&table->lock);
	HASH_FIND(hh, table->stacks, &stack->raw_id, sizeof(stack->raw_id), entry);
	if (entry && &entry->stack != stack && entry->stack.is_resolved)
		successor = stack_ref(&entry->stack);
	pthread_mutex_unlock(&table->lock);
	return successor;
}

struct stack *stack_table_get(struct stack_table *table, uint64_t raw_id, bool is_user)
{
	struct stack_entry *entry = NULL;
	struct stack *stack = NULL;

	if (raw_id == STACK_NONE)
		return NULL;
	pthread_mutex_lock(&table->lock);
	if (raw_id >= STACK_ID_FIRST) {
		HASH_FIND(hh, table->stacks, &raw_id, sizeof(raw_id), entry);
		stack = entry ? &entry->stack : NULL;
		if (stack)
			stack->seen_ns = clock_ns(CLOCK_MONOTONIC);
	} else if (pseudos[raw_id].name) {
		stack = &table->pseudo[raw_id];
	}
	if (!stack) {
		table->unknown++;
		unknown_here++;
		stack = &table->pseudo[is_user ? LOST_USER : LOST_KERNEL];
	}
	stack_ref(stack);
	pthread_mutex_unlock(&table->lock);
	return stack;
}

void stack_table_sweep(struct stack_table *table, int64_t keep_ns, int64_t cut_ns)
{
	struct sweep sweep = { clock_ns(CLOCK_MONOTONIC) - keep_ns, cut_ns, 0, 0 };
	struct stack_entry *entry;
	size_t i;

	pthread_mutex_lock(&table->lock);
	dropped_sweep(table, false);
	table->sweep_next = table->stacks;
	while (table->sweep_next) {
		for (i = 0; i < SWEEP_AT_ONCE && (entry = table->sweep_next); i++) {
			table->sweep_next = entry->hh.next;
			stack_sweep(table, entry, &sweep);
		}
		/*
		 * Release the lock for a moment: the end of a window must not wait until the whole
		 * sweep has ended.
		 */
		pthread_mutex_unlock(&table->lock);
		usleep(SWEEP_PAUSE_US);
		pthread_mutex_lock(&table->lock);
	}
	sweep.referred_bytes += shared_sweep(table, false);
	table->referred_bytes = sweep.referred_bytes + table->frame_bytes;
	pthread_mutex_unlock(&table->lock);
}

void stack_table_stats(struct stack_table *table, struct stack_table_stats *out)
{
	pthread_mutex_lock(&table->lock);
	*out = (struct stack_table_stats){
		.stacks = HASH_COUNT(table->stacks),
		.frames = HASH_COUNT(table->frames),
		.bytes = table->bytes,
		.referred_bytes = table->referred_bytes,
		.ambiguous = table->ambiguous,
		.unknown = table->unknown,
		.full = table->full,
	};
	pthread_mutex_unlock(&table->lock);
}

uint64_t stack_unknown_here(void)
{
	return unknown_here;
}

size_t stack_table_referred_bytes(struct stack_table *table)
{
	size_t bytes;

	pthread_mutex_lock(&table->lock);
	bytes = table->referred_bytes;
	pthread_mutex_unlock(&table->lock);
	return bytes;
}

void stack_hold(struct stack *stack)
{
	atomic_fetch_add(&stack->holds, 1);
}

void stack_release_hold(struct stack *stack)
{
	atomic_fetch_sub(&stack->holds, 1);
	stack_unref(stack);
}

struct stack *stack_ref(struct stack *stack)
{
	if (stack)
		atomic_fetch_add(&stack->refs, 1);
	return stack;
}

/*
 * Drops the caller's reference. Never frees the stack, because the table always holds a reference
 * of its own.
 */
struct stack *stack_unref(struct stack *stack)
{
	if (stack)
		atomic_fetch_sub(&stack->refs, 1);
	return NULL;
}
