/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/aggregate_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/window/idle_wait.h"
#include "daemon/window/task_state.h"

/* PID_MAX_LIMIT of 64-bit kernels: each tid is less than this */
#define TID_RANGE UINT64_C(4194304)

/* Bits of a task's state, as in the kernel's include/linux/sched.h. */
enum { TASK_WAKEKILL = 0x100, TASK_KILLABLE = TASK_UNINTERRUPTIBLE | TASK_WAKEKILL };

/*
 * Values and flags of aggregate_key.state. The value is KEY_SHORT, KEY_WAIT, KEY_SAMPLE or the
 * letter of a task's state; KEY_IDLE, KEY_KILLABLE and KEY_THROTTLED are flags that are added to
 * it.
 */
enum {
	KEY_SHORT = 1,
	KEY_WAIT = 2,
	KEY_SAMPLE = 3,
	KEY_IDLE = 0x100,
	KEY_KILLABLE = 0x200,
	KEY_THROTTLED = 0x400,
};

static bool item_is_idle(const struct aggregate_item *item)
{
	const struct process_info *process = &item->info->process;

	if (item->is_sample)
		return !process->id.pid && !process->is_folded;
	return wait_is_idle(item->state, process->is_kernel, item->kernel, item->user);
}

void aggregate_item_set_stacks(const struct aggregate *aggregate, struct aggregate_item *item,
			       struct stack *kernel, struct stack *user)
{
	item->kernel = kernel;
	item->user = user;
	/* Determine is_idle before the filter drops stacks: it must not depend on the filter. */
	item->is_idle = item_is_idle(item);
	if (aggregate->filter->drops_kernel)
		item->kernel = NULL;
	if (aggregate->filter->drops_user)
		item->user = NULL;
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
	return (uint64_t)task_state_letter(item->state)[0] | flags;
}

static void key_init(const struct aggregate *aggregate, const struct aggregate_item *item,
		     struct aggregate_key *key)
{
	const struct process_info *process = &item->info->process;
	enum aggregate_by by = aggregate->options.by;
	bool has_stacks = by == AGGREGATE_BY_STACK || aggregate->options.open_only;
	const char *comm = by == AGGREGATE_BY_PROCESS ? process->comm : item->image->comm;

	memset(key, 0, sizeof(*key));
	key->pid = (uint64_t)process->id.pid;
	key->process_start = process->id.start_boot_ns;
	/*
	 * The thread is identified by its tid and start time. window_image.uid, the number that
	 * stackd gave the thread, is not enough: each run of stackd numbers threads from the start
	 * again.
	 */
	if (by == AGGREGATE_BY_THREAD)
		key->thread = item->image->start_boot_ns * TID_RANGE + (uint64_t)item->image->tid;
	key->state = key_state(item, has_stacks);
	memcpy(key->comm, comm, strnlen(comm, sizeof(key->comm)));
	if (!has_stacks)
		return;
	if (item->is_sample && aggregate->options.by_functions) {
		key->kernel = stack_functions(item->kernel);
		key->user = stack_functions(item->user);
	} else {
		key->kernel = stack_place(item->kernel);
		key->user = stack_place(item->user);
	}
	key->waker = window_waker_id(item->waker, !aggregate->filter->drops_kernel,
				     !aggregate->filter->drops_user);
}

static void group_set_waker(const struct aggregate *aggregate, struct aggregate_group *group,
			    const struct window_waker *waker)
{
	group->waker = *waker;
	group->waker.kernel = aggregate->filter->drops_kernel ? NULL : stack_ref(waker->kernel);
	group->waker.user = aggregate->filter->drops_user ? NULL : stack_ref(waker->user);
}

/* Returns the group of an item; creates it if it does not exist. NULL when out of memory. */
static struct aggregate_group *group_get(struct aggregate *aggregate,
					 const struct aggregate_item *item)
{
	struct aggregate_group *group;
	struct aggregate_key key;

	key_init(aggregate, item, &key);
	HASH_FIND(hh, aggregate->groups, &key, sizeof(key), group);
	if (group)
		return group;
	group = arena_alloc(aggregate->arena, sizeof(*group));
	if (!group) {
		aggregate->error = -ENOMEM;
		return NULL;
	}
	group->key = key;
	group->image = &item->info->image;
	group->is_idle = item->is_idle;
	group->is_short = item->is_short;
	group->is_sample = item->is_sample;
	HASH_ADD(hh, aggregate->groups, key, sizeof(group->key), group);
	if (!HASH_HAS(group)) {
		aggregate->error = -ENOMEM;
		return NULL;
	}
	group->kernel = key.kernel ? stack_ref(item->kernel) : NULL;
	group->user = key.user ? stack_ref(item->user) : NULL;
	if (key.waker)
		group_set_waker(aggregate, group, item->waker);
	return group;
}

struct aggregate_group *aggregate_add(struct aggregate *aggregate,
				      const struct aggregate_item *item)
{
	struct aggregate_group *group = group_get(aggregate, item);

	if (!group)
		return NULL;
	if (item->is_idle && item->info->thread)
		item->info->thread->is_idle = true;
	/*
	 * Kernel stacks with the same key differ at most in the frames of the scheduler: keep the
	 * longer stack, which has these frames.
	 */
	if (item->kernel && group->kernel && item->kernel->n_frames > group->kernel->n_frames) {
		stack_unref(group->kernel);
		group->kernel = stack_ref(item->kernel);
	}
	group->state |= item->state & ~(STATE_SEEDED | STATE_UNSEEN);
	group->count += item->count;
	group->on_ns += item->on_ns;
	group->blocked_ns += item->blocked_ns;
	group->runnable_ns += item->runnable_ns;
	group->throttled_ns += item->throttled_ns;
	window_processes_add(&group->folded, &group->started, item->processes, item->started);
	if (item->max_ns > group->max_ns || (item->max_ns == group->max_ns && !group->max_tid)) {
		group->max_ns = item->max_ns;
		group->max_end_real_ns = item->max_end_real_ns;
		group->max_tid = item->image->tid;
		memcpy(group->max_comm, item->image->comm, sizeof(group->max_comm));
	}
	return group;
}

void aggregate_add_sample(struct aggregate *aggregate, const struct window *window,
			  const struct window_sample *sample, struct aggregate_image_info *info)
{
	struct aggregate_item item = {
		.image = &window->images[sample->image],
		.info = info,
		.is_sample = true,
		.count = sample->count,
		.on_ns = sample->on_ns,
		.processes = sample->processes,
		.started = sample->started,
	};

	aggregate->totals.samples += sample->count;
	aggregate_item_set_stacks(aggregate, &item, sample->kernel, sample->user);
	aggregate_add(aggregate, &item);
}

void aggregate_groups_free(struct aggregate *aggregate)
{
	struct aggregate_group *group, *next;

	HASH_ITER (hh, aggregate->groups, group, next) {
		HASH_DEL(aggregate->groups, group);
		stack_unref(group->kernel);
		stack_unref(group->user);
		stack_unref(group->waker.kernel);
		stack_unref(group->waker.user);
	}
}
