/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/aggregate_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/pool_name.h"
#include "daemon/base/hash.h"
#include "daemon/window/idle_wait.h"
#include "daemon/window/reason_find.h"
#include "daemon/window/task_state.h"

/* PID_MAX_LIMIT of 64-bit kernels: each tid is less than this */
#define TID_RANGE UINT64_C(4194304)

/* Bits of a task's state, as in the kernel's include/linux/sched.h. */
enum { TASK_WAKEKILL = 0x100, TASK_KILLABLE = TASK_UNINTERRUPTIBLE | TASK_WAKEKILL };

/*
 * Values and flags of aggregate_key.state. The value is KEY_SHORT, KEY_WAIT, KEY_SAMPLE or the
 * letter of a task's state; KEY_IDLE, KEY_KILLABLE, KEY_THROTTLED and KEY_OWN are flags that are
 * added to it. A reason plus 1 may be added, shifted by KEY_REASON_SHIFT.
 */
enum {
	KEY_SHORT = 1,
	KEY_WAIT = 2,
	KEY_SAMPLE = 3,
	KEY_OTHERS = 4,
	KEY_IDLE = 0x100,
	KEY_KILLABLE = 0x200,
	KEY_THROTTLED = 0x400,
	KEY_OWN = 0x800,
	KEY_REASON_SHIFT = 16,
};

static bool item_is_idle(const struct aggregate_item *item)
{
	const struct process_info *process = &item->info->process;

	if (item->is_sample)
		return !process->id.pid && !process->is_folded;
	return wait_is_idle(item->state, process->is_kernel, item->kernel, item->user);
}

bool aggregate_needs_reasons(const struct filter *filter, const struct aggregate_options *options)
{
	return options->open_only || options->by_reasons || options->group == GROUP_BY_REASON ||
	       options->group == GROUP_BY_LINE || filter_selects_reasons(filter) ||
	       filter->drops_kernel || filter->drops_user ||
	       (filter->wire && filter->wire->callers.n);
}

/* True if stacks are part of the key of a group that has no name. */
static bool has_stacks_in_keys(const struct aggregate_options *options)
{
	return options->by == AGGREGATE_BY_STACK ||
	       (options->open_only && options->by != AGGREGATE_BY_PROCESS);
}

bool aggregate_needs_functions(const struct filter *filter, const struct aggregate_options *options)
{
	return options->group || !has_stacks_in_keys(options) || filter->drops_kernel ||
	       filter->drops_user;
}

/*
 * Looks for the functions that the filter asks for in the stacks of the item. If it asks for
 * callers, sets where the stacks begin. Returns false if the filter leaves the item out.
 */
static bool item_set_functions(const struct aggregate *aggregate, struct aggregate_item *item)
{
	struct function_places kernel = function_search(aggregate->functions, item->kernel);
	struct function_places user = function_search(aggregate->functions, item->user);
	const struct wire_filter *wire = aggregate->filter->wire;

	if (kernel.has_refused || user.has_refused)
		return false;
	if (wire->functions.n && !kernel.has_wanted && !user.has_wanted)
		return false;
	if (!wire->callers.n)
		return true;
	if (kernel.callee == FUNCTION_NOWHERE && user.callee == FUNCTION_NOWHERE)
		return false;
	if (kernel.callee == FUNCTION_NOWHERE) {
		item->kernel = NULL;
		item->user_from = user.callee;
	} else {
		item->kernel_from = kernel.callee;
	}
	return true;
}

/* Names take at most one part in NAMES_PART of options.max_memory, but NAMES_MIN are always kept.
 */
enum { NAMES_PART = 4, NAMES_MIN = 64 };

/* Stands for the names for which there is no room. */
#define NAMES_OTHER "[other names]"

