/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/base/log.h"
#include "daemon/store/downsample.h"
#include "daemon/store/internal.h"

static int64_t length_of(const struct window *window)
{
	return window->end_ns - window->start_ns;
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

/* Returns the held windows of a session; those of none (n is 0) if it has none; NULL: no place. */
static struct store_held *held_of(struct store *store, uint64_t session)
{
	struct store_held *held, *free_place = NULL;

	for (held = store->held; held < store->held + HELD_SESSIONS_MAX; held++) {
		if (!held->n)
			free_place = held;
		else if (held->windows[0]->session == session)
			return held;
	}
	return free_place;
}

/* Writes the held windows of a session as one, or separately if they cannot be joined. */
static void held_write(struct store *store, struct store_held *held)
{
	struct window *joined = NULL;
	int r = held->n > 1 ? store_downsample(held->windows, held->n, &joined) : 0;
	size_t i;

	if (r)
		log_err(r, "%s: cannot join %zu windows", store->path, held->n);
	if (joined)
		store_window_take(store, joined);
	for (i = 0; i < held->n; i++) {
		if (!joined)
			store_window_take(store, held->windows[i]);
		window_unref(held->windows[i]);
	}
	window_unref(joined);
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
	struct store_held *held = held_of(store, window->session);
	int64_t wanted = length_wanted(store);

	if (window->session < STORE_ALWAYS_MAX)
		store->taken_ns[window->session] = store->now(CLOCK_MONOTONIC);
	if (held && held->n && !held_continues(held, window))
		held_write(store, held);
	if (!held || (!held->n && length_of(window) >= wanted)) {
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
