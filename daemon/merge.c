/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

/* A thread or process that was seen, for counting each once. */
struct seen {
	uint64_t key[2];
	bool is_idle;
	UT_hash_handle hh;
};

/* A wait that spans windows: how it ended, if it did, and whether it was open at the end. */
struct span_entry {
	uint64_t key[2]; /* uid, start */
	const struct window_span *span;
	bool is_open_at_end;
	bool is_counted;
	UT_hash_handle hh;
};

struct merge {
	const struct filter *filter;
	struct merge_options options;
	struct merge_group *groups;
	struct merge_group **array;
	struct seen *threads;
	struct seen *processes;
	struct span_entry *spans;
	struct merge_totals totals;
	uint64_t estimated;
	int64_t end_ns; /* of the last window */
	int error;
};

/* One wait, or many alike, on its way into a group. */
struct contribution {
	const struct window_image *image;
	const struct stack *kernel;
	const struct stack *user;
	uint32_t state;
	bool is_short;
	uint64_t count;
	uint64_t blocked_ns;
	uint64_t runnable_ns;
	uint64_t max_ns;
	int64_t max_end_real_ns;
};

static unsigned int bucket_of(uint64_t ns)
{
	unsigned int i = 0;

	for (ns >>= 10; ns > 0; ns >>= 1)
		i++;
	return i < WAIT_BUCKETS ? i : WAIT_BUCKETS - 1;
}

static uint64_t bucket_low(unsigned int i)
{
	return i ? UINT64_C(1) << (i + 9) : 0;
}

void merge_edges(const struct filter *filter, int64_t *min_ns, int64_t *max_ns)
{
	*min_ns = (int64_t)bucket_low(bucket_of((uint64_t)filter->min_ns));
	*max_ns = INT64_MAX;
	if (filter->max_ns != INT64_MAX && bucket_of((uint64_t)filter->max_ns) + 1 < WAIT_BUCKETS)
		*max_ns = (int64_t)bucket_low(bucket_of((uint64_t)filter->max_ns) + 1);
}

static struct seen *seen_add(struct merge *merge, struct seen **set, uint64_t a, uint64_t b)
{
	uint64_t key[2] = { a, b };
	struct seen *seen;

	HASH_FIND(hh, *set, key, sizeof(key), seen);
	if (seen)
		return seen;
	seen = calloc(1, sizeof(*seen));
	if (!seen) {
		merge->error = -ENOMEM;
		return NULL;
	}
	memcpy(seen->key, key, sizeof(key));
	HASH_ADD(hh, *set, key, sizeof(key), seen);
	return seen;
}

static void seen_free(struct seen *set)
{
	struct seen *seen, *next;

	HASH_ITER(hh, set, seen, next)
	{
		HASH_DEL(set, seen);
		free(seen);
	}
}

static struct span_entry *span_get(struct merge *merge, uint64_t uid, int64_t start_ns, bool add)
{
	uint64_t key[2] = { uid, (uint64_t)start_ns };
	struct span_entry *entry;

	HASH_FIND(hh, merge->spans, key, sizeof(key), entry);
	if (entry || !add)
		return entry;
	entry = calloc(1, sizeof(*entry));
	if (!entry) {
		merge->error = -ENOMEM;
		return NULL;
	}
	memcpy(entry->key, key, sizeof(key));
	HASH_ADD(hh, merge->spans, key, sizeof(key), entry);
	return entry;
}

static void spans_index(struct merge *merge, const struct window *window)
{
	struct span_entry *entry;
	size_t i;

	for (i = 0; i < window->n_spans; i++) {
		entry = span_get(merge, window->images[window->spans[i].image].uid,
				 window->spans[i].start_ns, true);
		if (entry)
			entry->span = &window->spans[i];
	}
}

static void opens_index(struct merge *merge, const struct window *last)
{
	struct span_entry *entry;
	size_t i;

	for (i = 0; i < last->n_opens; i++) {
		entry = span_get(merge, last->images[last->opens[i].image].uid,
				 last->opens[i].start_ns, true);
		if (entry)
			entry->is_open_at_end = true;
	}
}

/*
 * Idle: nobody minds this wait. Kernel threads that wait for work, and user threads asleep in one
 * of the configured functions; never what cannot be interrupted (D), nor what wants a CPU.
 */
static bool contribution_is_idle(const struct contribution *c, const struct process_info *info)
{
	bool is_uninterruptible = (c->state & 0x2) && !(c->state & 0x400);

	if (c->is_short || c->state & (STATE_PREEMPTED | STATE_NEW) || is_uninterruptible)
		return false;
	if (info->is_kernel)
		return true;
	return (c->kernel && c->kernel->is_idle) || (c->user && c->user->is_idle);
}

