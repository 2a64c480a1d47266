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
	struct track *track, *next;

	if (!assembler)
		return NULL;
	HASH_ITER (hh, assembler->tracks, track, next)
		track_drop(assembler, track);
	window_unref(assembler->window);
	free(assembler->waits.items);
	free(assembler->rows.items);
	free(assembler);
	return NULL;
}

void assembler_add_wait(struct assembler *assembler, const struct record_wait *record)
{
	struct record_wait *wait = list_add(&assembler->waits, sizeof(*wait));
	struct track *track = track_get(assembler, record->key.uid);

	if (track)
		track->span_start_ns = record->start_ns;
	if (wait)
		*wait = *record;
	else
		assembler->dropped++;
}

void assembler_add_open_stack(struct assembler *assembler, const struct record_open_stack *record)
{
	struct track *track = track_get(assembler, record->uid);

	if (!track)
		return;
	track->open_since_ns = record->since_ns;
	track->open_ustack = record->ustack;
}

void assembler_add_thread_end(struct assembler *assembler, const struct record_thread_end *record)
{
	struct track *track = track_get(assembler, record->thread.uid);

	if (!track)
		return;
	track->thread = record->thread;
	track->has_ended = true;
	track->end_ns = (int64_t)record->end_ns;
}

void assembler_add_exec(struct assembler *assembler, const struct record_process *record)
{
	struct track *track = record->uid ? track_get(assembler, record->uid) : NULL;
	struct former *former;

	if (!track)
		return;
	former = calloc(1, sizeof(*former));
	if (!former) {
		assembler->dropped++;
		return;
	}
	former->exec_gen = record->parent_exec_gen;
	former->tid = record->parent_tgid;
	former->start_boot_ns = record->parent_boot_ns;
	former->epoch = record->epoch;
	former->sums = record->sums;
	former->image = NO_IMAGE;
	memcpy(former->comm, record->old_comm, sizeof(former->comm));
	former->next = track->former;
	track->former = former;
	if (!track->thread.tid) {
		/* Not read at a cut yet: this is all that is known of it so far. */
		track->thread.uid = record->uid;
		track->thread.tid = record->tgid;
		track->thread.tgid = record->tgid;
		track->thread.leader_boot_ns = record->leader_boot_ns;
		track->thread.start_boot_ns = record->leader_boot_ns;
		track->thread.exec_gen = record->exec_gen;
		memcpy(track->thread.comm, record->comm, sizeof(record->comm));
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
	struct track *track = track_get(assembler, thread->uid);

	if (!track)
		return;
	track->epoch = assembler->epoch;
	if (!track->has_ended)
		track->thread = *thread;
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
	tracks_to_images(assembler);
	rows_to_window(assembler);
	tracks_to_opens(assembler);
	waits_to_window(assembler);
	tracks_roll(assembler);
	window->lost[WINDOW_LOST_MEMORY] = assembler->dropped;
	window->lost[WINDOW_LOST_WAIT_THREADS] = assembler->unknown;
	assembler->dropped = assembler->unknown = 0;
	assembler->window = NULL;
	return window;
}

size_t assembler_threads(const struct assembler *assembler)
{
	return HASH_COUNT(assembler->tracks);
}
