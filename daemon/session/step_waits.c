/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/session/step_waits.h"

#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/base/log.h"
#include "daemon/session/session.h"
#include "daemon/window/reason_find.h"
#include "daemon/window/window.h"

/*
 * THREADS_MAX: the maximum number of threads whose steps are followed; of more, the waits of those
 * that came last count from the beginning of their present step. STEPS_PART: steps belong together
 * as long as the thread waits for this part of each window in the same way, in percent.
 */
enum { THREADS_MAX = 256, STEPS_PART = 90 };

/* A thread that waits for a program's own lock. */
struct thread_steps {
	uint64_t uid;		    /* of the thread, see struct window_image */
	uint64_t place;		    /* of the user stack in which it waits, see stack_place() */
	enum wait_reason by_kernel; /* the reason that the kernel stack alone shows */
	int64_t start_ns;	    /* when the first step began, CLOCK_MONOTONIC */
	uint64_t waited_ns;	    /* for how long it waited at that place in the present window */
};

struct step_waits {
	struct thread_steps threads[THREADS_MAX]; /* the first n are used */
	size_t n;
	int64_t end_ns; /* of the last window, CLOCK_MONOTONIC */
};

struct step_waits *step_waits_new(void)
{
	return calloc(1, sizeof(struct step_waits));
}

struct step_waits *step_waits_free(struct step_waits *steps)
{
	free(steps);
	return NULL;
}

/*
 * Returns the entry of a thread that waits at the place; NULL if it is not followed. Place 0: the
 * user stack was not read yet, as at the beginning of each step, so it may be the next one.
 */
static struct thread_steps *thread_find(struct step_waits *steps, uint64_t uid, uint64_t place)
{
	for (size_t i = 0; i < steps->n; i++) {
		struct thread_steps *thread = &steps->threads[i];

		if (thread->uid == uid && (!place || thread->place == place))
			return thread;
	}
	return NULL;
}

/* Adds `ns` to the time for which a thread waited at the place in this window, if it is followed.
 */
static void waited_add(struct step_waits *steps, const struct window *window, uint32_t image,
		       const struct stack *user, uint64_t ns)
{
	struct thread_steps *thread =
		thread_find(steps, window->images[image].uid, stack_place(user));

	if (thread)
		thread->waited_ns += ns;
}

/* Adds up for how long the threads waited at their places in this window. */
static void waited_sum(struct step_waits *steps, const struct window *window)
{
	size_t i;

	for (i = 0; i < window->n_rows; i++) {
		const struct window_row *row = &window->rows[i];

		if (row->user)
			waited_add(steps, window, row->image, row->user,
				   row->blocked_ns + row->runnable_ns);
	}
	for (i = 0; i < window->n_spans; i++) {
		const struct window_span *span = &window->spans[i];

		if (span->user)
			waited_add(steps, window, span->image, span->user,
				   window_overlap_ns(span->start_ns, span->end_ns, window->start_ns,
						     window->end_ns));
	}
	for (i = 0; i < window->n_opens; i++) {
		const struct window_open *open = &window->opens[i];

		if (!open->count)
			waited_add(steps, window, open->image, open->user,
				   window_overlap_ns(open->start_ns, window->end_ns,
						     window->start_ns, window->end_ns));
	}
}

/* Forgets the threads that did something else for more than a small part of the window. */
static void threads_forget(struct step_waits *steps, const struct window *window)
{
	const uint64_t length = (uint64_t)(window->end_ns - window->start_ns);
	size_t n = 0;

	for (size_t i = 0; i < steps->n; i++) {
		struct thread_steps thread = steps->threads[i];

		if (thread.waited_ns * 100 < length * STEPS_PART)
			continue;
		thread.waited_ns = 0;
		steps->threads[n++] = thread;
	}
	steps->n = n;
}

static enum wait_reason reason_by_kernel(uint32_t state, struct stack *kernel)
{
	return reason_find(state, kernel, NULL);
}