static void key_init(const struct merge *merge, const struct contribution *c,
		     const struct process_info *info, bool is_idle, struct merge_key *key)
{
	enum merge_by by = merge->options.by;

	memset(key, 0, sizeof(*key));
	key->pid = (uint64_t)info->id.pid;
	key->process_start = info->id.start_boot_ns;
	key->uid = by == MERGE_BY_THREAD ? c->image->uid : 0;
	if (c->is_short)
		key->state = 1;
	else if (by == MERGE_BY_STACK || merge->options.open_only)
		key->state = (uint64_t)state_letter(c->state)[0];
	else
		key->state = is_idle ? 3 : 2;
	if (by == MERGE_BY_STACK || merge->options.open_only) {
		key->kernel = c->kernel ? c->kernel->place_id : 0;
		key->user = c->user ? c->user->place_id : 0;
	}
	memcpy(key->comm, by == MERGE_BY_PROCESS ? info->comm : c->image->comm, sizeof(key->comm));
}

static struct merge_group *group_get(struct merge *merge, const struct contribution *c,
				     const struct process_info *info)
{
	bool is_idle = contribution_is_idle(c, info);
	struct merge_group *group;
	struct merge_key key;

	key_init(merge, c, info, is_idle, &key);
	HASH_FIND(hh, merge->groups, &key, sizeof(key), group);
	if (group)
		return group;
	group = calloc(1, sizeof(*group));
	if (!group) {
		merge->error = -ENOMEM;
		return NULL;
	}
	group->key = key;
	group->image = c->image;
	group->kernel = key.kernel ? c->kernel : NULL;
	group->user = key.user ? c->user : NULL;
	group->is_idle = is_idle;
	group->is_short = c->is_short;
	HASH_ADD(hh, merge->groups, key, sizeof(group->key), group);
	return group;
}

static struct merge_group *contribute(struct merge *merge, const struct contribution *c)
{
	struct process_info info;
	struct merge_group *group;
	struct seen *seen;

	process_info(c->image->process, &info);
	group = group_get(merge, c, &info);
	if (!group)
		return NULL;
	if (group->is_idle) {
		seen = seen_add(merge, &merge->threads, c->image->uid, 0);
		if (seen)
			seen->is_idle = true;
	}
	if (c->kernel && group->kernel && c->kernel->n_frames > group->kernel->n_frames)
		group->kernel = c->kernel;
	group->state |= c->state & ~STATE_SEEDED;
	group->count += c->count;
	group->blocked_ns += c->blocked_ns;
	group->runnable_ns += c->runnable_ns;
	if (c->max_ns > group->max_ns || (c->max_ns == group->max_ns && !group->max_image)) {
		group->max_ns = c->max_ns;
		group->max_end_real_ns = c->max_end_real_ns;
		group->max_image = c->image;
	}
	return group;
}

static void contribution_stacks(const struct merge *merge, struct contribution *c,
				const struct stack *kernel, const struct stack *user)
{
	c->kernel = merge->filter->drops_kernel ? NULL : kernel;
	c->user = merge->filter->drops_user ? NULL : user;
}

/* The share of a row's time that is in buckets within the edges; 1 where all are. */
static double row_share(const struct merge *merge, const uint64_t *buckets, uint64_t *count_out)
{
	unsigned int low = bucket_of((uint64_t)merge->filter->min_ns), i;
	unsigned int high = bucket_of((uint64_t)merge->filter->max_ns);
	double inside = 0, all = 0;

	*count_out = 0;
	for (i = 0; i < WAIT_BUCKETS; i++) {
		double weight = (double)buckets[i] * (double)(i ? bucket_low(i) : 512);

		all += weight;
		if (i < low || i > high)
			continue;
		inside += weight;
		*count_out += buckets[i];
	}
	return all > 0 ? inside / all : 0;
}

