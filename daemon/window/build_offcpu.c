/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Builds the windows of offcpu probes: each thread with the time that it spent in each state, and
 * each wait with its stacks. A wait that begins and ends in one window is counted in an entry of a
 * BPF map; a wait that continues past the end of a window arrives as a record of the ring buffer.
 * Threads are read at the end of each window, and their data is kept until the end of the next
 * window.
 */
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "daemon/window/build_offcpu_internal.h"

/* A wait whose user stack was not taken has the one that was read while it lasted, if any was. */
static void add_wait(struct offcpu_builder *builder, const struct record_wait *record)
{
	struct thread_state *state = thread_state_get(builder, record->key.uid);
	struct record_wait *wait;

	if (state)
		state->span_start_ns = record->start_ns;
	if (array_reserve(builder->waits, builder->waits_capacity, builder->n_waits + 1)) {
		builder->base.dropped++;
		return;
	}
	wait = &builder->waits[builder->n_waits++];
	*wait = *record;
	if (state && wait->key.ustack == STACK_NO_HOOK && state->open_since_ns == wait->start_ns)
		wait->key.ustack = state->open_ustack;
}

static void add_open_stack(struct offcpu_builder *builder, const struct record_open_stack *record)
{
	struct thread_state *state = thread_state_get(builder, record->uid);

	if (!state)
		return;
	state->open_since_ns = record->since_ns;
	state->open_ustack = record->ustack;
}

static void add_thread_end(struct offcpu_builder *builder, const struct record_thread_end *record)
{
	struct thread_state *state = thread_state_get(builder, record->thread.uid);

	if (!state)
		return;
	state->thread = record->thread;
	state->has_ended = true;
	state->end_ns = (int64_t)record->end_ns;
	thread_state_end(builder, state);
}

static void add_exec(struct offcpu_builder *builder, const struct record_process *record)
{
	struct thread_state *state = record->uid ? thread_state_get(builder, record->uid) : NULL;
	struct past_identity *past;

	if (!state)
		return;
	past = calloc(1, sizeof(*past));
	if (!past) {
		builder->base.dropped++;
		return;
	}
	past->exec_gen = record->before.exec_gen;
	past->tid = record->before.tid;
	past->start_boot_ns = record->before.start_boot_ns;
	past->epoch = record->epoch;
	past->sums = record->sums;
	past->image = IMAGE_NONE;
	memcpy(past->comm, record->old_comm, sizeof(past->comm));
	past->next = state->past;
	state->past = past;
	if (!state->thread.tid) {
		/*
		 * The thread itself has not been read yet: take its ids from the record of the
		 * exec.
		 */
		state->thread.uid = record->uid;
		state->thread.tid = record->tgid;
		state->thread.tgid = record->tgid;
		state->thread.leader_boot_ns = record->leader_boot_ns;
		state->thread.start_boot_ns = record->leader_boot_ns;
		state->thread.exec_gen = record->exec_gen;
		memcpy(state->thread.comm, record->comm, sizeof(record->comm));
	}
}

static void offcpu_add_record(struct window_builder *base, const struct record_head *record)
{
	struct offcpu_builder *builder = (struct offcpu_builder *)base;

	switch (record->type) {
	case RECORD_WAIT:
		add_wait(builder, (const struct record_wait *)record);
		break;
	case RECORD_OPEN_STACK:
		add_open_stack(builder, (const struct record_open_stack *)record);
		break;
	case RECORD_THREAD_END:
		add_thread_end(builder, (const struct record_thread_end *)record);
		break;
	case RECORD_EXEC:
		add_exec(builder, (const struct record_process *)record);
		spawns_add(builder, (const struct record_process *)record);
		break;
	case RECORD_FORK:
	case RECORD_EXIT:
		spawns_add(builder, (const struct record_process *)record);
		break;
	}
}

static void offcpu_add_thread(struct window_builder *base, const struct thread *thread)
{
	struct offcpu_builder *builder = (struct offcpu_builder *)base;
	struct thread_state *state = thread_state_get(builder, thread->uid);

	if (!state)
		return;
	state->epoch = base->epoch;
	if (!state->has_ended)
		state->thread = *thread;
}

static uint64_t wait_count(const void *value)
{
	const struct wait_sums *sums = value;

	return sums->count;
}

static void offcpu_before_rows(struct window_builder *base)
{
	threads_to_images((struct offcpu_builder *)base);
}

static void offcpu_after_rows(struct window_builder *base)
{
	struct offcpu_builder *builder = (struct offcpu_builder *)base;

	threads_to_opens(builder);
	waits_to_window(builder);
	spawns_to_window(builder);
	threads_roll(builder);
	base->window->lost[WINDOW_LOST_WAIT_THREADS] = builder->unknown;
	builder->unknown = 0;
}

static void offcpu_fini(struct window_builder *base)
{
	struct offcpu_builder *builder = (struct offcpu_builder *)base;
	struct thread_state *state, *next;

	HASH_ITER (hh, builder->threads, state, next)
		thread_state_drop(builder, state);
	spawns_fini(builder);
	free(builder->waits);
}

const struct window_builder_ops build_offcpu = {
	.size = sizeof(struct offcpu_builder),
	.key_size = sizeof(struct wait_key),
	.value_size = sizeof(struct wait_sums),
	.count = wait_count,
	.put_row = wait_row_to_window,
	.add_thread = offcpu_add_thread,
	.add_record = offcpu_add_record,
	.before_rows = offcpu_before_rows,
	.after_rows = offcpu_after_rows,
	.fini = offcpu_fini,
};
