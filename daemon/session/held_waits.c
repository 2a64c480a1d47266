/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/session/held_waits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/base/log.h"
#include "daemon/holder/holder.h"
#include "daemon/window/idle_wait.h"
#include "daemon/window/reason_find.h"
#include "daemon/window/window.h"

/*
 * KEPT: the maximum number of waits of which is known what was found; a few times HOLDER_LOOKUPS,
 * as there can be several sessions, and as those that are known must not keep others out. COST:
 * look-ups pause for this many times the CPU time of the last ones, and for a tenth of that many
 * times as long as they took. TRIES: how often a wait is looked up at most if that does not end in
 * time.
 */
enum { KEPT = 4 * HOLDER_LOOKUPS, COST = 100, TRIES = 3 };

/*
 * A wait is looked up again after a quarter of the time that it has gone on: others may hold what
 * it is for by then. Most hosts have some that go on for hours, each of which would cost as much as
 * a new one. The least of that time is a bit less than two windows of the default length, so that
 * every second window of a wait of half a minute has what was just looked up.
 */
#define AGAIN_LEAST_NS (9 * NS_PER_S)
#define AGAIN_MOST_NS  (60 * NS_PER_S)

/* The starts of one wait, as two sessions measure them, differ by less than this. */
#define SAME_NS (10 * NS_PER_MS)

_Static_assert((int)HELD_BY_MAX == (int)HOLDER_SHOWN, "each answer fits");
_Static_assert((int)HELD_WAITS_MAX >= 2 * (int)HOLDER_LOOKUPS,
	       "each wait of one look-up and that of its holder fit");

/* A wait that was looked up. */
struct kept {
	int64_t start_ns;      /* CLOCK_MONOTONIC, as the next two */
	int64_t tried_ns;      /* when it was looked up last */
	int64_t looked_ns;     /* when `wait` was found; 0: nothing was found */
	uint64_t used;	       /* number of the last window that had the wait; 0: a free entry */
	unsigned int late;     /* number of last look-ups that did not end in time */
	struct held_wait wait; /* looked_ns and last_ns are not set */
};

struct held_waits {
	uint64_t windows; /* number of windows with waits that were to be looked up */
	int64_t next_ns;  /* when waits may be looked up again */
	bool is_failing;  /* the last look-ups failed, which was logged */
	struct kept kept[KEPT];
};

/* A wait of a window that has an object or a holder. */
struct candidate {
	const struct window_open *open;
	enum wait_reason reason;
	int64_t age_ns;	   /* how long the wait had gone on at the end of the window */
	struct kept *kept; /* NULL: it was not looked up yet */
	bool is_asked;	   /* it is among those that are looked up now */
};

struct held_waits *held_waits_new(void)
{
	return calloc(1, sizeof(struct held_waits));
}

struct held_waits *held_waits_free(struct held_waits *held)
{
	size_t i;

	for (i = 0; held && i < KEPT; i++)
		held_wait_fini(&held->kept[i].wait);
	free(held);
	return NULL;
}

/* True if a thread was found to hold what another one waited for in this window or the last one. */
static bool is_holder(const struct held_waits *held, int32_t tid)
{
	for (size_t i = 0; i < KEPT; i++) {
		const struct kept *kept = &held->kept[i];

		for (size_t k = 0; kept->used + 1 >= held->windows && k < kept->wait.n_by; k++)
			if (kept->wait.by[k].tid == tid)
				return true;
	}
	return false;
}

/*
 * True if a wait matters though it may be idle: that of a holder for its child, which may be the
 * one to blame. Others wait for children, too, and looking all of them up takes long.
 */
static bool is_wait_of_holder(const struct held_waits *held, enum wait_reason reason, int32_t tid)
{
	return reason == REASON_CHILD && is_holder(held, tid);
}

/*
 * Fills *out if the wait is long, not idle or that of a holder for its child, and for something
 * that can be looked up.
 */
