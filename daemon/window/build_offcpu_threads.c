/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/window/build_offcpu_internal.h"

#include <stdlib.h>
#include <string.h>

#include "common/base.h"

static void track_age_former(struct track *track)
{
	struct former **at = &track->former, *former;

	while ((former = *at)) {
		if (former->is_old) {
			*at = former->next;
			free(former);
			continue;
		}
		former->is_old = true;
		former->image = NO_IMAGE;
		at = &former->next;
	}
}

void track_drop(struct assembler *assembler, struct track *track)
{
	HASH_DEL(assembler->tracks, track);
	while (track->former)
		track_age_former(track);
	free(track);
}

struct track *track_get(struct assembler *assembler, uint64_t uid)
{
	struct track *track;

	HASH_FIND(hh, assembler->tracks, &uid, sizeof(uid), track);
	if (track)
		return track;
	track = calloc(1, sizeof(*track));
	if (!track) {
		assembler->dropped++;
		return NULL;
	}
	track->uid = uid;
	track->image = NO_IMAGE;
	HASH_ADD(hh, assembler->tracks, uid, sizeof(track->uid), track);
	if (!HASH_HAS(track)) {
		assembler->dropped++;
		free(track);
		return NULL;
	}
	return track;
}

static uint64_t overlap(int64_t from, int64_t to, int64_t start, int64_t end)
{
	if (from < start)
		from = start;
	if (to > end)
		to = end;
	return to > from ? (uint64_t)(to - from) : 0;
}

/* So far, of a wait that goes on: from where it was made runnable. */
uint64_t thread_throttled_at(const struct thread *t, int64_t wake_ns, int64_t at_ns)
{
	uint64_t ready = overlap(wake_ns, at_ns, 0, INT64_MAX);

	return t->open_throttled_ns < ready ? t->open_throttled_ns : ready;
}

/* The thread's sums at the cut: kept by its first event after it, or its present state until then.
 */
static struct thread_sums thread_sums_at(const struct thread *t, uint32_t epoch, int64_t at_ns)
{
	int64_t from = (int64_t)(t->flags & THREAD_IS_SEEDED ? t->seeded_ns : t->since_ns);
	struct thread_sums sums = t->sums;
	int64_t wake = INT64_MAX;

	if (t->epoch == epoch)
		return t->at_cut;
	if (t->status == THREAD_ON_CPU) {
		sums.on_ns += overlap(from, at_ns, 0, INT64_MAX);
		return sums;
	}
	if (t->status == THREAD_RUNNABLE)
		wake = from;
	else if (t->wake_ns >= t->since_ns)
		wake = (int64_t)t->wake_ns;
	sums.blocked_ns += overlap(from, wake < at_ns ? wake : at_ns, 0, INT64_MAX);
	sums.runnable_ns += overlap(wake > from ? wake : from, at_ns, 0, INT64_MAX);
	sums.throttled_ns += thread_throttled_at(t, wake > from ? wake : from, at_ns);
	return sums;
}

static uint32_t image_add(struct assembler *assembler, const struct thread *t, uint32_t exec_gen,
			  const char *comm)
{
	struct window *window = assembler->window;
	struct window_image *image = window_add_image(window);
	struct process_id id = {
		.pid = (int32_t)t->tgid,
		.exec_gen = exec_gen,
		.start_boot_ns = t->leader_boot_ns,
	};

	if (!image)
		return NO_IMAGE;
	image->uid = t->uid;
	image->tid = (int32_t)t->tid;
	image->start_boot_ns = t->start_boot_ns;
	image->exec_gen = exec_gen;
	/* Nothing but zeroes behind the name: it is part of keys. */
	memcpy(image->comm, comm, strnlen(comm, COMM_LEN - 1));
	image->process = process_table_see(assembler->processes, &id, t->flags & THREAD_IS_KERNEL,
					   t->tid == t->tgid ? image->comm : NULL);
	if (!image->process) {
		window->n_images--;
		return NO_IMAGE;
	}
	return (uint32_t)window->n_images - 1;
}

static uint32_t former_image_add(struct assembler *assembler, const struct thread *t,
				 const struct former *former)
{
	struct thread was = *t;

	was.tid = former->tid;
	was.start_boot_ns = former->start_boot_ns;
	return image_add(assembler, &was, former->exec_gen, former->comm);
}