/* True if there is room for another name. Counts it, if so. */
static bool name_fits(struct aggregate *aggregate, const char *text)
{
	size_t size = sizeof(struct aggregate_name) + strlen(text) + 1;

	if (aggregate->options.max_memory && HASH_COUNT(aggregate->names) >= NAMES_MIN &&
	    aggregate->names_bytes + size > aggregate->options.max_memory / NAMES_PART)
		return false;
	aggregate->names_bytes += size;
	return true;
}

/*
 * Returns the hash of a text, and keeps a copy of the text in aggregate->names. Where there is no
 * room for it, returns the hash of NAMES_OTHER. When out of memory, returns 0 and sets
 * aggregate->error.
 */
static uint64_t name_put(struct aggregate *aggregate, const char *text)
{
	uint64_t hash = hash64_string(HASH64_SEED, text);
	struct aggregate_name *name;

	HASH_FIND(hh, aggregate->names, &hash, sizeof(hash), name);
	if (name)
		return hash;
	if (!name_fits(aggregate, text) && strcmp(text, NAMES_OTHER) != 0)
		return name_put(aggregate, NAMES_OTHER);
	name = arena_alloc(aggregate->arena, sizeof(*name));
	if (name) {
		name->hash = hash;
		name->text = arena_strdup(aggregate->arena, text);
	}
	if (name && name->text)
		HASH_ADD(hh, aggregate->names, hash, sizeof(name->hash), name);
	if (!name || !HASH_HAS(name)) {
		aggregate->error = -ENOMEM;
		return 0;
	}
	return hash;
}

/* Does what name_put() does for a function; returns 0 for a text that says why there is none. */
static uint64_t function_put(struct aggregate *aggregate, const char *function)
{
	return function[0] == '[' ? 0 : name_put(aggregate, function);
}

bool aggregate_item_set_stacks(struct aggregate *aggregate, struct aggregate_item *item,
			       struct stack *kernel, struct stack *user)
{
	item->kernel = kernel;
	item->user = user;
	if (aggregate->needs_functions)
		item->function = function_put(
			aggregate, group_name(GROUP_BY_FUNCTION, kernel, user, item->is_sample));
	/* Determine is_idle before the filter drops stacks: it must not depend on the filter. */
	item->is_idle = !item->is_step && item_is_idle(item);
	/* Find the reason before, too, for the same cause. */
	item->has_reason = aggregate->needs_reasons && !item->is_sample;
	if (item->has_reason)
		item->reason = item->is_step ? REASON_PROGRAM_LOCK
					     : reason_find(item->state, kernel, user);
	if (aggregate->functions && !item_set_functions(aggregate, item))
		return false;
	if (aggregate->filter->drops_kernel)
		item->kernel = NULL;
	if (aggregate->filter->drops_user)
		item->user = NULL;
	return !item->has_reason || filter_has_reason(aggregate->filter, item->reason);
}

/*
 * Returns the value of aggregate_key.state for an item. Killable waits have a flag of their own,
 * although ps shows them as D like uninterruptible ones: it helps to know that kill -9 ends a hung
 * process.
 */
static uint64_t key_state(const struct aggregate_item *item, bool has_stacks)
{
	uint64_t flags = item->is_idle ? KEY_IDLE : 0;

	if (item->is_short)
		return KEY_SHORT;
	if (item->is_sample)
		return KEY_SAMPLE;
	if (!has_stacks)
		return KEY_WAIT | flags;
	if ((item->state & TASK_KILLABLE) == TASK_KILLABLE)
		flags |= KEY_KILLABLE;
	if (item->state & STATE_THROTTLED)
		flags |= KEY_THROTTLED;
	/* Where a stack is left out, waits for different reasons may have the same stacks. */
	if (item->has_reason)
		flags |= (uint64_t)(item->reason + 1) << KEY_REASON_SHIFT;
	return (uint64_t)task_state_letter(item->state)[0] | flags;
}

static const char *name_text(const struct aggregate *aggregate, uint64_t hash)
{
	struct aggregate_name *name;

	HASH_FIND(hh, aggregate->names, &hash, sizeof(hash), name);
	return name ? name->text : NULL;
}