static bool candidate_make(const struct held_waits *held, const struct window *window,
			   const struct window_open *open, struct candidate *out)
{
	struct process_info info;

	if (window->end_ns - open->start_ns < HELD_WAIT_NS || !window_open_is_one(window, open))
		return false;
	*out = (struct candidate){
		.open = open,
		.reason = reason_find(open->state, open->kernel, open->user),
		.age_ns = window->end_ns - open->start_ns,
	};
	if (!holder_knows(out->reason))
		return false;
	if (wait_is_idle(open->state, false, open->kernel, open->user) &&
	    !is_wait_of_holder(held, out->reason, window->images[open->image].tid))
		return false;
	process_info(window->images[open->image].process, &info);
	return !info.is_kernel;
}

/* Compares candidates for qsort(): locks first, then the longest wait. */
static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	const bool x_is_lock = wait_reason_is_lock(x->reason),
		   y_is_lock = wait_reason_is_lock(y->reason);

	if (x_is_lock != y_is_lock)
		return x_is_lock ? -1 : 1;
	return (x->open->start_ns > y->open->start_ns) - (x->open->start_ns < y->open->start_ns);
}

/*
 * Sets *out to the window's candidates, at most KEPT of them; the caller frees them. Returns how
 * many there are, 0 also without memory.
 */
static size_t candidates_find(const struct held_waits *held, const struct window *window,
			      struct candidate **out)
{
	struct candidate *all, one;
	size_t i, n = 0;

	*out = NULL;
	for (i = 0; i < window->n_opens; i++)
		n += candidate_make(held, window, &window->opens[i], &one);
	all = n ? calloc(n, sizeof(*all)) : NULL;
	if (!all)
		return 0;
	for (n = i = 0; i < window->n_opens; i++)
		if (candidate_make(held, window, &window->opens[i], &one))
			all[n++] = one;
	qsort(all, n, sizeof(*all), compare_candidates);
	*out = all;
	return n < KEPT ? n : KEPT;
}

/* Returns what was found about a wait; NULL if it was not looked up. */
static struct kept *kept_find(struct held_waits *held, int32_t tid, int64_t start_ns)
{
	size_t i;

	for (i = 0; i < KEPT; i++) {
		struct kept *kept = &held->kept[i];

		if (kept->used && kept->wait.tid == tid && kept->start_ns < start_ns + SAME_NS &&
		    start_ns < kept->start_ns + SAME_NS)
			return kept;
	}
	return NULL;
}

/* Returns an entry for another wait: a free one, or the one whose wait was not seen for longest. */
static struct kept *kept_take(struct held_waits *held)
{
	struct kept *oldest = &held->kept[0];
	size_t i;

	for (i = 1; i < KEPT; i++)
		if (held->kept[i].used < oldest->used)
			oldest = &held->kept[i];
	held_wait_fini(&oldest->wait);
	*oldest = (struct kept){};
	return oldest;
}

/* Returns a copy of a text; a long one is cut, and ends with "...". NULL also without memory. */
static char *text_copy(const char *text)
{
	char *copy = text ? strndup(text, HELD_TEXT) : NULL;
	size_t n = HELD_TEXT - strlen("...");

	if (!copy || strlen(text) <= HELD_TEXT)
		return copy;
	/* Do not cut within a character of UTF-8. */
	while (n > 0 && ((unsigned char)copy[n] & 0xc0) == 0x80)
		n--;
	memcpy(copy + n, "...", sizeof("..."));
	return copy;
}

/* Fills *wait with what is known about a wait without a look-up. */
static void wait_init(const struct window *window, const struct window_open *open,
		      enum wait_reason reason, struct held_wait *wait)
{
	const struct window_image *image = &window->images[open->image];
	struct process_info info;

	process_info(image->process, &info);
	*wait = (struct held_wait){
		.pid = (int32_t)info.id.pid,
		.tid = image->tid,
		.since_ns = open->start_ns + window->real_offset_ns,
		.reason = reason,
	};
	memcpy(wait->comm, image->comm, sizeof(wait->comm));
}

/* True if an answer says something. That it took too long does not replace what was found before.
 */
static bool answer_is_news(const struct holder_answer *answer, bool is_first)
{
	if (!answer->is_known || answer->unknown == holder_went_on)
		return false;
	if (answer->unknown == holder_took_too_long && !answer->n && !is_first)
		return false;
	return answer->object || answer->n || answer->unknown;
}

