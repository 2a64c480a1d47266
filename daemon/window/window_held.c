/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/window/window_held.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/base.h"
#include "common/search.h"

/* Two waits of a thread that are looked up begin at least HELD_WAIT_NS apart. */
#define SAME_NS (HELD_WAIT_NS / 2)

void held_wait_fini(struct held_wait *wait)
{
	free(TAKE(wait->object));
	free(TAKE(wait->unknown));
}

int held_wait_copy(const struct held_wait *wait, struct held_wait *out)
{
	struct held_wait copy = *wait;

	copy.object = wait->object ? strdup(wait->object) : NULL;
	copy.unknown = wait->unknown ? strdup(wait->unknown) : NULL;
	if ((wait->object && !copy.object) || (wait->unknown && !copy.unknown)) {
		held_wait_fini(&copy);
		return -ENOMEM;
	}
	*out = copy;
	return 0;
}

/* Returns the index of the first wait that does not sort before the one of tid at since_ns. */
static size_t place_of(const struct window_held *held, int32_t tid, int64_t since_ns)
{
	return SEARCH(held->n, i,
		      held->v[i].tid < tid ||
			      (held->v[i].tid == tid && held->v[i].since_ns < since_ns));
}

const struct held_wait *window_held_find(const struct window_held *held, int32_t tid,
					 int64_t since_ns)
{
	size_t at = place_of(held, tid, since_ns - SAME_NS + 1);

	if (at == held->n || held->v[at].tid != tid || held->v[at].since_ns >= since_ns + SAME_NS)
		return NULL;
	return &held->v[at];
}

const struct held_wait *window_held_at(const struct window_held *held, int32_t tid, int64_t at_ns)
{
	size_t at = place_of(held, tid, at_ns + 1);

	if (at == 0 || held->v[at - 1].tid != tid || held->v[at - 1].last_ns < at_ns)
		return NULL;
	return &held->v[at - 1];
}

int64_t window_held_first_step(const struct window_held *held, int32_t tid, int64_t since_ns,
			       int64_t at_ns)
{
	size_t at = place_of(held, tid, INT64_MIN);

	for (; at < held->n && held->v[at].tid == tid; at++)
		if (held->v[at].reason == REASON_PROGRAM_LOCK && held->v[at].last_ns >= at_ns)
			return held->v[at].since_ns < since_ns ? held->v[at].since_ns : since_ns;
	return since_ns;
}

/*
 * True if another entry of the same wait is the one to keep: the last that was looked up, as what
 * others hold may change. One of the two may be only the wait of a holder, of which nothing was
 * looked up.
 */
static bool is_better(const struct held_wait *other, const struct held_wait *wait)
{
	return other->looked_ns > wait->looked_ns;
}

/* Takes over what is later in another entry of the same wait, which is then freed. */
static void wait_merge(struct held_wait *wait, struct held_wait *other)
{
	if (other->last_ns > wait->last_ns)
		wait->last_ns = other->last_ns;
	if (is_better(other, wait)) {
		const int64_t since_ns = wait->since_ns, last_ns = wait->last_ns;

		held_wait_fini(wait);
		*wait = *other;
		wait->since_ns = since_ns;
		wait->last_ns = last_ns;
		return;
	}
	held_wait_fini(other);
}

int window_held_put(struct window_held *held, struct held_wait *wait)
{
	struct held_wait *same =
		(struct held_wait *)window_held_find(held, wait->tid, wait->since_ns);
	size_t at;

	if (same) {
		wait_merge(same, wait);
		return 0;
	}
	if (held->n == HELD_SUM_MAX) {
		held->dropped++;
		held_wait_fini(wait);
		return 0;
	}
	if (array_reserve(held->v, held->capacity, held->n + 1)) {
		held_wait_fini(wait);
		return -ENOMEM;
	}
	at = place_of(held, wait->tid, wait->since_ns);
	memmove(&held->v[at + 1], &held->v[at], (held->n - at) * sizeof(*held->v));
	held->v[at] = *wait;
	held->n++;
	return 0;
}

int window_held_add(struct window_held *sum, const struct window_held *other)
{
	struct held_wait copy;
	size_t i;
	int r;

	sum->dropped += other->dropped;
	for (i = 0; i < other->n; i++) {
		const struct held_wait *wait = &other->v[i];
		struct held_wait *same =
			(struct held_wait *)window_held_find(sum, wait->tid, wait->since_ns);

		/* A long wait is in many windows: its texts are copied once. */
		if (same && !is_better(wait, same)) {
			if (wait->last_ns > same->last_ns)
				same->last_ns = wait->last_ns;
			continue;
		}
		r = held_wait_copy(wait, &copy);
		if (r)
			return r;
		r = window_held_put(sum, &copy);
		if (r)
			return r;
	}
	return 0;
}

/* Compares waits for qsort(): those that stay first come first. */
static int compare_worth(const void *a, const void *b)
{
	const struct held_wait *x = a, *y = b;
	const int64_t x_ns = x->last_ns - x->since_ns, y_ns = y->last_ns - y->since_ns;
	const bool x_is_lock = wait_reason_is_lock(x->reason),
		   y_is_lock = wait_reason_is_lock(y->reason);

	if (x_is_lock != y_is_lock)
		return x_is_lock ? -1 : 1;
	if (x_ns != y_ns)
		return x_ns > y_ns ? -1 : 1;
	return (x->tid > y->tid) - (x->tid < y->tid);
}

static int compare_place(const void *a, const void *b)
{
	const struct held_wait *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return (x->since_ns > y->since_ns) - (x->since_ns < y->since_ns);
}

void window_held_limit(struct window_held *held, size_t max)
{
	if (held->n <= max)
		return;
	qsort(held->v, held->n, sizeof(*held->v), compare_worth);
	while (held->n > max)
		held_wait_fini(&held->v[--held->n]);
	qsort(held->v, held->n, sizeof(*held->v), compare_place);
}

size_t window_held_bytes(const struct window_held *held)
{
	size_t bytes = held->capacity * sizeof(*held->v), i;

	for (i = 0; i < held->n; i++) {
		bytes += held->v[i].object ? strlen(held->v[i].object) + 1 : 0;
		bytes += held->v[i].unknown ? strlen(held->v[i].unknown) + 1 : 0;
	}
	return bytes;
}

void window_held_fini(struct window_held *held)
{
	size_t i;

	for (i = 0; i < held->n; i++)
		held_wait_fini(&held->v[i]);
	free(held->v);
	*held = (struct window_held){};
}
