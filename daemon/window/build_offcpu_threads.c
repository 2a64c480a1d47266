/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/window/build_offcpu_internal.h"

#include <stdlib.h>
#include <string.h>

#include "common/base.h"

/*
 * Frees the identities that the thread had before an exec, if they are marked as old. Then marks
 * the others as old.
 */
static void past_identities_age(struct thread_state *state)
{
	struct past_identity **at = &state->past, *past;

	while ((past = *at)) {
		if (past->is_old) {
			*at = past->next;
			free(past);
			continue;
		}
		past->is_old = true;
		past->image = IMAGE_NONE;
		at = &past->next;
	}
}

void thread_state_end(struct offcpu_builder *builder, struct thread_state *state)
{
	_cleanup_(freep) struct pending_exit *pending = TAKE(state->exit);
	uint64_t on_ns, end_ns;

	if (!pending)
		return;
	/* If the record of the thread's end was lost, its last moments are not known. */
	on_ns = state->has_ended ? state->thread.sums.on_ns : 0;
	end_ns = state->has_ended ? (uint64_t)state->end_ns : 0;
	if (on_ns > pending->on_ns)
		pending->cpu_ns += on_ns - pending->on_ns;
	if (end_ns > pending->time_ns)
		pending->life_ns += end_ns - pending->time_ns;
	window_spawns_exit(&builder->spawns, pending->parent, pending->comm, pending->cpu_ns,
			   pending->life_ns);
}

void thread_state_drop(struct offcpu_builder *builder, struct thread_state *state)
{
	HASH_DEL(builder->threads, state);
	thread_state_end(builder, state);
	while (state->past)
		past_identities_age(state);
	free(state);
}

struct thread_state *thread_state_get(struct offcpu_builder *builder, uint64_t uid)
{
	struct thread_state *state;

	HASH_FIND(hh, builder->threads, &uid, sizeof(uid), state);
	if (state)
		return state;
	state = calloc(1, sizeof(*state));
	if (!state) {
		builder->base.dropped++;
		return NULL;
	}
	state->uid = uid;
	state->image = IMAGE_NONE;
	HASH_ADD(hh, builder->threads, uid, sizeof(state->uid), state);
	if (!HASH_HAS(state)) {
		builder->base.dropped++;
		free(state);
		return NULL;
	}
	return state;
}

int64_t thread_woken_at(const struct thread *t)
{
	if (t->status == THREAD_RUNNABLE)
		return (int64_t)t->since_ns;
	if (thread_is_hidden(t) || t->wake_ns < t->since_ns)
		return INT64_MAX;
	return (int64_t)t->wake_ns;
}

uint64_t thread_throttled_at(const struct thread *t, int64_t wake_ns, int64_t at_ns)
{
	uint64_t ready = window_overlap_ns(wake_ns, at_ns, 0, INT64_MAX);

	return t->open_throttled_ns < ready ? t->open_throttled_ns : ready;
}

/*
 * Returns the time that the thread had spent in each state at at_ns, the end of the window. If the
 * thread has had an event since at_ns, such as a context switch, the BPF programs have stored these
 * sums in at_cut. Otherwise the thread still is in the same state: adds the time in this state up
 * to at_ns to the thread's sums.
 */
static struct thread_sums thread_sums_at(const struct thread *t, uint32_t epoch, int64_t at_ns)
{
	int64_t from = (int64_t)(t->flags & THREAD_IS_SEEDED ? t->seeded_ns : t->since_ns);
	struct thread_sums sums = t->sums;
	int64_t wake;

	if (t->epoch == epoch)
		return t->at_cut;
	if (t->status == THREAD_ON_CPU) {
		sums.on_ns += window_overlap_ns(from, at_ns, 0, INT64_MAX);
		return sums;
	}
	wake = thread_woken_at(t);
	sums.blocked_ns += window_overlap_ns(from, wake < at_ns ? wake : at_ns, 0, INT64_MAX);
	sums.runnable_ns += window_overlap_ns(wake > from ? wake : from, at_ns, 0, INT64_MAX);
	sums.throttled_ns += thread_throttled_at(t, wake > from ? wake : from, at_ns);
	return sums;
}