/* Returns what tells the wakers of rows by line apart: the context, and the name of the thread. */
static uint64_t line_waker_id(const struct window_waker *waker)
{
	const struct window_link *link = &waker->links[0];
	char name[COMM_LEN + 1] = {};

	pool_name(link->comm, name, COMM_LEN);
	return hash64_string(HASH64_SEED + 1 + link->context, name);
}

/* Sets the key of an item's group if rows are by GROUP_BY_LINE, see there. */
static void key_init_line(struct aggregate *aggregate, const struct aggregate_item *item,
			  struct aggregate_key *key)
{
	const struct process_info *process = &item->info->process;
	const char *comm = item->image->comm;
	char name[COMM_LEN + 1] = {};

	/* Threads of the kernel, such as kworker/0:1, are a process each. */
	if (!process->is_kernel) {
		memcpy(name, process->comm, strnlen(process->comm, COMM_LEN));
		key->name = hash64_string(HASH64_SEED, name);
	}
	if (aggregate->options.line_functions)
		key->function = item->function;
	if (strncmp(comm, process->comm, COMM_LEN) == 0 && !process->is_kernel)
		memcpy(key->comm, comm, strnlen(comm, COMM_LEN));
	else
		pool_name(comm, key->comm, COMM_LEN);
	if (item->has_reason)
		key->state |= (uint64_t)(item->reason + 1) << KEY_REASON_SHIFT;
	if (item->waker)
		key->waker = line_waker_id(item->waker);
}

/*
 * Sets the key of an item's group if rows are grouped by thread name, cgroup or a part of it,
 * module, function or reason.
 */
static void key_init_named(struct aggregate *aggregate, const struct aggregate_item *item,
			   struct aggregate_key *key)
{
	enum group_by by = aggregate->options.group;
	char name[GROUP_CGROUP_NAME_MAX];

	key->state = key_state(item, false);
	if (by == GROUP_BY_LINE)
		key_init_line(aggregate, item, key);
	else if (by == GROUP_BY_COMM)
		memcpy(key->comm, item->image->comm, strnlen(item->image->comm, sizeof(key->comm)));
	else if (group_by_is_of_cgroup(by)) {
		group_cgroup_name(by, item->info->process.cgroup, name);
		key->name = name_put(aggregate, name);
	} else if (by == GROUP_BY_REASON && item->has_reason)
		key->name = name_put(aggregate, wait_reason_word(item->reason));
	else if (by != GROUP_BY_REASON && !item->is_short)
		key->name = name_put(aggregate,
				     group_name(by, item->kernel, item->user, item->is_sample));
}

static void key_set_stacks(const struct aggregate *aggregate, const struct aggregate_item *item,
			   struct aggregate_key *key)
{
	if (aggregate->filter->wire && aggregate->filter->wire->callers.n) {
		key->kernel = function_callers_id(item->kernel, item->kernel_from);
		key->user = function_callers_id(item->user, item->user_from);
	} else if (item->is_sample && aggregate->options.by_functions) {
		key->kernel = stack_functions(item->kernel);
		key->user = stack_functions(item->user);
	} else {
		key->kernel = stack_place(item->kernel);
		key->user = stack_place(item->user);
	}
	key->waker = window_waker_id(item->waker, !aggregate->filter->drops_kernel,
				     !aggregate->filter->drops_user);
}

