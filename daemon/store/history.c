/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/history.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "common/base.h"
#include "daemon/base/thread.h"

/*
 * EVICT_FOR_STACKS: maximum number of windows that history_add() evicts in one call because stacks
 * take too much memory. STACKS_MARGIN: stacks are assumed to take 1 / STACKS_MARGIN more than was
 * measured.
 */
enum { EVICT_FOR_STACKS = 4, STACKS_MARGIN = 32 };

/*
 * Windows that ended less than this ago are not evicted because stacks take too much memory: most
 * queries are about recent windows, and the disk may not have them yet. Besides, evicting one frees
 * no memory at once, because its stacks are kept for some time after their last use.
 */
#define RECENT_NS (30 * NS_PER_S)
/* If windows are kept for a short time only, not more than this part of the time is recent. */
#define RECENT_SHARE 8
/* For how long a window stays whole: most questions about details are about the last minute. */
#define WHOLE_NS (60 * NS_PER_S)
/* Whole windows take at most this part of the memory, so that those of a minute ago stay, too. */
#define WHOLE_SHARE 2

struct history_entry {
	struct window *window; /* the one that is listed */
	struct window *folded; /* takes its place later; NULL: it stays as it is */
};

struct history {
	pthread_mutex_t lock;
	pthread_cond_t added;
	struct history_entry *entries; /* ring of n windows; the oldest is at index `first` */
	size_t capacity;
	size_t first;
	size_t n;
	size_t bytes;
	size_t whole_bytes; /* the part of `bytes` of windows that are to be replaced */
	size_t max_bytes;
	size_t budget_bytes; /* see history_set_budget() */
	/*
	 * stack_bytes: the last value of this argument of history_add(); measured_bytes: `bytes` at
	 * the time when it had this value first
	 */
	size_t stack_bytes;
	size_t measured_bytes;
	size_t waiting_bytes; /* what the sink returned last, see history_set_sink() */
	int64_t keep_ns;
	uint64_t newest_seq;
	/* ring of evicted windows, of which only times and loss counts are kept */
	struct window *lossy[HISTORY_LOSSY_MAX];
	size_t lossy_first;
	size_t n_lossy;
	struct history_stats stats;
	size_t (*sink)(void *userdata, struct window *window);
	void *sink_data;
};

int history_new(int64_t keep_ns, size_t max_bytes, struct history **out)
{
	struct history *history = calloc(1, sizeof(*history));

	if (!history)
		return -ENOMEM;
	history->keep_ns = keep_ns;
	history->max_bytes = max_bytes;
	pthread_mutex_init(&history->lock, NULL);
	pthread_cond_init(&history->added, NULL);
	*out = history;
	return 0;
}

void history_set_limits(struct history *history, int64_t keep_ns, size_t max_bytes)
{
	pthread_mutex_lock(&history->lock);
	history->keep_ns = keep_ns;
	history->max_bytes = max_bytes;
	pthread_mutex_unlock(&history->lock);
}

void history_set_budget(struct history *history, size_t max_bytes)
{
	pthread_mutex_lock(&history->lock);
	history->budget_bytes = max_bytes;
	pthread_mutex_unlock(&history->lock);
}

/* Returns how many bytes all windows and stacks together may take. */
static size_t most_bytes(const struct history *history)
{
	return history->budget_bytes && history->budget_bytes < history->max_bytes
		       ? history->budget_bytes
		       : history->max_bytes;
}

static struct history_entry *entry_at(struct history *history, size_t i)
{
	return &history->entries[(history->first + i) % history->capacity];
}

static struct window *window_at(struct history *history, size_t i)
{
	return entry_at(history, i)->window;
}

struct history *history_free(struct history *history)
{
	size_t i;

	if (!history)
		return NULL;
	for (i = 0; i < history->n; i++) {
		window_unref(window_at(history, i));
		window_unref(entry_at(history, i)->folded);
	}
	for (i = 0; i < HISTORY_LOSSY_MAX; i++)
		window_unref(history->lossy[i]);
	free(history->entries);
	pthread_cond_destroy(&history->added);
	pthread_mutex_destroy(&history->lock);
	free(history);
	return NULL;
}

