/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/window/build_offcpu_internal.h"

#include <errno.h>

/* Adds a row of sampled waits to the estimate for its thread, see struct window_estimate. */
static void estimate_add(struct window_image *image, const struct wait_sums *sums)
{
	const struct window_estimate estimate = {
		.count = sums->count,
		.blocked_ns = sums->blocked_ns,
		.runnable_ns = sums->runnable_ns,
	};

	window_estimate_add(&image->estimate, &estimate);
}

int wait_row_to_window(struct window_builder *base, const void *row_key, const void *value)
{
	struct offcpu_builder *builder = (struct offcpu_builder *)base;
	const struct wait_key *key = row_key;
	const struct wait_sums *sums = value;
	uint32_t image = wait_image(builder, key, sums->count);
	struct window_row *row;

	if (image == IMAGE_NONE)
		return 0;
	row = window_add_row(base->window);
	if (!row)
		return -ENOMEM;
	if (key->state & STATE_SAMPLED)
		estimate_add(&base->window->images[image], sums);
	row->image = image;
	row->state = key->state;
	row->kernel = stack_table_get(base->options.stacks, key->kstack, false);
	row->user = stack_table_get(base->options.stacks, key->ustack, true);
	row->count = sums->count;
	row->blocked_ns = sums->blocked_ns;
	row->runnable_ns = sums->runnable_ns;
	row->throttled_ns = sums->throttled_ns;
	row->max_ns = sums->max_ns;
	row->max_end_ns = (int64_t)sums->max_end_ns;
	row->culprits = sums->culprits;
	if (window_row_set_buckets(base->window, row, sums->buckets))
		base->dropped++;
	return 0;
}

static void wait_to_span(struct offcpu_builder *builder, const struct record_wait *wait)
{
	uint32_t image = wait_image(builder, &wait->key, 1);
	struct window_span *span;

	if (image == IMAGE_NONE)
		return;
	span = window_add_span(builder->base.window);
	if (!span) {
		builder->base.dropped++;
		return;
	}
	span->image = image;
	span->state = wait->key.state;
	span->kernel = stack_table_get(builder->base.options.stacks, wait->key.kstack, false);
	span->user = stack_table_get(builder->base.options.stacks, wait->key.ustack, true);
	span->start_ns = (int64_t)wait->start_ns;
	span->wake_ns = (int64_t)wait->wake_ns;
	span->end_ns = (int64_t)wait->end_ns;
	span->throttled_ns = wait->throttled_ns;
	span->culprits = wait->culprits;
}

static void open_add(struct offcpu_builder *builder, const struct wait_key *key, int64_t start_ns,
		     int64_t wake_ns, uint64_t throttled_ns)
{
	uint32_t image = wait_image(builder, key, 1);
	struct window_open *open;

	if (image == IMAGE_NONE)
		return;
	open = window_add_open(builder->base.window);
	if (!open) {
		builder->base.dropped++;
		return;
	}
	open->image = image;
	open->state = key->state;
	open->start_ns = start_ns;
	open->wake_ns = wake_ns;
	open->throttled_ns = throttled_ns;
	open->kernel = stack_table_get(builder->base.options.stacks, key->kstack, false);
	open->user = stack_table_get(builder->base.options.stacks, key->ustack, true);
}

/*
 * Adds a wait that ended after the window, as one that had not ended within it. The facts come from
 * the record that was written when the wait ended: the thread's state, which was read at the cut,
 * may already be that of a later wait. A wait that was shorter than min_wait_ns at the end of the
 * window is added, too, because its record exists only if it became that long.
 */
static void wait_to_open(struct offcpu_builder *builder, const struct record_wait *wait)
{
	struct thread_state *state;

	HASH_FIND(hh, builder->threads, &wait->key.uid, sizeof(wait->key.uid), state);
	if (state && state->thread.tid)
		open_add(builder, &wait->key, (int64_t)wait->start_ns, (int64_t)wait->wake_ns,
			 wait->throttled_ns);
}

void waits_to_window(struct offcpu_builder *builder)
{
	struct record_wait *waits = builder->waits;
	size_t i, kept = 0;

	for (i = 0; i < builder->n_waits; i++) {
		if ((int64_t)waits[i].end_ns <= builder->base.end_ns) {
			wait_to_span(builder, &waits[i]);
			continue;
		}
		if ((int64_t)waits[i].start_ns < builder->base.end_ns)
			wait_to_open(builder, &waits[i]);
		waits[kept++] = waits[i];
	}
	builder->n_waits = kept;
}

/*
 * Finds the stacks of a wait that has not ended, and stores their ids in *key. Uses the stacks that
 * were taken when the thread was switched out. If the probe took no stacks at that time, uses those
 * that were read during the wait.
 */
static void open_stacks(const struct thread_state *state, struct wait_key *key)
{
	const struct thread *t = &state->thread;

	if (t->flags & THREAD_IS_NEW) {
		key->kstack = STACK_NEW_THREAD;
	} else if (t->kstack != STACK_NONE && t->kstack != STACK_NO_HOOK) {
		key->kstack = t->kstack;
		key->ustack = t->ustack;
	} else {
		key->kstack = t->open_since_ns == t->since_ns ? t->open_kstack : STACK_UNREAD;
		if (state->open_since_ns == t->since_ns)
			key->ustack = state->open_ustack;
	}
}

/*
 * Adds the present wait of a thread. is_unseen: the BPF iterator over all tasks did not find the
 * thread, so the wait may have ended unnoticed. This happens on hosts that hide threads and their
 * context switches from BPF.
 */
static void thread_to_open(struct offcpu_builder *builder, const struct thread_state *state,
			   bool is_unseen)
{
	const struct thread *t = &state->thread;
	struct wait_key key = {
		.uid = state->uid,
		.exec_gen = t->exec_gen,
		.state = t->wait_state | (is_unseen ? STATE_UNSEEN : 0),
	};
	int64_t wake = thread_woken_at(t);

	if (wake >= builder->base.end_ns)
		wake = INT64_MAX;
	open_stacks(state, &key);
	open_add(builder, &key, (int64_t)t->since_ns, wake,
		 thread_throttled_at(t, wake, builder->base.end_ns));
}

/*
 * True if the thread was waiting when the window ended, and had waited for at least min_wait_ns.
 * False if the iterator over tasks found the thread only after the end of the window. False if a
 * record of the wait has arrived, because the wait has ended since then: wait_to_open() adds this
 * wait with its exact times.
 */
static bool thread_is_waiting(const struct offcpu_builder *builder,
			      const struct thread_state *state)
{
	const struct thread *t = &state->thread;
	int64_t since = (int64_t)t->since_ns, end = builder->base.end_ns;

	if (t->flags & THREAD_IS_SEEDED && (int64_t)t->seeded_ns >= end)
		return false;
	return t->status != THREAD_ON_CPU && since < end &&
	       end - since >= builder->base.options.min_wait_ns &&
	       state->span_start_ns != t->since_ns;
}

void threads_to_opens(struct offcpu_builder *builder)
{
	struct thread_state *state, *next;
	uint32_t last_cut = 0;

	/*
	 * Find the last window for which the task iterator (the BPF program that visits all
	 * threads) ran. This need not be the present window: the iterator may have failed.
	 */
	HASH_ITER (hh, builder->threads, state, next)
		if (state->thread.seen_cut > last_cut)
			last_cut = state->thread.seen_cut;
	HASH_ITER (hh, builder->threads, state, next)
		if (!state->has_ended && state->epoch == builder->base.epoch &&
		    thread_is_waiting(builder, state))
			thread_to_open(builder, state, state->thread.seen_cut < last_cut);
}