/* The image of a thread that a wait belongs to; an older one when it went through an exec. */
static uint32_t track_image(struct assembler *assembler, struct track *track, uint32_t exec_gen)
{
	struct former *former;

	for (former = track->former; former && exec_gen != track->thread.exec_gen;
	     former = former->next) {
		if (former->exec_gen != exec_gen)
			continue;
		if (former->image == NO_IMAGE)
			former->image = former_image_add(assembler, &track->thread, former);
		return former->image;
	}
	if (track->image == NO_IMAGE)
		track->image = image_add(assembler, &track->thread, track->thread.exec_gen,
					 track->thread.comm);
	return track->image;
}

/* The image of these waits; counts them as lost when there is none. */
uint32_t wait_image(struct assembler *assembler, const struct wait_key *key, uint64_t count)
{
	struct track *track;
	uint32_t image;

	HASH_FIND(hh, assembler->tracks, &key->uid, sizeof(key->uid), track);
	if (!track || !track->thread.tid) {
		assembler->unknown += count;
		return NO_IMAGE;
	}
	image = track_image(assembler, track, key->exec_gen);
	if (image == NO_IMAGE)
		assembler->dropped += count;
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

/* Threads that were created after the cut have no part in the window. */
static bool track_is_in_window(const struct track *track)
{
	return !sums_are_none(&track->now);
}

/*
 * Ended in this window. By its epoch too: a switch on its way while the cut was made may carry a
 * time after it, but was charged to this window, and its sums are the last ones.
 */
static bool track_is_over(const struct assembler *assembler, const struct track *track)
{
	return track->has_ended &&
	       (track->end_ns <= assembler->end_ns || track->thread.epoch != assembler->epoch);
}

static bool track_is_seen(const struct assembler *assembler, const struct track *track)
{
	return track->has_ended || track->epoch == assembler->epoch;
}

/* The image's share of the window: from where the one before left off. Moves that to its end. */
static void image_sum(struct assembler *assembler, struct track *track, uint32_t exec_gen,
		      const struct thread_sums *to, struct thread_sums *from)
{
	struct thread_sums share = *to;
	uint32_t image;

	sums_subtract(&share, from);
	/* Gone before this window began, or new after it ended. */
	if (sums_are_none(&share) && (track->former || exec_gen != track->thread.exec_gen))
		return;
	*from = *to;
	image = track_image(assembler, track, exec_gen);
	if (image == NO_IMAGE)
		assembler->dropped++;
	else
		assembler->window->images[image].sums = share;
}

/* The shares of what it was before, the oldest first; up to the cut, if it was that still then. */
static void formers_sum(struct assembler *assembler, struct track *track,
			const struct former *former, struct thread_sums *from)
{
	if (!former)
		return;
	formers_sum(assembler, track, former->next, from);
	image_sum(assembler, track, former->exec_gen,
		  former->epoch == assembler->epoch ? &track->now : &former->sums, from);
}

static void track_sum(struct assembler *assembler, struct track *track)
{
	const struct thread *t = &track->thread;
	struct thread_sums from;

	track->now = track_is_over(assembler, track)
			     ? t->sums
			     : thread_sums_at(t, assembler->epoch, assembler->end_ns);
	/* Not remembered, for want of memory maybe: what it was before is not of this window. */
	if (!track->has_last && t->epoch + 1 == assembler->epoch)
		track->last = t->at_cut;
	if (!track_is_in_window(track))
		return;
	from = track->last;
	formers_sum(assembler, track, track->former, &from);
	image_sum(assembler, track, t->exec_gen, &track->now, &from);
}

void tracks_to_images(struct assembler *assembler)
{
	struct track *track, *next;

	HASH_ITER (hh, assembler->tracks, track, next)
		if (track_is_seen(assembler, track))
			track_sum(assembler, track);
}

/*
 * Ready for the next window: who ended is forgotten. So is who was not seen, a cut later: the
 * record of a thread that ended after the cut and before the reading may still be on its way.
 */
void tracks_roll(struct assembler *assembler)
{
	struct track *track, *next;
	bool is_seen;

	HASH_ITER (hh, assembler->tracks, track, next) {
		is_seen = track_is_seen(assembler, track);
		if (track_is_over(assembler, track) || (!is_seen && track->is_missing)) {
			track_drop(assembler, track);
			continue;
		}
		track->image = NO_IMAGE;
		track_age_former(track);
		track->is_missing = !is_seen;
		if (is_seen) {
			track->last = track->now;
			track->has_last = true;
		}
	}
}