static void merge_row(struct merge *merge, const struct window *window,
		      const struct window_row *row)
{
	struct contribution c = {
		.image = &window->images[row->image],
		.state = row->state,
		.max_ns = row->max_ns,
		.max_end_real_ns = row->max_end_ns + window->real_offset_ns,
	};
	uint64_t buckets[WAIT_BUCKETS] = {};
	struct merge_group *group;
	unsigned int i;
	double share;

	window_row_add_buckets(window, row, buckets);
	share = row_share(merge, buckets, &c.count);
	if (c.count == 0)
		return;
	if (c.count != row->count) {
		merge->estimated++;
		if (c.max_ns > (uint64_t)merge->filter->max_ns)
			c.max_ns = (uint64_t)merge->filter->max_ns;
	}
	c.blocked_ns = share < 1 ? (uint64_t)((double)row->blocked_ns * share) : row->blocked_ns;
	c.runnable_ns = share < 1 ? (uint64_t)((double)row->runnable_ns * share) : row->runnable_ns;
	contribution_stacks(merge, &c, row->kernel, row->user);
	group = contribute(merge, &c);
	for (i = 0; group && i < WAIT_BUCKETS; i++)
		if (i >= bucket_of((uint64_t)merge->filter->min_ns) &&
		    i <= bucket_of((uint64_t)merge->filter->max_ns))
			group->buckets[i] += buckets[i];
}

static uint64_t overlap(int64_t from, int64_t to, const struct window *window)
{
	if (from < window->start_ns)
		from = window->start_ns;
	if (to > window->end_ns)
		to = window->end_ns;
	return to > from ? (uint64_t)(to - from) : 0;
}

static bool duration_is_wanted(const struct merge *merge, uint64_t ns)
{
	return ns >= (uint64_t)merge->filter->min_ns && ns <= (uint64_t)merge->filter->max_ns;
}

static void merge_span(struct merge *merge, const struct window *window,
		       const struct window_span *span)
{
	uint64_t ns = (uint64_t)(span->end_ns - span->start_ns);
	struct contribution c = {
		.image = &window->images[span->image],
		.state = span->state,
		.count = 1,
		.blocked_ns = overlap(span->start_ns, span->wake_ns, window),
		.runnable_ns = overlap(span->wake_ns, span->end_ns, window),
		.max_ns = ns,
		.max_end_real_ns = span->end_ns + window->real_offset_ns,
	};
	struct merge_group *group;

	if (!duration_is_wanted(merge, ns))
		return;
	contribution_stacks(merge, &c, span->kernel, span->user);
	group = contribute(merge, &c);
	if (group)
		group->buckets[bucket_of(ns)]++;
}

/*
 * The part of a wait in a window it did not end in. If it is known how it ended, it goes to the
 * stack it ended with, which is whole; else to the kernel stack taken while it lasted.
 */
static void merge_open(struct merge *merge, const struct window *window,
		       const struct window_open *open, const struct stack *unread)
{
	const struct window_image *image = &window->images[open->image];
	struct span_entry *entry = span_get(merge, image->uid, open->start_ns, false);
	const struct window_span *span = entry ? entry->span : NULL;
	bool is_open = entry && entry->is_open_at_end;
	int64_t wake = span ? span->wake_ns : open->wake_ns;
	int64_t end = is_open || !span ? merge->end_ns : span->end_ns;
	struct contribution c = {
		.image = image,
		.state = open->state,
		.blocked_ns = overlap(open->start_ns, wake, window),
		.runnable_ns = overlap(wake, window->end_ns, window),
		.max_ns = is_open ? (uint64_t)(merge->end_ns - open->start_ns) : 0,
		.max_end_real_ns = INT64_MAX,
	};
	struct merge_group *group;
	struct process_info info;

	if ((merge->options.open_only && !is_open) ||
	    !duration_is_wanted(merge, (uint64_t)(end - open->start_ns)))
		return;
	if (merge->options.open_only) {
		/* How long it waits, not how much of that is in the range. */
		c.blocked_ns =
			(uint64_t)((wake < merge->end_ns ? wake : merge->end_ns) - open->start_ns);
		c.runnable_ns = c.max_ns - c.blocked_ns;
	}
	process_info(image->process, &info);
	contribution_stacks(merge, &c, span ? span->kernel : open->kernel,
			    span	     ? span->user
			    : info.is_kernel ? NULL
					     : unread);
	group = contribute(merge, &c);
	if (!group || !is_open)
		return;
	group->open_ns += c.blocked_ns + c.runnable_ns;
	if (!entry->is_counted) {
		entry->is_counted = true;
		group->open++;
		merge->totals.open_waits++;
	}
}

static void merge_short(struct merge *merge, const struct window_image *image)
{
	const struct thread_sums *sums = &image->sums;
	struct contribution c = {
		.image = image,
		.is_short = true,
		.count = sums->short_count,
		.blocked_ns = sums->short_blocked_ns,
		.runnable_ns = sums->short_runnable_ns,
	};

	if (sums->short_count && !merge->filter->has_states && merge->filter->min_ns == 0 &&
	    !merge->options.open_only)
		contribute(merge, &c);
}