/* Keeps what was found about a wait, or that nothing was. */
static void answer_keep(struct held_waits *held, const struct window *window,
			struct candidate *candidate, const struct holder_answer *answer)
{
	struct kept *kept = candidate->kept ? candidate->kept : kept_take(held);
	struct held_wait *wait = &kept->wait;
	size_t i;

	candidate->kept = kept;
	kept->late = answer->is_known ? 0 : kept->late + 1;
	kept->used = held->windows;
	kept->start_ns = candidate->open->start_ns;
	kept->tried_ns = clock_ns(CLOCK_MONOTONIC);
	wait->tid = window->images[candidate->open->image].tid;
	if (!answer_is_news(answer, !kept->looked_ns))
		return;
	kept->looked_ns = kept->tried_ns;
	held_wait_fini(wait);
	wait_init(window, candidate->open, candidate->reason, wait);
	wait->object = text_copy(answer->object);
	wait->unknown = text_copy(answer->unknown);
	wait->more = (uint32_t)answer->more;
	for (i = 0; i < answer->n; i++) {
		struct held_by *by = &wait->by[wait->n_by++];

		by->pid = answer->holders[i].pid;
		by->tid = answer->holders[i].tid;
		memcpy(by->comm, answer->holders[i].comm, sizeof(by->comm));
	}
}

/* The candidates that are looked up together. */
struct look_up {
	struct holder_question questions[HOLDER_LOOKUPS];
	struct holder_answer answers[HOLDER_LOOKUPS];
	struct candidate *asked[HOLDER_LOOKUPS];
	size_t n;
};

/* Which candidates are looked up, in this order. */
enum turn { TURN_FIRST, TURN_AGAIN, TURN_LATE, TURNS };

/* True if it is time to look up again what the wait of a candidate is for. */
static bool is_due(const struct candidate *candidate, int64_t now_ns)
{
	int64_t again_ns = candidate->age_ns / 4;

	if (again_ns < AGAIN_LEAST_NS)
		again_ns = AGAIN_LEAST_NS;
	else if (again_ns > AGAIN_MOST_NS)
		again_ns = AGAIN_MOST_NS;
	return now_ns - candidate->kept->tried_ns >= again_ns;
}

/* Returns when it is a candidate's turn; TURNS: not now. */
static enum turn turn_of(const struct candidate *candidate, int64_t now_ns)
{
	const struct kept *kept = candidate->kept;

	if (!kept)
		return TURN_FIRST;
	/* One that hangs must not keep others from being looked up. */
	if (kept->late)
		return kept->late < TRIES ? TURN_LATE : TURNS;
	return is_due(candidate, now_ns) ? TURN_AGAIN : TURNS;
}

/*
 * Returns the next candidate whose turn it is: if they are to be looked up again, that which was
 * looked up longest ago, so that each comes round if there are many; else the first one. NULL if
 * there is none.
 */
static struct candidate *candidate_next(struct candidate *candidates, size_t n, enum turn turn,
					int64_t now_ns)
{
	struct candidate *next = NULL;
	size_t i;

	for (i = 0; i < n; i++) {
		if (candidates[i].is_asked || turn_of(&candidates[i], now_ns) != turn)
			continue;
		if (!next ||
		    (turn == TURN_AGAIN && candidates[i].kept->tried_ns < next->kept->tried_ns))
			next = &candidates[i];
	}
	return next;
}

/* Adds the candidates whose turn it is, as far as there is room. */
static void look_up_add(struct look_up *look_up, const struct window *window,
			struct candidate *candidates, size_t n, enum turn turn, int64_t now_ns)
{
	struct process_info info;
	struct candidate *next;

	while (look_up->n < HOLDER_LOOKUPS &&
	       (next = candidate_next(candidates, n, turn, now_ns))) {
		const struct window_image *image = &window->images[next->open->image];

		next->is_asked = true;
		process_info(image->process, &info);
		look_up->questions[look_up->n] = (struct holder_question){
			.pid = (int32_t)info.id.pid,
			.tid = image->tid,
			.start_boot_ns = image->start_boot_ns,
			.reason = next->reason,
		};
		look_up->asked[look_up->n++] = next;
	}
}

/*
 * Returns for how long no look-ups are made after some that took a time and a CPU time. On a busy
 * host, where they are most wanted, they take long without costing much.
 */