static uint32_t image_add(struct offcpu_builder *builder, const struct thread *t, uint32_t exec_gen,
			  const char *comm)
{
	struct window *window = builder->base.window;
	struct window_image *image = window_add_image(window);
	struct process_id id = {
		.pid = (int32_t)t->tgid,
		.exec_gen = exec_gen,
		.start_boot_ns = t->leader_boot_ns,
	};

	if (!image)
		return IMAGE_NONE;
	image->uid = t->uid;
	image->tid = (int32_t)t->tid;
	image->start_boot_ns = t->start_boot_ns;
	image->exec_gen = exec_gen;
	/*
	 * The bytes after the end of the name stay zero, because keys that contain comm are
	 * compared as bytes.
	 */
	memcpy(image->comm, comm, strnlen(comm, COMM_LEN - 1));
	image->process =
		process_table_see(builder->base.options.processes, &id, t->flags & THREAD_IS_KERNEL,
				  t->tid == t->tgid ? image->comm : NULL);
	if (!image->process) {
		window->n_images--;
		return IMAGE_NONE;
	}
	return (uint32_t)window->n_images - 1;
}

static uint32_t past_image_add(struct offcpu_builder *builder, const struct thread *t,
			       const struct past_identity *past)
{
	struct thread was = *t;

	was.tid = past->tid;
	was.start_boot_ns = past->start_boot_ns;
	return image_add(builder, &was, past->exec_gen, past->comm);
}

/*
 * A thread has one entry in window.images for each program that it ran. Returns the index of the
 * entry for the program that exec_gen identifies. Adds the entry if it is not there. IMAGE_NONE
 * when out of memory.
 */
static uint32_t thread_state_image(struct offcpu_builder *builder, struct thread_state *state,
				   uint32_t exec_gen)
{
	struct past_identity *past;

	for (past = state->past; past && exec_gen != state->thread.exec_gen; past = past->next) {
		if (past->exec_gen != exec_gen)
			continue;
		if (past->image == IMAGE_NONE)
			past->image = past_image_add(builder, &state->thread, past);
		return past->image;
	}
	if (state->image == IMAGE_NONE)
		state->image = image_add(builder, &state->thread, state->thread.exec_gen,
					 state->thread.comm);
	return state->image;
}

uint32_t wait_image(struct offcpu_builder *builder, const struct wait_key *key, uint64_t count)
{
	struct thread_state *state;
	uint32_t image;

	HASH_FIND(hh, builder->threads, &key->uid, sizeof(key->uid), state);
	if (!state || !state->thread.tid) {
		builder->unknown += count;
		return IMAGE_NONE;
	}
	image = thread_state_image(builder, state, key->exec_gen);
	if (image == IMAGE_NONE)
		builder->base.dropped += count;
	return image;
}

static void sums_subtract(struct thread_sums *a, const struct thread_sums *b)
{
	uint64_t *x = (uint64_t *)a;
	const uint64_t *y = (const uint64_t *)b;
	size_t i;

	_Static_assert(sizeof(*a) % sizeof(uint64_t) == 0, "thread_sums is made of words");
	for (i = 0; i < sizeof(*a) / sizeof(uint64_t); i++)
		x[i] = x[i] > y[i] ? x[i] - y[i] : 0;
}

static bool sums_are_none(const struct thread_sums *sums)
{
	static const struct thread_sums none;

	return memcmp(sums, &none, sizeof(none)) == 0;
}

/*
 * True if the thread ended in this window, so that its sums are final. end_ns may also be slightly
 * later than the end of the window: the thread's last context switch began before the end and was
 * counted in this window. In that case the thread's epoch is not builder->base.epoch, the number of
 * the next window.
 */