static void key_init(struct aggregate *aggregate, struct aggregate_item *item)
{
	struct aggregate_key *key = &item->key;
	const struct process_info *process = &item->info->process;
	enum aggregate_by by = aggregate->options.by;
	bool has_stacks = has_stacks_in_keys(&aggregate->options);
	const char *comm = by == AGGREGATE_BY_PROCESS ? process->comm : item->image->comm;

	memset(key, 0, sizeof(*key));
	if (item->info->is_own) {
		/* One row says what stackd did: also its short waits are in it. */
		key->state = KEY_OWN | (item->is_idle ? KEY_IDLE : 0);
		memcpy(key->comm, "stackd", sizeof("stackd"));
		return;
	}
	if (aggregate->options.group) {
		key_init_named(aggregate, item, key);
		return;
	}
	key->pid = (uint64_t)process->id.pid;
	key->process_start = process->id.start_boot_ns;
	/*
	 * image->uid cannot identify a thread here, because each run of stackd numbers its threads
	 * from the start again.
	 */
	if (by == AGGREGATE_BY_THREAD)
		key->thread = item->image->start_boot_ns * TID_RANGE + (uint64_t)item->image->tid;
	key->state = key_state(item, has_stacks);
	memcpy(key->comm, comm, strnlen(comm, sizeof(key->comm)));
	if (has_stacks)
		key_set_stacks(aggregate, item, key);
}

/*
 * STACKS_BYTES: estimated memory of the stacks of one group, and of its slots in the index. It is
 * small because many groups share a kernel stack. GROUPS_MIN: number of groups that are kept,
 * however low the limit is. REASONS_USUAL: the number of reasons that most groups have at most.
 */
enum { STACKS_BYTES = 256, GROUPS_MIN = 64, REASONS_USUAL = 4 };

/* Returns the number of groups of this size that fit into max_memory, or SIZE_MAX if that is 0. */
static size_t groups_in(size_t max_memory, size_t size)
{
	size_t n = max_memory ? max_memory / (size + STACKS_BYTES) : SIZE_MAX;

	return n > GROUPS_MIN ? n : GROUPS_MIN;
}

void aggregate_groups_limit(struct aggregate *aggregate)
{
	size_t max = aggregate->options.max_memory, lacks, size = sizeof(struct aggregate_group);

	aggregate_lacks_init(&aggregate->lacks, max);
	lacks = aggregate_lacks_bytes(&aggregate->lacks);
	if (max)
		max = max > lacks ? max - lacks : 1;
	aggregate->groups.key_size = sizeof(struct aggregate_key);
	aggregate->io_groups.key_size = sizeof(struct aggregate_io_key);
	if (aggregate->options.group == GROUP_BY_LINE)
		size += sizeof(struct aggregate_line);
	if (aggregate->options.by_reasons)
		size += REASONS_USUAL * sizeof(struct reason_time);
	aggregate->max_groups = groups_in(max, size);
	aggregate->max_io_groups = groups_in(max, sizeof(struct aggregate_io_group));
}

void aggregate_group_give_stacks(struct aggregate_group *group)
{
	stack_unref(TAKE(group->kernel));
	stack_unref(TAKE(group->user));
	if (!group->waker)
		return;
	stack_unref(group->waker->kernel);
	stack_unref(group->waker->user);
	*group->waker = (struct window_waker){};
}

static void group_release(struct aggregate_group *group)
{
	process_unref(group->process.process);
	if (group->line) {
		aggregate_set_fini(&group->line->processes);
		aggregate_set_fini(&group->line->folded);
	}
	aggregate_group_give_stacks(group);
}

/* If this wait is longer than the longest wait of the group so far, stores it as the longest. */
static void group_add_max(struct aggregate_group *group, uint64_t max_ns, int64_t max_end_real_ns,
			  int32_t max_pid, int32_t max_tid, const char *max_comm)
{
	if (max_ns < group->max_ns || (max_ns == group->max_ns && group->max_tid))
		return;
	group->max_ns = max_ns;
	group->max_end_real_ns = max_end_real_ns;
	group->max_pid = max_pid;
	group->max_tid = max_tid;
	memcpy(group->max_comm, max_comm, sizeof(group->max_comm));
}

static void group_merge(struct aggregate *aggregate, struct aggregate_group *sum,
			struct aggregate_group *group)
{
	size_t i;

