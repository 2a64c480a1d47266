/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "common/base.h"
#include "daemon/base/log.h"
#include "daemon/store/downsample.h"
#include "daemon/store/internal.h"

static int64_t length_of(const struct window *window)
{
	return window->end_ns - window->start_ns;
}

static int64_t end_of(const struct window *window)
{
	return window->end_ns + window->real_offset_ns;
}

/*
 * Returns the length in ns at which a window need not be joined with others. It is 5 % less than
 * the setting [window] length, because a window may end a little early.
 */
static int64_t length_wanted(struct store *store)
{
	int64_t length;

	pthread_mutex_lock(&store->lock);
	length = store->window_ns;
	pthread_mutex_unlock(&store->lock);
	return length - length / 20;
}

static struct store_held *held_find(struct store *store, uint64_t session)
{
	size_t i;

	for (i = 0; i < HELD_SESSIONS_MAX; i++)
		if (store->held[i].n && store->held[i].windows[0]->session == session)
			return &store->held[i];
	return NULL;
}

static struct store_held *held_place(struct store *store)
{
	size_t i;

	for (i = 0; i < HELD_SESSIONS_MAX; i++)
		if (!store->held[i].n)
			return &store->held[i];
	return NULL;
}

static int64_t *time_find(struct store_times *times, int64_t ns)
{
	size_t i;

	for (i = 0; i < MARKS_MAX; i++)
		if (times->ns[i] == ns)
			return &times->ns[i];
	return NULL;
}

static void time_add(struct store_times *times, int64_t ns)
{
	times->ns[times->next++ % MARKS_MAX] = ns;
}

bool store_mark(struct store *store, int64_t last_ns, int64_t end_ns)
{
	int64_t *last;
	bool is_free;

	if (!store || store->is_read_only)
		return true;
	pthread_mutex_lock(&store->lock);
	is_free = !time_find(&store->joined, end_ns);
	if (is_free) {
		last = last_ns ? time_find(&store->marks, last_ns) : NULL;
		if (last)
			*last = end_ns;
		else
			time_add(&store->marks, end_ns);
	}
	pthread_mutex_unlock(&store->lock);
	return is_free;
}

/*
 * Returns how many windows of windows[n], from the first on, may be joined to one. The windows
 * after the returned ones begin where an answer to a client that follows a probe ended.
 */
static size_t run_length(struct store *store, struct window *const *windows, size_t n)
{
	size_t length = 1, i;

	pthread_mutex_lock(&store->lock);
	while (length < n && !time_find(&store->marks, end_of(windows[length - 1])))
		length++;
	for (i = 0; i + 1 < length; i++)
		time_add(&store->joined, end_of(windows[i]));
	pthread_mutex_unlock(&store->lock);
	return length;
}

/* Writes these windows as one window, or separately if they cannot be joined. */
static void run_write(struct store *store, struct window **windows, size_t n)
{
	struct window *joined = NULL;
	size_t i;
	int r = n > 1 ? store_downsample(windows, n, &joined) : 0;

	if (r)
		log_err(r, "%s: cannot join %zu windows", store->path, n);
	if (joined)
		store_window_take(store, joined);
	for (i = 0; i < n; i++) {
		if (!joined)
			store_window_take(store, windows[i]);
		window_unref(windows[i]);
	}
	window_unref(joined);
}

/* Writes the held windows of a session. */
static void held_write(struct store *store, struct store_held *held)
{
	size_t from, n;

	for (from = 0; from < held->n; from += n) {
		n = run_length(store, held->windows + from, held->n - from);
		run_write(store, held->windows + from, n);
	}
	held->n = 0;
}

/* True if `window` directly follows the last window in `held`, and there is room for it. */
static bool held_continues(const struct store_held *held, const struct window *window)
{
	struct store_entry before = store_entry_of(held->windows[held->n - 1], 0);
	struct store_entry entry = store_entry_of(window, 0);

	return held->n < HELD_MAX && store_continues(&entry, &before);
}

void store_join_take(struct store *store, struct window *window)
{
	struct store_held *held = held_find(store, window->session);
	int64_t wanted = length_wanted(store);

	if (window->session < STORE_ALWAYS_MAX)
		store->taken_ns[window->session] = store->now(CLOCK_MONOTONIC);
	if (held && !held_continues(held, window)) {
		held_write(store, held);
		held = NULL;
	}
	if (!held && length_of(window) < wanted)
		held = held_place(store);
	if (!held) {
		store_window_take(store, window);
		window_unref(window);
		return;
	}
	if (!held->n)
		held->until_ns = store->now(CLOCK_MONOTONIC) + 2 * wanted;
	held->windows[held->n++] = window;
	if (window->end_ns - held->windows[0]->start_ns >= wanted)
		held_write(store, held);
}

void store_join_flush(struct store *store, bool is_all)
{
	int64_t now = store->now(CLOCK_MONOTONIC);
	size_t i;

	for (i = 0; i < HELD_SESSIONS_MAX; i++)
		if (store->held[i].n && (is_all || now >= store->held[i].until_ns))
			held_write(store, &store->held[i]);
}

void store_join_free(struct store *store)
{
	struct store_held *held;

	for (held = store->held; held < store->held + HELD_SESSIONS_MAX; held++)
		while (held->n)
			window_unref(held->windows[--held->n]);
}