/*
 * True if events were lost in the window and the window belongs to an always-on session, not to a
 * session that a client started.
 */
static bool is_lossy(const struct window *window)
{
	unsigned int i;

	for (i = 0; i < WINDOW_LOST_N; i++)
		if (window->lost[i] && window->session < SESSION_FIRST_ID)
			return true;
	return false;
}

/*
 * Keeps the loss counts of a window that is being evicted, because the status shows losses for
 * longer than windows are kept.
 */
static void losses_keep(struct history *history, const struct window *window)
{
	struct window *left = is_lossy(window) ? window_new() : NULL;
	struct window **slot;

	if (!left)
		return;
	left->kind = window->kind;
	left->session = window->session;
	left->run = window->run;
	left->seq = window->seq;
	left->start_ns = window->start_ns;
	left->end_ns = window->end_ns;
	left->real_offset_ns = window->real_offset_ns;
	memcpy(left->lost, window->lost, sizeof(left->lost));
	slot = &history->lossy[(history->lossy_first + history->n_lossy) % HISTORY_LOSSY_MAX];
	window_unref(*slot);
	*slot = left;
	if (history->n_lossy < HISTORY_LOSSY_MAX)
		history->n_lossy++;
	else
		history->lossy_first = (history->lossy_first + 1) % HISTORY_LOSSY_MAX;
}

/* Lets the folded window of an entry take the place of the whole one, if it has one. */
static void entry_fold(struct history *history, struct history_entry *entry)
{
	if (!entry->folded)
		return;
	history->bytes -= entry->window->bytes;
	history->whole_bytes -= entry->window->bytes;
	window_unref(entry->window);
	entry->window = TAKE(entry->folded);
}

static void history_evict(struct history *history, bool by_bytes)
{
	struct window *window;

	entry_fold(history, entry_at(history, 0));
	window = window_at(history, 0);
	losses_keep(history, window);
	history->bytes -= window->bytes;
	history->stats.evicted_real_ns = window->end_ns + window->real_offset_ns;
	history->stats.evicted_by_bytes = by_bytes;
	if (by_bytes)
		history->stats.evicted_for_bytes++;
	history->first = (history->first + 1) % history->capacity;
	history->n--;
	window_unref(window);
}