	reason_times_move(&sum->reasons, &group->reasons, &aggregate->spare_reasons);
	aggregate_functions_merge(&sum->functions, &group->functions);
	sum->state |= group->state;
	WAIT_MEASURES_ADD(sum, group);
	sum->on_ns += group->on_ns;
	window_estimate_add(&sum->sampled, &group->sampled);
	window_estimate_add(&sum->deducted, &group->deducted);
	sum->is_estimate |= group->is_estimate;
	sum->open += group->open;
	sum->open_ns += group->open_ns;
	sum->unseen += group->unseen;
	group_add_max(sum, group->max_ns, group->max_end_real_ns, group->max_pid, group->max_tid,
		      group->max_comm);
	culprits_add(&sum->culprits, &group->culprits);
	for (i = 0; i < WAIT_BUCKETS; i++)
		sum->buckets[i] += group->buckets[i];
}

/*
 * Groups that do not fit into memory are merged into one of two groups: one for idle groups, one
 * for the others. Returns one of the two; NULL when out of memory.
 */
static struct aggregate_group *rest_get(struct aggregate *aggregate, bool is_idle, bool is_sample)
{
	struct aggregate_group **rest = &aggregate->rest[is_idle];

	if (*rest)
		return *rest;
	*rest = arena_alloc(aggregate->arena, sizeof(**rest));
	if (!*rest) {
		aggregate->error = -ENOMEM;
		return NULL;
	}
	(*rest)->is_others = true;
	(*rest)->is_idle = is_idle;
	(*rest)->is_sample = is_sample;
	(*rest)->key.state = KEY_OTHERS | (is_idle ? KEY_IDLE : 0);
	memcpy((*rest)->key.comm, "(others)", sizeof("(others)"));
	return *rest;
}

/* A group and its rank. When memory is full, the groups with the lowest rank are merged. */
struct ranked {
	uint64_t rank;
	struct aggregate_group *group;
};

static uint64_t rank_of(const struct aggregate *aggregate, const struct aggregate_group *group)
{
	switch (aggregate->options.rank) {
	case AGGREGATE_BY_MAX:
		return group->max_ns;
	case AGGREGATE_BY_COUNT:
		return group->count;
	default:
		return group->on_ns + group->blocked_ns + group->runnable_ns;
	}
}

static int by_rank(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	int r = x->rank < y->rank ? -1 : x->rank > y->rank;

	return r ? r : memcmp(&x->group->key, &y->group->key, sizeof(x->group->key));
}

/* Merges a group that is no longer in aggregate->groups into one of the groups of rest_get(). */
static void group_give_up(struct aggregate *aggregate, struct aggregate_group *group)
{
	struct aggregate_group *rest = rest_get(aggregate, group->is_idle, group->is_sample);
	const struct aggregate_sums sums = {
		.ns = group->on_ns + group->blocked_ns + group->runnable_ns,
		.count = group->count,
	};
	struct window_waker *waker = group->waker;
	struct aggregate_line *line = group->line;

	if (!rest)
		return;
	aggregate_lacks_add(&aggregate->lacks, key_index_hash(&group->key, sizeof(group->key)),
			    &sums);
	group_merge(aggregate, rest, group);
	group_release(group);
	*group = (struct aggregate_group){ .waker = waker, .line = line };
	group->next_spare = aggregate->spare;
	aggregate->spare = group;
	aggregate->others.groups++;
}

/* Adds a group to aggregate->groups. Returns 0 or -ENOMEM, which it also sets as the error. */
static int group_index(struct aggregate *aggregate, struct aggregate_group *group, uint64_t hash)
{
	int r = key_index_add(&aggregate->groups, group, hash);

	if (r)
		aggregate->error = r;
	return r;
}

