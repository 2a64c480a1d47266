/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/assembler.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/hash_table.h"
#include "proto/base.h"

enum { NO_IMAGE = UINT32_MAX };

/*
 * What a thread was before an exec in this window, or in the one before: an exec between a cut and
 * its reading is told too early, the image's last waits are in the next window.
 */
struct former {
	struct former *next;
	uint32_t exec_gen;
	uint32_t image;
	bool is_old;
	char comm[COMM_LEN];
};

struct track {
	uint64_t uid;
	struct thread thread;	 /* as read at this cut, or as it ended */
	struct thread_sums last; /* at the start of the window */
	struct thread_sums now;	 /* at its end */
	struct former *former;
	uint32_t epoch; /* the cut it was seen at */
	uint32_t image;
	uint64_t span_start_ns; /* of the last wait that came as a record */
	bool has_last;		/* was there at a cut before */
	bool is_missing;	/* nothing of it came at the last cut */
	bool has_ended;
	int64_t end_ns;
	UT_hash_handle hh; /* assembler.tracks */
};

/* Grows by doubling; `n` records of `size`. */
struct list {
	void *items;
	size_t n;
	size_t room;
};

struct row {
	struct wait_key key;
	struct wait_sums sums;
};

struct assembler {
	struct process_table *processes;
	struct stack_table *stacks;
	int64_t min_wait_ns;
	struct track *tracks; /* by uid */
	struct list waits;    /* struct record_wait, not yet in a window */
	struct list rows;     /* struct row, of the cut in progress */
	int64_t start_ns;
	int64_t end_ns;
	uint32_t epoch;
	uint64_t dropped; /* for want of memory, since the last window */
	uint64_t unknown; /* waits of unknown threads, since then */
	struct window *window;
};

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

static void track_drop(struct assembler *assembler, struct track *track)
{
	HASH_DEL(assembler->tracks, track);
	while (track->former)
		track_age_former(track);
	free(track);
}

struct assembler *assembler_free(struct assembler *assembler)
{
	struct track *track, *next;

	if (!assembler)
		return NULL;
	HASH_ITER(hh, assembler->tracks, track, next)
	track_drop(assembler, track);
	window_unref(assembler->window);
	free(assembler->waits.items);
	free(assembler->rows.items);
	free(assembler);
	return NULL;
}

static struct track *track_get(struct assembler *assembler, uint64_t uid)
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

