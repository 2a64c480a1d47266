/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/window/build_offwake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/window/image_cache.h"

struct wake {
	struct wake_key key;
	struct wake_sums sums;
};

struct wakes {
	struct stack_table *stacks;
	struct image_cache images;
	struct wake *list;
	size_t n;
	size_t room;
	uint64_t dropped; /* waits, for want of memory, since the last window */
	struct window *window;
};

int wakes_new(struct process_table *processes, struct stack_table *stacks, struct wakes **out)
{
	struct wakes *wakes = calloc(1, sizeof(*wakes));

	if (!wakes)
		return -ENOMEM;
	wakes->images.processes = processes;
	wakes->stacks = stacks;
	*out = wakes;
	return 0;
}

struct wakes *wakes_free(struct wakes *wakes)
{
	if (!wakes)
		return NULL;
	free(wakes->list);
	free(wakes);
	return NULL;
}

/* Names are found when all stacks have come: the rows wait until then. */
void wakes_add(struct wakes *wakes, const struct wake_key *key, const struct wake_sums *sums)
{
	size_t room = wakes->room ? wakes->room * 2 : 256;
	struct wake *list;

	if (wakes->n == wakes->room) {
		list = reallocarray(wakes->list, room, sizeof(*list));
		if (!list) {
			wakes->dropped += sums->sums.count;
			return;
		}
		wakes->list = list;
		wakes->room = room;
	}
	wakes->list[wakes->n++] = (struct wake){ *key, *sums };
}

static void waker_fill(const struct wakes *wakes, const struct wake *wake,
		       struct window_waker *waker)
{
	size_t i;

	waker->kernel = stack_table_get(wakes->stacks, wake->key.waker_kstack, false);
	waker->user = stack_table_get(wakes->stacks, wake->key.waker_ustack, true);
	for (i = 0; i < WAKE_LINKS; i++) {
		const struct wake_link *link = &wake->sums.links[i];
		struct window_link *out = &waker->links[i];

		out->context = link->context < WAKE_CONTEXTS ? link->context : WAKE_UNKNOWN;
		out->pid = (int32_t)link->tgid;
		out->tid = (int32_t)link->tid;
		/* Nothing but zeroes behind the name: it is part of keys. */
		memcpy(out->comm, link->comm, strnlen(link->comm, COMM_LEN - 1));
	}
}

static void sums_fill(struct wakes *wakes, const struct wait_sums *sums, struct window_row *row)
{
	struct thread_sums *all = &wakes->window->images[row->image].sums;

	row->count = sums->count;
	row->blocked_ns = sums->blocked_ns;
	row->runnable_ns = sums->runnable_ns;
	row->max_ns = sums->max_ns;
	row->max_end_ns = (int64_t)sums->max_end_ns;
	if (window_row_set_buckets(wakes->window, row, sums->buckets))
		wakes->dropped++;
	all->blocked_ns += sums->blocked_ns;
	all->runnable_ns += sums->runnable_ns;
	all->switches += sums->count;
}

/* Rows and wakers go side by side. */
static void wake_to_window(struct wakes *wakes, const struct wake *wake)
{
	const struct sample_key *target = &wake->key.target;
	uint32_t image = image_cache_get(&wakes->images, wakes->window, target, wake->sums.comm);
	struct window_waker *waker;
	struct window_row *row = NULL;

	if (image != IMAGE_NONE)
		row = window_add_row(wakes->window);
	waker = row ? window_add_waker(wakes->window) : NULL;
	if (!waker) {
		wakes->window->n_rows -= row ? 1 : 0;
		wakes->dropped += wake->sums.sums.count;
		return;
	}
	row->image = image;
	row->state = wake->key.state;
	row->kernel = stack_table_get(wakes->stacks, target->kstack, false);
	row->user = stack_table_get(wakes->stacks, target->ustack, true);
	sums_fill(wakes, &wake->sums.sums, row);
	waker_fill(wakes, wake, waker);
}

struct window *wakes_finish(struct wakes *wakes, int64_t start_ns, int64_t end_ns)
{
	struct window *window = window_new();
	size_t i;

	if (!window)
		return NULL;
	wakes->window = window;
	window->kind = PROBE_OFFWAKE;
	window->start_ns = start_ns;
	window->end_ns = end_ns;
	for (i = 0; i < wakes->n; i++)
		wake_to_window(wakes, &wakes->list[i]);
	image_cache_clear(&wakes->images);
	window->lost[WINDOW_LOST_MEMORY] = wakes->dropped;
	wakes->n = 0;
	wakes->dropped = 0;
	wakes->window = NULL;
	return window;
}