/* Merges the half of the groups with the lowest rank into the groups of rest_get(). */
static void groups_shrink(struct aggregate *aggregate)
{
	size_t n = aggregate->groups.n, i = 0, at = 0;
	struct ranked *ranked = calloc(n, sizeof(*ranked));
	struct aggregate_group *group;

	if (!ranked) {
		aggregate->error = -ENOMEM;
		return;
	}
	while ((group = key_index_next(&aggregate->groups, &at)))
		ranked[i++] = (struct ranked){ rank_of(aggregate, group), group };
	qsort(ranked, n, sizeof(*ranked), by_rank);
	aggregate->error = aggregate_lacks_give_up(&aggregate->lacks, ranked[(n - 1) / 2].rank);
	if (!aggregate->error)
		key_index_clear(&aggregate->groups);
	for (i = 0; i < n && !aggregate->error; i++) {
		group = ranked[i].group;
		if (i < n / 2)
			group_give_up(aggregate, group);
		else
			group_index(aggregate, group,
				    key_index_hash(&group->key, sizeof(group->key)));
	}
	free(ranked);
}

/*
 * Returns an empty group: all members are 0, except that `waker` may point to memory that can be
 * used again. Returns NULL when out of memory.
 */
static struct aggregate_group *group_alloc(struct aggregate *aggregate)
{
	struct aggregate_group *group;

	if (aggregate->groups.n >= aggregate->max_groups)
		groups_shrink(aggregate);
	group = aggregate->spare;
	if (!group)
		return arena_alloc(aggregate->arena, sizeof(*group));
	aggregate->spare = group->next_spare;
	group->next_spare = NULL;
	return group;
}

static void group_set_waker(struct aggregate *aggregate, struct aggregate_group *group,
			    const struct window_waker *waker)
{
	if (!group->waker)
		group->waker = arena_alloc(aggregate->arena, sizeof(*group->waker));
	if (!group->waker) {
		aggregate->error = -ENOMEM;
		return;
	}
	*group->waker = *waker;
	if (aggregate->options.group) {
		/* Only what woke the threads is common to all waits of the group. */
		group->waker->kernel = group->waker->user = NULL;
		memset(&group->waker->links[1], 0,
		       sizeof(group->waker->links) - sizeof(group->waker->links[0]));
		pool_name(waker->links[0].comm, group->waker->links[0].comm, COMM_LEN);
		return;
	}
	group->waker->kernel = aggregate->filter->drops_kernel ? NULL : stack_ref(waker->kernel);
	group->waker->user = aggregate->filter->drops_user ? NULL : stack_ref(waker->user);
}

static void group_describe(struct aggregate *aggregate, struct aggregate_group *group,
			   const struct aggregate_item *item)
{
	group->process = item->info->handle;
	if (group->process.process)
		process_ref(group->process.process);
	group->tid = item->image->tid;
	group->thread_start_ns = item->image->start_boot_ns;
	group->name = group->key.name ? name_text(aggregate, group->key.name) : NULL;
	group->is_idle = item->is_idle;
	group->is_own = item->info->is_own;
	group->is_short = item->is_short && !group->is_own;
	group->is_sample = item->is_sample;
	group->has_reason = item->has_reason;
	group->reason = item->reason;
	group->kernel = group->key.kernel ? stack_ref(item->kernel) : NULL;
	group->user = group->key.user ? stack_ref(item->user) : NULL;
	group->kernel_from = item->kernel_from;
	group->user_from = item->user_from;
	if (group->key.waker)
		group_set_waker(aggregate, group, item->waker);
}

/*
 * True if the item's group, which does not exist, would be among those that are given up next. Then
 * notes what it lacks; the caller adds the item to a group of rest_get().
 */
static bool item_give_up(struct aggregate *aggregate, const struct aggregate_item *item)
{
	const struct aggregate_sums sums = {
		.ns = item->on_ns + item->blocked_ns + item->runnable_ns,
		.count = item->count,
		.max_ns = item->max_ns,
	};

	if (!aggregate_lacks_is_low(&aggregate->lacks, item->hash, aggregate->options.rank, &sums))
		return false;
	aggregate_lacks_add(&aggregate->lacks, item->hash, &sums);
	aggregate->others.groups++;
	return true;
}