/* Follows the thread from the beginning of a step on. */
static void thread_follow(struct step_waits *steps, const struct thread_steps *first)
{
	if (steps->n < THREADS_MAX)
		steps->threads[steps->n++] = *first;
}

/*
 * Follows the threads whose steps in this window have ended and took most of it: none of them may
 * be long enough for its user stack to be read while it goes on.
 */
static void ended_follow(struct step_waits *steps, const struct window *window)
{
	const uint64_t length = (uint64_t)(window->end_ns - window->start_ns);

	for (size_t i = 0; i < window->n_rows; i++) {
		const struct window_row *row = &window->rows[i];
		const uint64_t uid = window->images[row->image].uid, place = stack_place(row->user);

		if ((row->blocked_ns + row->runnable_ns) * 100 < length * STEPS_PART ||
		    !row->user || window->images[row->image].folded ||
		    thread_find(steps, uid, place) ||
		    reason_find(row->state, row->kernel, row->user) != REASON_PROGRAM_LOCK)
			continue;
		thread_follow(steps, &(struct thread_steps){
					     .uid = uid,
					     .place = place,
					     .by_kernel = reason_by_kernel(row->state, row->kernel),
					     .start_ns = window->start_ns,
				     });
	}
}

/*
 * True if the wait goes on and is for a lock that the program has made itself. If its user stack
 * was not read yet, that of the thread's last step stands for it where the kernel stack shows the
 * same.
 */
static bool is_for_own_lock(const struct window *window, const struct window_open *open,
			    const struct thread_steps *thread)
{
	if (!window_open_is_one(window, open))
		return false;
	if (!open->user)
		return thread && thread->by_kernel == reason_by_kernel(open->state, open->kernel);
	return reason_find(open->state, open->kernel, open->user) == REASON_PROGRAM_LOCK;
}

/* Adds the wait to window->held, from its first step on. Returns 0 or -ENOMEM. */
static int window_put(struct window *window, const struct window_open *open, int64_t start_ns)
{
	const struct window_image *image = &window->images[open->image];
	struct process_info info;
	struct held_wait wait = {
		.tid = image->tid,
		.since_ns = start_ns + window->real_offset_ns,
		.last_ns = window->end_ns + window->real_offset_ns,
		.reason = REASON_PROGRAM_LOCK,
	};

	process_info(image->process, &info);
	wait.pid = (int32_t)info.id.pid;
	memcpy(wait.comm, image->comm, sizeof(wait.comm));
	return window_held_put(&window->held, &wait);
}

void step_waits_find(struct step_waits *steps, struct window *window)
{
	int r = 0;

	if (window->session >= SESSION_FIRST_ID || !probe_kind_has(window->kind, PROBE_OPEN_WAITS))
		return;
	/* The windows do not say what threads did between them. */
	if (window->start_ns > steps->end_ns + NS_PER_MS)
		steps->n = 0;
	steps->end_ns = window->end_ns;
	waited_sum(steps, window);
	threads_forget(steps, window);
	ended_follow(steps, window);
	for (size_t i = 0; i < window->n_opens && !r; i++) {
		const struct window_open *open = &window->opens[i];
		const struct thread_steps *thread = thread_find(
			steps, window->images[open->image].uid, stack_place(open->user));

		if (!is_for_own_lock(window, open, thread))
			continue;
		if (!thread)
			thread_follow(steps, &(struct thread_steps){
						     .uid = window->images[open->image].uid,
						     .place = stack_place(open->user),
						     .by_kernel = reason_by_kernel(open->state,
										   open->kernel),
						     .start_ns = open->start_ns,
					     });
		else if (thread->start_ns < open->start_ns && window->held.n < HELD_WAITS_MAX)
			r = window_put(window, open, thread->start_ns);
	}
	if (r)
		log_err(r, "keep the waits that are made in steps");
}
