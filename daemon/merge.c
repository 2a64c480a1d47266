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

/* A thread as one image, over all windows: who it is and whether it is asked for, found once. */
struct image_info {
	uint64_t key[2]; /* uid, process */
	struct process_info process;
	struct seen *thread;
	char comm[COMM_LEN];
	bool is_wanted;
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
	struct image_info *infos;
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
	struct image_info *info;
	const struct stack *kernel;
	const struct stack *user;
	uint32_t state;
	bool is_idle;
	bool is_short;
	uint64_t count;
	uint64_t blocked_ns;
	uint64_t runnable_ns;
	uint64_t max_ns;
	int64_t max_end_real_ns;
};

void merge_edges(const struct filter *filter, int64_t *min_ns, int64_t *max_ns)
{
	*min_ns = (int64_t)filter_bucket_ns(filter_bucket((uint64_t)filter->min_ns));
	*max_ns = INT64_MAX;
	if (filter->max_ns != INT64_MAX &&
	    filter_bucket((uint64_t)filter->max_ns) + 1 < WAIT_BUCKETS)
		*max_ns = (int64_t)filter_bucket_ns(filter_bucket((uint64_t)filter->max_ns) + 1);
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
	if (!HASH_HAS(seen)) {
		free(seen);
		merge->error = -ENOMEM;
		return NULL;
	}
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
	if (!HASH_HAS(entry)) {
		free(entry);
		merge->error = -ENOMEM;
		return NULL;
	}
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

static void info_look(struct merge *merge, struct image_info *info,
		      const struct window_image *image)
{
	memcpy(info->comm, image->comm, sizeof(info->comm));
	info->is_wanted = filter_has_image(merge->filter, image, &info->process);
	if (!info->is_wanted)
		return;
	info->thread = seen_add(merge, &merge->threads, image->uid, 0);
	seen_add(merge, &merge->processes, (uint64_t)info->process.id.pid,
		 info->process.id.start_boot_ns);
}

static struct image_info *info_get(struct merge *merge, const struct window_image *image)
{
	uint64_t key[2] = { image->uid, (uintptr_t)image->process };
	struct image_info *info;

	HASH_FIND(hh, merge->infos, key, sizeof(key), info);
	if (info) {
		/* A thread may have another name in each window. */
		if (memcmp(info->comm, image->comm, sizeof(info->comm)) != 0)
			info_look(merge, info, image);
		return info;
	}
	info = calloc(1, sizeof(*info));
	if (!info)
		return NULL;
	memcpy(info->key, key, sizeof(key));
	HASH_ADD(hh, merge->infos, key, sizeof(key), info);
	if (!HASH_HAS(info)) {
		free(info);
		return NULL;
	}
	process_info(image->process, &info->process);
	info_look(merge, info, image);
	return info;
}

/* An id that two stacks claimed stands for no place but its own. */
static uint64_t stack_place(const struct stack *stack)
{
	if (!stack)
		return 0;
	return stack->flags & STACK_IS_AMBIGUOUS ? stack->raw_id : stack->place_id;
}

static bool stack_is_idle(const struct stack *stack)
{
	return stack && stack->is_idle && !(stack->flags & STACK_IS_AMBIGUOUS);
}

/*
 * Idle: nobody minds this wait. Kernel threads that wait for work, and user threads asleep in one
 * of the configured functions; never what cannot be interrupted (D), nor what wants a CPU.
 */
static bool wait_is_idle(const struct contribution *c)
{
	bool is_uninterruptible = (c->state & 0x2) && !(c->state & 0x400);

	if (c->state & (STATE_PREEMPTED | STATE_NEW) || is_uninterruptible)
		return false;
	return c->info->process.is_kernel || stack_is_idle(c->kernel) || stack_is_idle(c->user);
}

/* Whether a wait is idle does not depend on which of its stacks are wanted. */
static void contribution_stacks(const struct merge *merge, struct contribution *c,
				const struct stack *kernel, const struct stack *user)
{
	c->kernel = kernel;
	c->user = user;
	c->is_idle = wait_is_idle(c);
	if (merge->filter->drops_kernel)
		c->kernel = NULL;
	if (merge->filter->drops_user)
		c->user = NULL;
}

enum { KEY_SHORT = 1, KEY_WAIT = 2, KEY_IDLE = 0x100 /* beside a letter or KEY_WAIT */ };

static void key_init(const struct merge *merge, const struct contribution *c, struct merge_key *key)
{
	const struct process_info *process = &c->info->process;
	enum merge_by by = merge->options.by;
	bool has_stacks = by == MERGE_BY_STACK || merge->options.open_only;
	const char *comm = by == MERGE_BY_PROCESS ? process->comm : c->image->comm;

	memset(key, 0, sizeof(*key));
	key->pid = (uint64_t)process->id.pid;
	key->process_start = process->id.start_boot_ns;
	key->uid = by == MERGE_BY_THREAD ? c->image->uid : 0;
	if (c->is_short)
		key->state = KEY_SHORT;
	else
		key->state = (has_stacks ? (uint64_t)state_letter(c->state)[0] : KEY_WAIT) |
			     (c->is_idle ? KEY_IDLE : 0);
	if (has_stacks) {
		key->kernel = stack_place(c->kernel);
		key->user = stack_place(c->user);
	}
	memcpy(key->comm, comm, strnlen(comm, sizeof(key->comm)));
}

static struct merge_group *group_get(struct merge *merge, const struct contribution *c)
{
	struct merge_group *group;
	struct merge_key key;

	key_init(merge, c, &key);
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
	group->is_idle = c->is_idle;
	group->is_short = c->is_short;
	HASH_ADD(hh, merge->groups, key, sizeof(group->key), group);
	if (!HASH_HAS(group)) {
		free(group);
		merge->error = -ENOMEM;
		return NULL;
	}
	return group;
}

static struct merge_group *contribute(struct merge *merge, const struct contribution *c)
{
	struct merge_group *group = group_get(merge, c);

	if (!group)
		return NULL;
	if (c->is_idle && c->info->thread)
		c->info->thread->is_idle = true;
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

static void merge_row(struct merge *merge, const struct window *window,
		      const struct window_row *row, struct image_info *info)
{
	struct filter_part part = {
		.count = row->count,
		.blocked_ns = row->blocked_ns,
		.runnable_ns = row->runnable_ns,
		.max_ns = row->max_ns,
		.has_max = true,
	};
	struct contribution c = {
		.image = &window->images[row->image],
		.info = info,
		.state = row->state,
	};
	struct merge_group *group;
	unsigned int i;

	window_row_add_buckets(window, row, part.buckets);
	if (!filter_row(merge->filter, &part))
		return;
	merge->estimated += part.is_estimate;
	c.count = part.count;
	c.blocked_ns = part.blocked_ns;
	c.runnable_ns = part.runnable_ns;
	c.max_ns = part.max_ns;
	c.max_end_real_ns = part.has_max ? row->max_end_ns + window->real_offset_ns : INT64_MAX;
	contribution_stacks(merge, &c, row->kernel, row->user);
	group = contribute(merge, &c);
	for (i = 0; group && i < WAIT_BUCKETS; i++)
		group->buckets[i] += part.buckets[i];
}

static uint64_t overlap(int64_t from, int64_t to, const struct window *window)
{
	if (from < window->start_ns)
		from = window->start_ns;
	if (to > window->end_ns)
		to = window->end_ns;
	return to > from ? (uint64_t)(to - from) : 0;
}

static void merge_span(struct merge *merge, const struct window *window,
		       const struct window_span *span, struct image_info *info)
{
	uint64_t ns = (uint64_t)(span->end_ns - span->start_ns);
	struct contribution c = {
		.image = &window->images[span->image],
		.info = info,
		.state = span->state,
		.count = 1,
		.blocked_ns = overlap(span->start_ns, span->wake_ns, window),
		.runnable_ns = overlap(span->wake_ns, span->end_ns, window),
		.max_ns = ns,
		.max_end_real_ns = span->end_ns + window->real_offset_ns,
	};
	struct merge_group *group;

	if (!filter_has_duration(merge->filter, ns))
		return;
	contribution_stacks(merge, &c, span->kernel, span->user);
	group = contribute(merge, &c);
	if (group)
		group->buckets[filter_bucket(ns)]++;
}

/*
 * The part of a wait in a window it did not end in. If it is known how it ended, it goes to the
 * stack it ended with, which is whole; else to the kernel stack taken while it lasted.
 */
static void merge_open(struct merge *merge, const struct window *window,
		       const struct window_open *open, struct image_info *info,
		       const struct stack *unread)
{
	const struct window_image *image = &window->images[open->image];
	struct span_entry *entry = span_get(merge, image->uid, open->start_ns, false);
	const struct window_span *span = entry ? entry->span : NULL;
	bool is_open = entry && entry->is_open_at_end;
	int64_t wake = span ? span->wake_ns : open->wake_ns;
	int64_t end = is_open || !span ? merge->end_ns : span->end_ns;
	const struct stack *user = open->user;
	struct contribution c = {
		.image = image,
		.info = info,
		.state = open->state,
		.blocked_ns = overlap(open->start_ns, wake, window),
		.runnable_ns = overlap(wake, window->end_ns, window),
		.max_ns = is_open ? (uint64_t)(merge->end_ns - open->start_ns) : 0,
		.max_end_real_ns = INT64_MAX,
	};
	struct merge_group *group;

	if ((merge->options.open_only && !is_open) ||
	    !filter_has_duration(merge->filter, (uint64_t)(end - open->start_ns)))
		return;
	if (merge->options.open_only) {
		/* How long it waits, not how much of that is in the range. */
		c.blocked_ns =
			(uint64_t)((wake < merge->end_ns ? wake : merge->end_ns) - open->start_ns);
		c.runnable_ns = c.max_ns - c.blocked_ns;
	}
	if (!info->process.is_kernel && !open->user)
		user = unread;
	contribution_stacks(merge, &c, span ? span->kernel : open->kernel,
			    span ? span->user : user);
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

static void merge_short(struct merge *merge, const struct window_image *image,
			struct image_info *info)
{
	const struct thread_sums *sums = &image->sums;
	struct contribution c = {
		.image = image,
		.info = info,
		.is_short = true,
		.count = sums->short_count,
		.blocked_ns = sums->short_blocked_ns,
		.runnable_ns = sums->short_runnable_ns,
	};

	if (sums->short_count && !merge->filter->has_states && merge->filter->min_ns == 0 &&
	    !merge->options.open_only)
		contribute(merge, &c);
}

static void merge_image(struct merge *merge, const struct window_image *image,
			struct image_info *info)
{
	const struct thread_sums *sums = &image->sums;

	merge->totals.on_cpu_ns += sums->on_ns;
	merge->totals.blocked_ns += sums->blocked_ns;
	merge->totals.runnable_ns += sums->runnable_ns;
	merge->totals.waits += sums->switches;
	merge->totals.short_waits += sums->short_count;
	merge->totals.short_ns += sums->short_blocked_ns + sums->short_runnable_ns;
	merge_short(merge, image, info);
}

/* Who the window's images are; NULL in the place of those that are not asked for. */
static struct image_info **infos_make(struct merge *merge, const struct window *window)
{
	struct image_info **infos = calloc(window->n_images + 1, sizeof(*infos)), *info;
	size_t i;

	for (i = 0; infos && i < window->n_images; i++) {
		info = info_get(merge, &window->images[i]);
		if (!info) {
			free(infos);
			return NULL;
		}
		infos[i] = info->is_wanted ? info : NULL;
	}
	return infos;
}

static void merge_opens(struct merge *merge, const struct window *window, struct image_info **infos,
			const struct stack *unread)
{
	struct image_info *info;
	size_t i;

	for (i = 0; i < window->n_opens; i++) {
		info = infos[window->opens[i].image];
		if (info && filter_has_state(merge->filter, window->opens[i].state))
			merge_open(merge, window, &window->opens[i], info, unread);
	}
}

static void merge_ended(struct merge *merge, const struct window *window, struct image_info **infos)
{
	struct image_info *info;
	size_t i;

	for (i = 0; i < window->n_rows; i++) {
		info = infos[window->rows[i].image];
		if (info && filter_has_state(merge->filter, window->rows[i].state))
			merge_row(merge, window, &window->rows[i], info);
	}
	for (i = 0; i < window->n_spans; i++) {
		info = infos[window->spans[i].image];
		if (info && filter_has_state(merge->filter, window->spans[i].state))
			merge_span(merge, window, &window->spans[i], info);
	}
}

static int merge_window(struct merge *merge, const struct window *window, bool is_last,
			const struct stack *unread)
{
	_cleanup_(freep) struct image_info **infos = infos_make(merge, window);
	size_t i;

	if (!infos)
		return -ENOMEM;
	for (i = 0; i < window->n_images; i++)
		if (infos[i])
			merge_image(merge, &window->images[i], infos[i]);
	if (is_last || !merge->options.open_only)
		merge_opens(merge, window, infos, unread);
	if (!merge->options.open_only)
		merge_ended(merge, window, infos);
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
	struct image_info *info, *next_info;

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
	HASH_ITER(hh, merge->infos, info, next_info)
	{
		HASH_DEL(merge->infos, info);
		free(info);
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