/*
 * Returns the group of an item; creates it if it does not exist, unless memory was full before and
 * the group would be too low to be kept. NULL when out of memory.
 */
static struct aggregate_group *group_get(struct aggregate *aggregate,
					 const struct aggregate_item *item)
{
	struct aggregate_group *group = key_index_find(&aggregate->groups, &item->key, item->hash);

	if (group)
		return group;
	if (item_give_up(aggregate, item))
		return rest_get(aggregate, item->is_idle, item->is_sample);
	group = group_alloc(aggregate);
	if (!group) {
		aggregate->error = -ENOMEM;
		return NULL;
	}
	if (aggregate->options.group == GROUP_BY_LINE && !aggregate_line_init(aggregate, group))
		return NULL;
	group->key = item->key;
	if (group_index(aggregate, group, item->hash))
		return NULL;
	group_describe(aggregate, group, item);
	return group;
}

/* Sets the key of an item's group and its hash. */
static void item_key(struct aggregate *aggregate, struct aggregate_item *item)
{
	key_init(aggregate, item);
	item->hash = key_index_hash(&item->key, sizeof(item->key));
}

/* With options.by_reasons, adds an item's time to the group's sum for its reason, if it has one. */
static void reason_add(struct aggregate *aggregate, struct aggregate_group *group,
		       const struct aggregate_item *item)
{
	if (aggregate->options.by_reasons && item->has_reason &&
	    reason_times_add(&group->reasons, item->reason, item->blocked_ns + item->runnable_ns,
			     &aggregate->spare_reasons, aggregate->arena))
		aggregate->error = -ENOMEM;
}

/*
 * Counts the processes of a folded item. An entry that has one process only is counted with the
 * process. Where rows with several stacks are in one group, all those of an entry have the same
 * processes, which count once in a window.
 */
static void folded_add(struct aggregate *aggregate, struct aggregate_group *group,
		       const struct aggregate_item *item)
{
	const struct window_image *image = item->image;

	if (!item->info->process.is_folded)
		return;
	if (!aggregate->options.group && has_stacks_in_keys(&aggregate->options)) {
		window_processes_add(&group->folded, &group->started, item->processes,
				     item->started);
		return;
	}
	if (group->line ? !aggregate_line_has_new(aggregate, group->line, image)
			: group->folded_window == aggregate->n_windows)
		return;
	group->folded_window = aggregate->n_windows;
	window_processes_add(&group->folded, &group->started, image->folded, image->started);
}

/* Does what aggregate_add() does for an item whose key is set. */
static struct aggregate_group *item_add(struct aggregate *aggregate,
					const struct aggregate_item *item)
{
	struct aggregate_group *group = group_get(aggregate, item);
	uint64_t ns;

	if (!group)
		return NULL;
	if (item->is_idle && aggregate_set_add(&aggregate->threads, (uint64_t)item->image->tid,
					       item->image->start_boot_ns, true))
		aggregate->error = -ENOMEM;
	/*
	 * Kernel stacks with the same key differ at most in the frames of the scheduler: keep the
	 * longer stack, which has these frames.
	 */
	if (item->kernel != group->kernel && item->kernel && group->kernel && !item->kernel_from &&
	    item->kernel->n_frames > group->kernel->n_frames) {
		stack_unref(group->kernel);
		group->kernel = stack_ref(item->kernel);
	}
	group->state |= item->state & ~(STATE_SEEDED | STATE_UNSEEN);
	group->has_reason &= item->has_reason && group->reason == item->reason;
	reason_add(aggregate, group, item);
	ns = item->on_ns + item->blocked_ns + item->runnable_ns;
	if (item->function && ns)
		aggregate_functions_add(&group->functions, item->function, ns);
	WAIT_MEASURES_ADD(group, item);
	group->on_ns += item->on_ns;
	window_estimate_add(&group->sampled, &item->sampled);
	window_estimate_add(&group->deducted, &item->deducted);
	if (!group->is_others)
		folded_add(aggregate, group, item);
	group_add_max(group, item->max_ns, item->max_end_real_ns,
		      (int32_t)item->info->process.id.pid, item->image->tid, item->image->comm);
	culprits_add(&group->culprits, &item->culprits);
	if (!group->line)
		return group;
	aggregate_line_add(aggregate, group->line, item);
	/* Threads of several processes may have woken them: then none of these is named. */
	if (group->waker && item->waker && group->waker->links[0].pid != item->waker->links[0].pid)
		group->waker->links[0].pid = 0;
	if (group->waker && item->waker && group->waker->links[0].tid != item->waker->links[0].tid)
		group->waker->links[0].tid = 0;
	if (item->max_ns && group->max_ns == item->max_ns && group->max_tid == item->image->tid) {
		group->tid = item->image->tid;
		group->thread_start_ns = item->image->start_boot_ns;
	}
	return group;
}