static uint64_t overlap(int64_t from, int64_t to, int64_t start, int64_t end)
{
	if (from < start)
		from = start;
	if (to > end)
		to = end;
	return to > from ? (uint64_t)(to - from) : 0;
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
	else if (t->wake_ns)
		wake = (int64_t)t->wake_ns;
	sums.blocked_ns += overlap(from, wake < at_ns ? wake : at_ns, 0, INT64_MAX);
	sums.runnable_ns += overlap(wake > from ? wake : from, at_ns, 0, INT64_MAX);
	return sums;
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

/* The image of a thread that a wait belongs to; an older one when it went through an exec. */
static uint32_t track_image(struct assembler *assembler, struct track *track, uint32_t exec_gen)
{
	struct former *former;

	for (former = track->former; former && exec_gen != track->thread.exec_gen;
	     former = former->next) {
		if (former->exec_gen != exec_gen)
			continue;
		if (former->image == NO_IMAGE)
			former->image =
				image_add(assembler, &track->thread, exec_gen, former->comm);
		return former->image;
	}
	if (track->image == NO_IMAGE)
		track->image = image_add(assembler, &track->thread, track->thread.exec_gen,
					 track->thread.comm);
	return track->image;
}

/* The image of these waits; counts them as lost when there is none. */
static uint32_t wait_image(struct assembler *assembler, const struct wait_key *key, uint64_t count)
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

/* Threads that were created after the cut have no part in the window. */
static bool track_is_in_window(const struct track *track)
{
	static const struct thread_sums none;

	return memcmp(&track->now, &none, sizeof(none)) != 0;
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

static void track_sum(struct assembler *assembler, struct track *track)
{
	const struct thread *t = &track->thread;
	struct thread_sums sums;
	uint32_t image;

	track->now = track_is_over(assembler, track)
			     ? t->sums
			     : thread_sums_at(t, assembler->epoch, assembler->end_ns);
	/* Not remembered, for want of memory maybe: what it was before is not of this window. */
	if (!track->has_last && t->epoch + 1 == assembler->epoch)
		track->last = t->at_cut;
	if (!track_is_in_window(track))
		return;
	image = track_image(assembler, track, t->exec_gen);
	if (image == NO_IMAGE) {
		assembler->dropped++;
		return;
	}
	sums = track->now;
	sums_subtract(&sums, &track->last);
	assembler->window->images[image].sums = sums;
}

static void tracks_to_images(struct assembler *assembler)
{
	struct track *track, *next;

	HASH_ITER(hh, assembler->tracks, track, next)
	if (track_is_seen(assembler, track))
		track_sum(assembler, track);
}

static void rows_to_window(struct assembler *assembler)
{
	const struct row *rows = assembler->rows.items;
	struct window *window = assembler->window;
	struct window_row *row;
	uint32_t image;
	size_t i;

	for (i = 0; i < assembler->rows.n; i++) {
		const struct wait_sums *sums = &rows[i].sums;

		image = wait_image(assembler, &rows[i].key, sums->count);
		if (image == NO_IMAGE)
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

	if (image == NO_IMAGE)
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
}

static void open_add(struct assembler *assembler, const struct wait_key *key, int64_t start_ns,
		     int64_t wake_ns)
{
	uint32_t image = wait_image(assembler, key, 1);
	struct window_open *open;

	if (image == NO_IMAGE)
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
	open->kernel = stack_table_get(assembler->stacks, key->kstack, false);
	open->user = stack_table_get(assembler->stacks, key->ustack, true);
}

/*
 * A wait that ended after the cut was open at it, also when its thread was read as running; and
 * however short it was by then: it is known to have become longer.
 */
static void wait_to_open(struct assembler *assembler, const struct record_wait *wait)
{
	struct track *track;

	HASH_FIND(hh, assembler->tracks, &wait->key.uid, sizeof(wait->key.uid), track);
	if (track && track->thread.tid)
		open_add(assembler, &wait->key, (int64_t)wait->start_ns, (int64_t)wait->wake_ns);
}

static void waits_to_window(struct assembler *assembler)
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
static void open_stacks(const struct thread *t, struct wait_key *key)
{
	if (t->flags & THREAD_IS_NEW) {
		key->kstack = STACK_NEW_THREAD;
	} else if (t->kstack != STACK_NONE) {
		key->kstack = t->kstack;
		key->ustack = t->ustack;
	} else {
		key->kstack = t->open_since_ns == t->since_ns ? t->open_kstack : STACK_UNREAD;
	}
}

static void track_to_open(struct assembler *assembler, const struct track *track)
{
	const struct thread *t = &track->thread;
	struct wait_key key = {
		.uid = track->uid,
		.exec_gen = t->exec_gen,
		.state = t->wait_state,
	};
	int64_t wake = INT64_MAX, since = (int64_t)t->since_ns;

	if (t->status == THREAD_RUNNABLE)
		wake = since;
	else if (t->wake_ns && (int64_t)t->wake_ns < assembler->end_ns)
		wake = (int64_t)t->wake_ns > since ? (int64_t)t->wake_ns : since;
	open_stacks(t, &key);
	open_add(assembler, &key, since, wake);
}

/*
 * At the cut, and long enough by then; not one of a thread that was found after it. A wait whose
 * record has come ended between the cut and the reading: the record tells more.
 */
static bool track_is_waiting(const struct assembler *assembler, const struct track *track)
{
	const struct thread *t = &track->thread;
	int64_t since = (int64_t)t->since_ns, end = assembler->end_ns;

	if (t->flags & THREAD_IS_SEEDED && (int64_t)t->seeded_ns >= end)
		return false;
	return t->status != THREAD_ON_CPU && since < end && end - since >= assembler->min_wait_ns &&
	       track->span_start_ns != t->since_ns;
}

static void tracks_to_opens(struct assembler *assembler)
{
	struct track *track, *next;

	HASH_ITER(hh, assembler->tracks, track, next)
	if (!track->has_ended && track->epoch == assembler->epoch &&
	    track_is_waiting(assembler, track))
		track_to_open(assembler, track);
}

/*
 * Ready for the next window: who ended is forgotten. So is who was not seen, a cut later: the
 * record of a thread that ended after the cut and before the reading may still be on its way.
 */
static void tracks_roll(struct assembler *assembler)
{
	struct track *track, *next;
	bool is_seen;

	HASH_ITER(hh, assembler->tracks, track, next)
	{
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