static int history_grow(struct history *history)
{
	size_t capacity = history->capacity ? history->capacity * 2 : 64, i;
	struct history_entry *entries;

	if (history->n < history->capacity)
		return 0;
	entries = calloc(capacity, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	for (i = 0; i < history->n; i++)
		entries[i] = *entry_at(history, i);
	free(history->entries);
	history->entries = entries;
	history->capacity = capacity;
	history->first = 0;
	return 0;
}

/* True if the oldest window is one of the recent ones, which are not evicted for stacks. */
static bool oldest_is_recent(struct history *history, int64_t now_ns)
{
	int64_t recent_ns = history->keep_ns / RECENT_SHARE;
	const struct window *window = window_at(history, 0);

	return window->end_ns > now_ns - (recent_ns < RECENT_NS ? recent_ns : RECENT_NS);
}

/*
 * Returns how many bytes all windows and a new one of more_bytes take together with their stacks:
 * those of the history, and those that wait to be written. The memory of stacks was measured some
 * time ago. Assumes that it has grown or shrunk since then in the same proportion as the memory of
 * the windows, but at most to twice as much.
 */
static size_t used_bytes(const struct history *history, size_t more_bytes)
{
	size_t bytes = history->bytes + more_bytes;
	double share = 1, stacks;

	if (history->measured_bytes)
		share = (double)bytes / (double)history->measured_bytes;
	if (share > 2)
		share = 2;
	stacks = share * (double)history->stack_bytes;
	return bytes + history->waiting_bytes + (size_t)(stacks + stacks / STACKS_MARGIN);
}

/* Returns how many bytes an entry takes. */
static size_t entry_bytes(const struct history_entry *entry)
{
	return entry->window->bytes + (entry->folded ? entry->folded->bytes : 0);
}

/* True if whole windows, with that of a new entry and their share of the stacks, take too much. */
static bool whole_too_large(const struct history *history, const struct history_entry *added,
			    size_t most)
{
	size_t whole = history->whole_bytes + (added->folded ? added->window->bytes : 0);
	size_t added_bytes = entry_bytes(added);
	double share = (double)whole / (double)(history->bytes + added_bytes);

	return share * (double)used_bytes(history, added_bytes) > (double)(most / WHOLE_SHARE);
}

/*
 * Folds the windows that are too old to be whole; and, while whole ones take too much, the oldest
 * others, and in the end the new one.
 */
static void history_fold(struct history *history, struct history_entry *added, size_t most)
{
	size_t i;

	for (i = 0; i < history->n && history->whole_bytes; i++) {
		struct history_entry *entry = entry_at(history, i);

		if (entry->window->end_ns < added->window->end_ns - WHOLE_NS ||
		    whole_too_large(history, added, most))
			entry_fold(history, entry);
	}
	if (!added->folded || !whole_too_large(history, added, most))
		return;
	window_unref(added->window);
	added->window = TAKE(added->folded);
}

/* Evicts a few of the oldest windows, but no recent one, if all take more than `most` bytes. */
static void history_evict_for_stacks(struct history *history, const struct history_entry *added,
				     size_t most)
{
	size_t i;

	for (i = 0; i < EVICT_FOR_STACKS && history->n > 0 &&
		    used_bytes(history, entry_bytes(added)) > most &&
		    !oldest_is_recent(history, added->window->end_ns);
	     i++)
		history_evict(history, true);
}

static void history_make_room(struct history *history, struct history_entry *added,
			      size_t stack_bytes)
{
	size_t max = most_bytes(history);
	int64_t until_ns = added->window->end_ns - history->keep_ns;

	if (stack_bytes != history->stack_bytes) {
		history->stack_bytes = stack_bytes;
		history->measured_bytes = history->bytes;
	}
	while (history->n > 0 && window_at(history, 0)->end_ns < until_ns)
		history_evict(history, false);
	history_fold(history, added, max);
	history_evict_for_stacks(history, added, max);
	while (history->n > 0 && history->bytes + entry_bytes(added) > max)
		history_evict(history, true);
}

void history_shrink(struct history *history)
{
	size_t i, n;
	int64_t now;

	pthread_mutex_lock(&history->lock);
	/* Whole windows have most of the stacks. */
	for (i = 0; i < history->n; i++)
		entry_fold(history, entry_at(history, i));
	n = (history->n + 3) / 4;
	now = history->n ? window_at(history, history->n - 1)->end_ns : 0;
	for (i = 0; i < n && history->n > 1 && !oldest_is_recent(history, now); i++)
		history_evict(history, true);
	pthread_mutex_unlock(&history->lock);
}

void history_set_sink(struct history *history,
		      size_t (*sink)(void *userdata, struct window *window), void *userdata)
{
	history->sink = sink;
	history->sink_data = userdata;
}

/* Adds the entry; the history must have room for it. */
static void entry_add(struct history *history, const struct history_entry *added)
{
	const struct window *window = added->window;

	*entry_at(history, history->n++) = *added;
	history->bytes += entry_bytes(added);
	history->whole_bytes += added->folded ? window->bytes : 0;
	if (!history->stats.first_real_ns)
		history->stats.first_real_ns = window->start_ns + window->real_offset_ns;
}

void history_add(struct history *history, struct window *window, struct window *folded,
		 size_t stack_bytes)
{
	struct history_entry added = { window, folded };
	size_t waiting_bytes = 0;
	bool is_kept;

	window_pack(window);
	if (folded)
		window_pack(folded);
	if (history->sink)
		waiting_bytes = history->sink(history->sink_data, folded ? folded : window);
	pthread_mutex_lock(&history->lock);
	history->waiting_bytes = waiting_bytes;
	history_make_room(history, &added, stack_bytes);
	if (history_grow(history) && history->n > 0)
		history_evict(history, true);
	/*
	 * Set newest_seq even if the window is not kept: history_wait() may wait for this number.
	 */
	history->newest_seq = added.window->seq;
	is_kept = history->n < history->capacity;
	if (is_kept)
		entry_add(history, &added);
	pthread_cond_broadcast(&history->added);
	pthread_mutex_unlock(&history->lock);
	if (is_kept)
		return;
	window_unref(added.window);
	window_unref(added.folded);
}

static bool window_overlaps(const struct window *window, int64_t since_ns, int64_t until_ns)
{
	return window->end_ns + window->real_offset_ns > since_ns &&
	       window->start_ns + window->real_offset_ns < until_ns;
}

int history_range(struct history *history, uint64_t session, int64_t since_ns, int64_t until_ns,
		  struct history_list *out)
{
	struct history_list list = {};
	size_t i;

	pthread_mutex_lock(&history->lock);
	list.windows = calloc(history->n ? history->n : 1, sizeof(struct window *));
	for (i = 0; list.windows && i < history->n; i++) {
		struct window *window = window_at(history, i);

		if ((!session || window->session == session) &&
		    window_overlaps(window, since_ns, until_ns))
			list.windows[list.n++] = window_ref(window);
	}
	pthread_mutex_unlock(&history->lock);
	if (!list.windows)
		return -ENOMEM;
	*out = list;
	return 0;
}

int history_lossy(struct history *history, int64_t since_ns, struct history_list *out)
{
	struct history_list list = {};
	struct window *window;
	size_t i;

	pthread_mutex_lock(&history->lock);
	list.windows = calloc(history->n_lossy + history->n + 1, sizeof(struct window *));
	for (i = 0; list.windows && i < history->n_lossy + history->n; i++) {
		window = i < history->n_lossy
				 ? history->lossy[(history->lossy_first + i) % HISTORY_LOSSY_MAX]
				 : window_at(history, i - history->n_lossy);
		if (is_lossy(window) && window_overlaps(window, since_ns, INT64_MAX))
			list.windows[list.n++] = window_ref(window);
	}
	pthread_mutex_unlock(&history->lock);
	if (!list.windows)
		return -ENOMEM;
	*out = list;
	return 0;
}

void history_list_fini(struct history_list *list)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		window_unref(list->windows[i]);
	free(list->windows);
	*list = (struct history_list){};
}