struct aggregate_group *aggregate_add(struct aggregate *aggregate, struct aggregate_item *item)
{
	item_key(aggregate, item);
	return item_add(aggregate, item);
}

/* Adds the oldest item of the queue to its group. */
static void queue_take(struct aggregate *aggregate)
{
	struct aggregate_queued *queued =
		&aggregate->queue[aggregate->queue_first++ % AGGREGATE_QUEUE];
	struct aggregate_group *group = item_add(aggregate, &queued->item);

	if (group && queued->row)
		window_row_add_buckets(queued->window, queued->row, group->buckets);
}

struct aggregate_queued *aggregate_queue_place(struct aggregate *aggregate)
{
	struct aggregate_queued *place;

	if (aggregate->queue_end - aggregate->queue_first == AGGREGATE_QUEUE)
		queue_take(aggregate);
	place = &aggregate->queue[aggregate->queue_end % AGGREGATE_QUEUE];
	*place = (struct aggregate_queued){};
	return place;
}

void aggregate_queue_put(struct aggregate *aggregate)
{
	size_t end = aggregate->queue_end++;
	struct aggregate_item *item = &aggregate->queue[end % AGGREGATE_QUEUE].item;

	item_key(aggregate, item);
	key_index_fetch(&aggregate->groups, item->hash);
	aggregate_lacks_fetch(&aggregate->lacks, item->hash);
	if (end - aggregate->queue_first < AGGREGATE_QUEUE_SLOTS)
		return;
	item = &aggregate->queue[(end - AGGREGATE_QUEUE_SLOTS) % AGGREGATE_QUEUE].item;
	key_index_fetch_item(&aggregate->groups, item->hash);
}

void aggregate_queue_flush(struct aggregate *aggregate)
{
	while (aggregate->queue_first < aggregate->queue_end)
		queue_take(aggregate);
}

void aggregate_add_sample(struct aggregate *aggregate, const struct window *window,
			  const struct window_sample *sample,
			  const struct aggregate_image_info *info)
{
	struct aggregate_item *item = &aggregate_queue_place(aggregate)->item;

	item->image = &window->images[sample->image];
	item->info = info;
	item->is_sample = true;
	item->count = sample->count;
	item->on_ns = sample->on_ns;
	item->processes = sample->processes;
	item->started = sample->started;
	aggregate->totals.samples += sample->count;
	if (aggregate_item_set_stacks(aggregate, item, sample->kernel, sample->user))
		aggregate_queue_put(aggregate);
}

void aggregate_groups_free(struct aggregate *aggregate)
{
	struct aggregate_group *group;
	size_t at = 0;

	while ((group = key_index_next(&aggregate->groups, &at)))
		group_release(group);
	key_index_fini(&aggregate->groups);
	aggregate_lacks_fini(&aggregate->lacks);
}