static void merge_image(struct merge *merge, const struct window_image *image)
{
	const struct thread_sums *sums = &image->sums;
	struct process_info info;

	process_info(image->process, &info);
	seen_add(merge, &merge->threads, image->uid, 0);
	seen_add(merge, &merge->processes, (uint64_t)info.id.pid, info.id.start_boot_ns);
	merge->totals.on_cpu_ns += sums->on_ns;
	merge->totals.blocked_ns += sums->blocked_ns;
	merge->totals.runnable_ns += sums->runnable_ns;
	merge->totals.waits += sums->switches;
	merge->totals.short_waits += sums->short_count;
	merge->totals.short_ns += sums->short_blocked_ns + sums->short_runnable_ns;
	merge_short(merge, image);
}

static int merge_window(struct merge *merge, const struct window *window, bool is_last,
			const struct stack *unread)
{
	_cleanup_(freep) bool *wanted = calloc(window->n_images + 1, sizeof(bool));
	struct process_info info;
	size_t i;

	if (!wanted)
		return -ENOMEM;
	for (i = 0; i < window->n_images; i++) {
		process_info(window->images[i].process, &info);
		wanted[i] = filter_has_image(merge->filter, &window->images[i], &info);
		if (wanted[i])
			merge_image(merge, &window->images[i]);
	}
	for (i = 0; i < window->n_opens && (is_last || !merge->options.open_only); i++)
		if (wanted[window->opens[i].image] &&
		    filter_has_state(merge->filter, window->opens[i].state))
			merge_open(merge, window, &window->opens[i], unread);
	if (merge->options.open_only)
		return merge->error;
	for (i = 0; i < window->n_rows; i++)
		if (wanted[window->rows[i].image] &&
		    filter_has_state(merge->filter, window->rows[i].state))
			merge_row(merge, window, &window->rows[i]);
	for (i = 0; i < window->n_spans; i++)
		if (wanted[window->spans[i].image] &&
		    filter_has_state(merge->filter, window->spans[i].state))
			merge_span(merge, window, &window->spans[i]);
	return merge->error;
}

static int merge_finish(struct merge *merge)
{
	struct merge_group *group, *next;
	struct seen *seen, *next_seen;
	size_t i = 0;

	merge->array = calloc(HASH_COUNT(merge->groups) + 1, sizeof(struct merge_group *));
	if (!merge->array)
		return -ENOMEM;
	HASH_ITER(hh, merge->groups, group, next)
	merge->array[i++] = group;
	HASH_ITER(hh, merge->threads, seen, next_seen)
	merge->totals.idle_threads += seen->is_idle;
	merge->totals.threads = HASH_COUNT(merge->threads);
	merge->totals.processes = HASH_COUNT(merge->processes);
	return merge->error;
}

int merge_run(const struct history_list *list, const struct history_list *later,
	      const struct filter *filter, const struct merge_options *options,
	      const struct stack *unread, struct merge **out)
{
	struct merge *merge = calloc(1, sizeof(*merge));
	size_t i;
	int r = 0;

	if (!merge)
		return -ENOMEM;
	merge->filter = filter;
	merge->options = *options;
	for (i = 0; i < list->n; i++)
		spans_index(merge, list->windows[i]);
	for (i = 0; i < later->n; i++)
		spans_index(merge, later->windows[i]);
	if (list->n) {
		merge->end_ns = list->windows[list->n - 1]->end_ns;
		opens_index(merge, list->windows[list->n - 1]);
	}
	for (i = 0; i < list->n && !r; i++)
		r = merge_window(merge, list->windows[i], i + 1 == list->n, unread);
	if (!r)
		r = merge_finish(merge);
	if (r) {
		merge_free(merge);
		return r;
	}
	*out = merge;
	return 0;
}

struct merge *merge_free(struct merge *merge)
{
	struct merge_group *group, *next;
	struct span_entry *entry, *next_entry;

	if (!merge)
		return NULL;
	HASH_ITER(hh, merge->groups, group, next)
	{
		HASH_DEL(merge->groups, group);
		free(group);
	}
	HASH_ITER(hh, merge->spans, entry, next_entry)
	{
		HASH_DEL(merge->spans, entry);
		free(entry);
	}
	seen_free(merge->threads);
	seen_free(merge->processes);
	free(merge->array);
	free(merge);
	return NULL;
}

struct merge_group **merge_groups(struct merge *merge, size_t *n_out)
{
	*n_out = HASH_COUNT(merge->groups);
	return merge->array;
}

const struct merge_totals *merge_totals(const struct merge *merge)
{
	return &merge->totals;
}

uint64_t merge_estimated(const struct merge *merge)
{
	return merge->estimated;
}
