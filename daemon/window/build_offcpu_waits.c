/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/window/build_offcpu_internal.h"

void rows_to_window(struct assembler *assembler)
{
	const struct row *rows = assembler->rows.items;
	struct window *window = assembler->window;
	struct window_row *row;
	uint32_t image;
	size_t i;

	for (i = 0; i < assembler->rows.n; i++) {
		const struct wait_sums *sums = &rows[i].sums;

		image = wait_image(assembler, &rows[i].key, sums->count);
		if (image == IMAGE_NONE)
			continue;
		row = window_add_row(window);
		if (!row) {
			assembler->dropped += sums->count;
			continue;
		}
		row->image = image;
		row->state = rows[i].key.state;
		row->kernel = stack_table_get(assembler->stacks, rows[i].key.kstack, false);
		row->user = stack_table_get(assembler->stacks, rows[i].key.ustack, true);
		row->count = sums->count;
		row->blocked_ns = sums->blocked_ns;
		row->runnable_ns = sums->runnable_ns;
		row->throttled_ns = sums->throttled_ns;
		row->max_ns = sums->max_ns;
		row->max_end_ns = (int64_t)sums->max_end_ns;
		if (window_row_set_buckets(window, row, sums->buckets))
			assembler->dropped++;
	}
}

static void wait_to_span(struct assembler *assembler, const struct record_wait *wait)
{
	uint32_t image = wait_image(assembler, &wait->key, 1);
	struct window_span *span;

	if (image == IMAGE_NONE)
		return;
	span = window_add_span(assembler->window);
	if (!span) {
		assembler->dropped++;
		return;
	}
	span->image = image;
	span->state = wait->key.state;
	span->kernel = stack_table_get(assembler->stacks, wait->key.kstack, false);
	span->user = stack_table_get(assembler->stacks, wait->key.ustack, true);
	span->start_ns = (int64_t)wait->start_ns;
	span->wake_ns = (int64_t)wait->wake_ns;
	span->end_ns = (int64_t)wait->end_ns;
	span->throttled_ns = wait->throttled_ns;
}

static void open_add(struct assembler *assembler, const struct wait_key *key, int64_t start_ns,
		     int64_t wake_ns, uint64_t throttled_ns)
{
	uint32_t image = wait_image(assembler, key, 1);
	struct window_open *open;

	if (image == IMAGE_NONE)
		return;
	open = window_add_open(assembler->window);
	if (!open) {
		assembler->dropped++;
		return;
	}
	open->image = image;
	open->state = key->state;
	open->start_ns = start_ns;
	open->wake_ns = wake_ns;
	open->throttled_ns = throttled_ns;
	open->kernel = stack_table_get(assembler->stacks, key->kstack, false);
	open->user = stack_table_get(assembler->stacks, key->ustack, true);
}

/*
 * A wait that ended after the cut was open at it, also when its thread was read as running; and
 * however short it was by then: it is known to have become longer.
 */
static void wait_to_open(struct assembler *assembler, const struct record_wait *wait)
{
	struct thread_state *state;

	HASH_FIND(hh, assembler->threads, &wait->key.uid, sizeof(wait->key.uid), state);
	if (state && state->thread.tid)
		open_add(assembler, &wait->key, (int64_t)wait->start_ns, (int64_t)wait->wake_ns,
			 wait->throttled_ns);
}

void waits_to_window(struct assembler *assembler)
{
	struct record_wait *waits = assembler->waits.items;
	size_t i, kept = 0;

	for (i = 0; i < assembler->waits.n; i++) {
		if ((int64_t)waits[i].end_ns <= assembler->end_ns) {
			wait_to_span(assembler, &waits[i]);
			continue;
		}
		if ((int64_t)waits[i].start_ns < assembler->end_ns)
			wait_to_open(assembler, &waits[i]);
		waits[kept++] = waits[i];
	}
	assembler->waits.n = kept;
}

/* The stacks of a wait that goes on: of its switch-out where they are taken there. */
static void open_stacks(const struct thread_state *state, struct wait_key *key)
{
	const struct thread *t = &state->thread;

	if (t->flags & THREAD_IS_NEW) {
		key->kstack = STACK_NEW_THREAD;
	} else if (t->kstack != STACK_NONE) {
		key->kstack = t->kstack;
		key->ustack = t->ustack;
	} else {
		key->kstack = t->open_since_ns == t->since_ns ? t->open_kstack : STACK_UNREAD;
		if (state->open_since_ns == t->since_ns)
			key->ustack = state->open_ustack;
	}
}

/*
 * is_unseen: some hosts hide threads from BPF, their switches too; whether such a wait has ended
 * is not known.
 */
static void thread_to_open(struct assembler *assembler, const struct thread_state *state,
			   bool is_unseen)
{
	const struct thread *t = &state->thread;
	struct wait_key key = {
		.uid = state->uid,
		.exec_gen = t->exec_gen,
		.state = t->wait_state | (is_unseen ? STATE_UNSEEN : 0),
	};
	int64_t wake = INT64_MAX, since = (int64_t)t->since_ns;

	if (t->status == THREAD_RUNNABLE)
		wake = since;
	else if ((int64_t)t->wake_ns >= since && (int64_t)t->wake_ns < assembler->end_ns)
		wake = (int64_t)t->wake_ns;
	open_stacks(state, &key);
	open_add(assembler, &key, since, wake, thread_throttled_at(t, wake, assembler->end_ns));
}

/*
 * At the cut, and long enough by then; not one of a thread that was found after it. A wait whose
 * record has come ended between the cut and the reading: the record tells more.
 */
static bool thread_is_waiting(const struct assembler *assembler, const struct thread_state *state)
{
	const struct thread *t = &state->thread;
	int64_t since = (int64_t)t->since_ns, end = assembler->end_ns;

	if (t->flags & THREAD_IS_SEEDED && (int64_t)t->seeded_ns >= end)
		return false;
	return t->status != THREAD_ON_CPU && since < end && end - since >= assembler->min_wait_ns &&
	       state->span_start_ns != t->since_ns;
}

void threads_to_opens(struct assembler *assembler)
{
	struct thread_state *state, *next;
	uint32_t last_cut = 0;

	/* Of the iterator's walks the last one; that of this cut may have failed. */
	HASH_ITER (hh, assembler->threads, state, next)
		if (state->thread.seen_cut > last_cut)
			last_cut = state->thread.seen_cut;
	HASH_ITER (hh, assembler->threads, state, next)
		if (!state->has_ended && state->epoch == assembler->epoch &&
		    thread_is_waiting(assembler, state))
			thread_to_open(assembler, state, state->thread.seen_cut < last_cut);
}