static bool thread_is_over(const struct offcpu_builder *builder, const struct thread_state *state)
{
	return state->has_ended && (state->end_ns <= builder->base.end_ns ||
				    state->thread.epoch != builder->base.epoch);
}

/* True if the thread was found when threads were read for this window, or has ended. */
static bool thread_is_seen(const struct offcpu_builder *builder, const struct thread_state *state)
{
	return state->has_ended || state->epoch == builder->base.epoch;
}

/*
 * Stores the time that the thread spent in each state during a part of the window, in which it ran
 * one program; exec_gen identifies this program. *from has the thread's sums at the beginning of
 * this part, *to has those at its end: the time is the difference. Then copies *to to *from,
 * because the next part begins there.
 */
static void image_sum(struct offcpu_builder *builder, struct thread_state *state, uint32_t exec_gen,
		      const struct thread_sums *to, struct thread_sums *from)
{
	struct thread_sums share = *to;
	uint32_t image;

	sums_subtract(&share, from);
	/* Add no entry for a program that the thread ran only before or only after the window. */
	if (sums_are_none(&share) && (state->past || exec_gen != state->thread.exec_gen))
		return;
	*from = *to;
	image = thread_state_image(builder, state, exec_gen);
	if (image == IMAGE_NONE)
		builder->base.dropped++;
	else
		builder->base.window->images[image].sums = share;
}

/*
 * For each of the thread's execs, stores the time that the thread spent in the window before that
 * exec and after the previous one. Begins with the oldest exec. If an exec came after the end of
 * the window, stores only the time until the end of the window.
 */
static void past_identities_sum(struct offcpu_builder *builder, struct thread_state *state,
				const struct past_identity *past, struct thread_sums *from)
{
	if (!past)
		return;
	past_identities_sum(builder, state, past->next, from);
	image_sum(builder, state, past->exec_gen,
		  past->epoch == builder->base.epoch ? &state->now : &past->sums, from);
}

/*
 * Divides the thread's time in the window among the programs that it ran. An exec begins the next
 * program.
 */
static void thread_share(struct offcpu_builder *builder, struct thread_state *state)
{
	const struct thread *t = &state->thread;
	struct thread_sums from;

	state->now = thread_is_over(builder, state)
			     ? t->sums
			     : thread_sums_at(t, builder->base.epoch, builder->base.end_ns);
	/*
	 * If the thread was not read for the previous window, for example for lack of memory, its
	 * sums at the end of that window are in at_cut.
	 */
	if (!state->has_last && t->epoch + 1 == builder->base.epoch)
		state->last = t->at_cut;
	/*
	 * All sums are 0 if the thread was created after the end of the window: it is not in this
	 * window.
	 */
	if (sums_are_none(&state->now))
		return;
	from = state->last;
	past_identities_sum(builder, state, state->past, &from);
	image_sum(builder, state, t->exec_gen, &state->now, &from);
}

void threads_to_images(struct offcpu_builder *builder)
{
	struct thread_state *state, *next;

	HASH_ITER (hh, builder->threads, state, next)
		if (thread_is_seen(builder, state))
			thread_share(builder, state);
}

/*
 * Prepares the states for the next window. Frees the states of threads that have ended, and of
 * threads that were not found for two windows in a row. A thread is kept the first time it is not
 * found: it may have ended after the window, and the record of its end may not have arrived yet.
 */
void threads_roll(struct offcpu_builder *builder)
{
	struct thread_state *state, *next;
	bool is_seen;

	HASH_ITER (hh, builder->threads, state, next) {
		is_seen = thread_is_seen(builder, state);
		if (thread_is_over(builder, state) || (!is_seen && state->is_missing)) {
			thread_state_drop(builder, state);
			continue;
		}
		state->image = IMAGE_NONE;
		past_identities_age(state);
		state->is_missing = !is_seen;
		if (is_seen) {
			state->last = state->now;
			state->has_last = true;
		}
	}
}