static int64_t pause_of(int64_t took_ns, int64_t cpu_ns)
{
	return COST * (cpu_ns > took_ns / 10 ? cpu_ns : took_ns / 10);
}

/* Looks up the candidates whose turn it is, unless the last look-ups took too long. */
static void candidates_look_up(struct held_waits *held, const struct window *window,
			       struct candidate *candidates, size_t n)
{
	const int64_t begun_ns = clock_ns(CLOCK_MONOTONIC);
	struct look_up look_up = {};
	enum turn turn;
	int64_t ended_ns, cpu_ns = 0;
	size_t i;
	int r;

	for (turn = 0; turn < TURNS; turn++)
		look_up_add(&look_up, window, candidates, n, turn, begun_ns);
	if (!look_up.n || begun_ns < held->next_ns)
		return;
	r = holder_find(look_up.questions, look_up.n, HOLDER_FOR_WINDOW, look_up.answers, &cpu_ns);
	ended_ns = clock_ns(CLOCK_MONOTONIC);
	held->next_ns = ended_ns + pause_of(ended_ns - begun_ns, cpu_ns);
	/* A client's look-ups may take long, and an earlier child may hang: not our fault. */
	if (r && r != -EBUSY && !held->is_failing)
		log_err(r, "look up the holders of long waits");
	held->is_failing = r != 0;
	for (i = 0; i < look_up.n && !r; i++) {
		answer_keep(held, window, look_up.asked[i], &look_up.answers[i]);
		/* The others behind this one were not reached. */
		if (!look_up.answers[i].is_known)
			break;
	}
	holder_answers_fini(look_up.answers, look_up.n);
}

/*
 * Adds the wait of the thread that holds what another thread waits for, if it waits, too. Returns 0
 * or -ENOMEM.
 */
static int holder_add_wait(struct window *window, int32_t tid)
{
	const int64_t end_ns = window->end_ns + window->real_offset_ns;
	struct held_wait wait;
	size_t i;

	if (!tid || window_held_at(&window->held, tid, end_ns))
		return 0;
	for (i = 0; i < window->n_opens; i++) {
		const struct window_open *open = &window->opens[i];

		if (window->images[open->image].tid != tid || !window_open_is_one(window, open))
			continue;
		wait_init(window, open, reason_find(open->state, open->kernel, open->user), &wait);
		wait.last_ns = end_ns;
		return window_held_put(&window->held, &wait);
	}
	return 0;
}

/* Adds what was found about a wait to the window, if anything was. Returns 0 or -ENOMEM. */
static int window_put(struct window *window, const struct candidate *candidate)
{
	const struct kept *kept = candidate->kept;
	struct held_wait copy;
	int r;

	if (!kept || !kept->looked_ns)
		return 0;
	r = held_wait_copy(&kept->wait, &copy);
	if (r)
		return r;
	/* The clock may have been set since the look-up: all times are by this window's. */
	copy.since_ns = candidate->open->start_ns + window->real_offset_ns;
	copy.looked_ns = kept->looked_ns + window->real_offset_ns;
	copy.last_ns = window->end_ns + window->real_offset_ns;
	r = window_held_put(&window->held, &copy);
	for (uint32_t i = 0; !r && !kept->wait.more && i < kept->wait.n_by; i++)
		if (window->held.n < HELD_WAITS_MAX)
			r = holder_add_wait(window, kept->wait.by[i].tid);
	return r;
}

void held_waits_find(struct held_waits *held, struct window *window)
{
	_cleanup_(freep) struct candidate *candidates = NULL;
	size_t n, i;
	int r = 0;

	if (!probe_kind_has(window->kind, PROBE_OPEN_WAITS))
		return;
	n = candidates_find(held, window, &candidates);
	if (!n)
		return;
	held->windows++;
	for (i = 0; i < n; i++) {
		candidates[i].kept = kept_find(held, window->images[candidates[i].open->image].tid,
					       candidates[i].open->start_ns);
		if (candidates[i].kept)
			candidates[i].kept->used = held->windows;
	}
	candidates_look_up(held, window, candidates, n);
	for (i = 0; i < n && !r && window->held.n < HELD_WAITS_MAX; i++)
		r = window_put(window, &candidates[i]);
	if (r)
		log_err(r, "keep the holders of long waits");
}
