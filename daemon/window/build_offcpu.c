/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/window/build_offcpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/window/build_offcpu_internal.h"

static void *list_add(struct list *list, size_t size)
{
	size_t room = list->room ? list->room * 2 : 64;
	void *items;

	if (list->n == list->room) {
		items = reallocarray(list->items, room, size);
		if (!items)
			return NULL;
		list->items = items;
		list->room = room;
	}
	return (char *)list->items + list->n++ * size;
}

int assembler_new(struct process_table *processes, struct stack_table *stacks, int64_t min_wait_ns,
		  struct assembler **out)
{
	struct assembler *assembler = calloc(1, sizeof(*assembler));

	if (!assembler)
		return -ENOMEM;
	assembler->processes = processes;
	assembler->stacks = stacks;
	assembler->min_wait_ns = min_wait_ns;
	*out = assembler;
	return 0;
}

struct assembler *assembler_free(struct assembler *assembler)
{
	struct thread_state *state, *next;

	if (!assembler)
		return NULL;
	HASH_ITER (hh, assembler->threads, state, next)
		thread_state_drop(assembler, state);
	window_unref(assembler->window);
	free(assembler->waits.items);
	free(assembler->rows.items);
	free(assembler);
	return NULL;
}

void assembler_add_wait(struct assembler *assembler, const struct record_wait *record)
{
	struct record_wait *wait = list_add(&assembler->waits, sizeof(*wait));
	struct thread_state *state = thread_state_get(assembler, record->key.uid);

	if (state)
		state->span_start_ns = record->start_ns;
	if (wait)
		*wait = *record;
	else
		assembler->dropped++;
}

void assembler_add_open_stack(struct assembler *assembler, const struct record_open_stack *record)
{
	struct thread_state *state = thread_state_get(assembler, record->uid);

	if (!state)
		return;
	state->open_since_ns = record->since_ns;
	state->open_ustack = record->ustack;
}

void assembler_add_thread_end(struct assembler *assembler, const struct record_thread_end *record)
{
	struct thread_state *state = thread_state_get(assembler, record->thread.uid);

	if (!state)
		return;
	state->thread = record->thread;
	state->has_ended = true;
	state->end_ns = (int64_t)record->end_ns;
}

void assembler_add_exec(struct assembler *assembler, const struct record_process *record)
{
	struct thread_state *state = record->uid ? thread_state_get(assembler, record->uid) : NULL;
	struct past_identity *past;

	if (!state)
		return;
	past = calloc(1, sizeof(*past));
	if (!past) {
		assembler->dropped++;
		return;
	}
	past->exec_gen = record->parent_exec_gen;
	past->tid = record->parent_tgid;
	past->start_boot_ns = record->parent_boot_ns;
	past->epoch = record->epoch;
	past->sums = record->sums;
	past->image = IMAGE_NONE;
	memcpy(past->comm, record->old_comm, sizeof(past->comm));
	past->next = state->past;
	state->past = past;
	if (!state->thread.tid) {
		/* Not read at a cut yet: this is all that is known of it so far. */
		state->thread.uid = record->uid;
		state->thread.tid = record->tgid;
		state->thread.tgid = record->tgid;
		state->thread.leader_boot_ns = record->leader_boot_ns;
		state->thread.start_boot_ns = record->leader_boot_ns;
		state->thread.exec_gen = record->exec_gen;
		memcpy(state->thread.comm, record->comm, sizeof(record->comm));
	}
}

void assembler_begin(struct assembler *assembler, int64_t start_ns, int64_t end_ns, uint32_t epoch)
{
	assembler->start_ns = start_ns;
	assembler->end_ns = end_ns;
	assembler->epoch = epoch;
	assembler->rows.n = 0;
}

void assembler_add_thread(struct assembler *assembler, const struct thread *thread)
{
	struct thread_state *state = thread_state_get(assembler, thread->uid);

	if (!state)
		return;
	state->epoch = assembler->epoch;
	if (!state->has_ended)
		state->thread = *thread;
}

void assembler_add_row(struct assembler *assembler, const struct wait_key *key,
		       const struct wait_sums *sums)
{
	struct row *row = list_add(&assembler->rows, sizeof(*row));

	if (!row) {
		assembler->dropped++;
		return;
	}
	row->key = *key;
	row->sums = *sums;
}

struct window *assembler_finish(struct assembler *assembler)
{
	struct window *window = window_new();

	if (!window)
		return NULL;
	assembler->window = window;
	window->start_ns = assembler->start_ns;
	window->end_ns = assembler->end_ns;
	threads_to_images(assembler);
	rows_to_window(assembler);
	threads_to_opens(assembler);
	waits_to_window(assembler);
	threads_roll(assembler);
	window->lost[WINDOW_LOST_MEMORY] = assembler->dropped;
	window->lost[WINDOW_LOST_WAIT_THREADS] = assembler->unknown;
	assembler->dropped = assembler->unknown = 0;
	assembler->window = NULL;
	return window;
}

size_t assembler_threads(const struct assembler *assembler)
{
	return HASH_COUNT(assembler->threads);
}