/* Returns the session's newest window; NULL if it has none. Called with the lock held. */
static const struct window *newest(struct history *history, uint64_t session)
{
	for (size_t i = history->n; i-- > 0;) {
		const struct window *window = window_at(history, i);

		if (window->session == session)
			return window;
	}
	return NULL;
}

int64_t history_newest_end(struct history *history, uint64_t session)
{
	const struct window *window;
	int64_t end;

	pthread_mutex_lock(&history->lock);
	window = newest(history, session);
	end = window ? window->end_ns + window->real_offset_ns : 0;
	pthread_mutex_unlock(&history->lock);
	return end;
}

int64_t history_newest_ns(struct history *history, uint64_t session)
{
	const struct window *window;
	int64_t end;

	pthread_mutex_lock(&history->lock);
	window = newest(history, session);
	end = window ? window->end_ns : 0;
	pthread_mutex_unlock(&history->lock);
	return end;
}

int history_wait(struct history *history, uint64_t seq, int64_t timeout_ns)
{
	int64_t end = clock_ns(CLOCK_MONOTONIC) + timeout_ns;
	int r = 0;

	pthread_mutex_lock(&history->lock);
	while (history->newest_seq < seq && !r)
		r = thread_wait_until(&history->added, &history->lock, end);
	pthread_mutex_unlock(&history->lock);
	return r;
}

void history_stats(struct history *history, struct history_stats *out)
{
	pthread_mutex_lock(&history->lock);
	*out = history->stats;
	out->windows = history->n;
	out->bytes = history->bytes;
	out->waiting_bytes = history->waiting_bytes;
	out->most_bytes = most_bytes(history);
	pthread_mutex_unlock(&history->lock);
}
