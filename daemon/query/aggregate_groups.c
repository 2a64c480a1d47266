/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/aggregate_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/window/task_state.h"

static bool stack_is_idle(const struct stack *stack)
{
	return stack && stack->is_idle && !(stack->flags & STACK_IS_AMBIGUOUS);
}

/*
 * Idle: nobody minds this wait. Kernel threads that wait for work, and user threads asleep in one
 * of the configured functions; never what cannot be interrupted (D), nor what wants a CPU.
 */
static bool wait_is_idle(const struct aggregate_item *c)
{
	bool is_uninterruptible = (c->state & 0x2) && !(c->state & 0x400);

	if (c->state & (STATE_PREEMPTED | STATE_NEW) || is_uninterruptible)
		return false;
	return c->info->process.is_kernel || stack_is_idle(c->kernel) || stack_is_idle(c->user);
}

/* Whether a wait is idle does not depend on which of its stacks are wanted. */
void aggregate_item_set_stacks(const struct aggregate *aggregate, struct aggregate_item *c,
			       struct stack *kernel, struct stack *user)
{
	c->kernel = kernel;
	c->user = user;
	c->is_idle = c->is_sample ? !c->info->process.id.pid : wait_is_idle(c);
	if (aggregate->filter->drops_kernel)
		c->kernel = NULL;
	if (aggregate->filter->drops_user)
		c->user = NULL;
}

#define TID_RANGE UINT64_C(4194304) /* PID_MAX_LIMIT */

enum {
	KEY_SHORT = 1,
	KEY_WAIT = 2,
	KEY_SAMPLE = 3,
	KEY_IDLE = 0x100, /* beside a letter or KEY_WAIT */
	KEY_KILLABLE = 0x200,
	KEY_THROTTLED = 0x400,
};

/* TASK_KILLABLE: D in ps, but kill -9 ends it, which somebody with a hung process wants to know. */
#define STATE_KILLABLE 0x102U

static uint64_t key_state(const struct aggregate_item *c, bool has_stacks)
{
	bool is_killable = (c->state & STATE_KILLABLE) == STATE_KILLABLE;

	if (c->is_short)
		return KEY_SHORT;
	if (c->is_sample)
		return KEY_SAMPLE;
	if (!has_stacks)
		return KEY_WAIT | (c->is_idle ? KEY_IDLE : 0);
	return (uint64_t)task_state_letter(c->state)[0] | (c->is_idle ? KEY_IDLE : 0) |
	       (is_killable ? KEY_KILLABLE : 0) | (c->state & STATE_THROTTLED ? KEY_THROTTLED : 0);
}

static void key_init(const struct aggregate *aggregate, const struct aggregate_item *c,
		     struct aggregate_key *key)
{
	const struct process_info *process = &c->info->process;
	enum aggregate_by by = aggregate->options.by;
	bool has_stacks = by == AGGREGATE_BY_STACK || aggregate->options.open_only;
	const char *comm = by == AGGREGATE_BY_PROCESS ? process->comm : c->image->comm;

	memset(key, 0, sizeof(*key));
	key->pid = (uint64_t)process->id.pid;
	key->process_start = process->id.start_boot_ns;
	/* Not uid, which begins anew with every start of stackd. */
	if (by == AGGREGATE_BY_THREAD)
		key->thread = c->image->start_boot_ns * TID_RANGE + (uint64_t)c->image->tid;
	key->state = key_state(c, has_stacks);
	if (has_stacks && c->is_sample && aggregate->options.by_functions) {
		key->kernel = stack_functions(c->kernel);
		key->user = stack_functions(c->user);
	} else if (has_stacks) {
		key->kernel = stack_place(c->kernel);
		key->user = stack_place(c->user);
	}
	if (has_stacks) {
		key->waker = window_waker_id(c->waker, !aggregate->filter->drops_kernel,
					     !aggregate->filter->drops_user);
	}
	memcpy(key->comm, comm, strnlen(comm, sizeof(key->comm)));
}

static void group_set_waker(const struct aggregate *aggregate, struct aggregate_group *group,
			    const struct window_waker *waker)
{
	group->waker = *waker;
	group->waker.kernel = aggregate->filter->drops_kernel ? NULL : stack_ref(waker->kernel);
	group->waker.user = aggregate->filter->drops_user ? NULL : stack_ref(waker->user);
}

static struct aggregate_group *group_get(struct aggregate *aggregate,
					 const struct aggregate_item *c)
{
	struct aggregate_group *group;
	struct aggregate_key key;

	key_init(aggregate, c, &key);
	HASH_FIND(hh, aggregate->groups, &key, sizeof(key), group);
	if (group)
		return group;
	group = arena_alloc(aggregate->arena, sizeof(*group));
	if (!group) {
		aggregate->error = -ENOMEM;
		return NULL;
	}
	group->key = key;
	group->image = &c->info->image;
	group->is_idle = c->is_idle;
	group->is_short = c->is_short;
	group->is_sample = c->is_sample;
	HASH_ADD(hh, aggregate->groups, key, sizeof(group->key), group);
	if (!HASH_HAS(group)) {
		aggregate->error = -ENOMEM;
		return NULL;
	}
	group->kernel = key.kernel ? stack_ref(c->kernel) : NULL;
	group->user = key.user ? stack_ref(c->user) : NULL;
	if (key.waker)
		group_set_waker(aggregate, group, c->waker);
	return group;
}

struct aggregate_group *aggregate_add(struct aggregate *aggregate, const struct aggregate_item *c)
{
	struct aggregate_group *group = group_get(aggregate, c);

	if (!group)
		return NULL;
	if (c->is_idle && c->info->thread)
		c->info->thread->is_idle = true;
	if (c->kernel && group->kernel && c->kernel->n_frames > group->kernel->n_frames) {
		stack_unref(group->kernel);
		group->kernel = stack_ref(c->kernel);
	}
	group->state |= c->state & ~(STATE_SEEDED | STATE_UNSEEN);
	group->count += c->count;
	group->on_ns += c->on_ns;
	group->blocked_ns += c->blocked_ns;
	group->runnable_ns += c->runnable_ns;
	group->throttled_ns += c->throttled_ns;
	if (c->max_ns > group->max_ns || (c->max_ns == group->max_ns && !group->max_tid)) {
		group->max_ns = c->max_ns;
		group->max_end_real_ns = c->max_end_real_ns;
		group->max_tid = c->image->tid;
		memcpy(group->max_comm, c->image->comm, sizeof(group->max_comm));
	}
	return group;
}

void aggregate_add_sample(struct aggregate *aggregate, const struct window *window,
			  const struct window_sample *sample, struct aggregate_image_info *info)
{
	struct aggregate_item c = {
		.image = &window->images[sample->image],
		.info = info,
		.is_sample = true,
		.count = sample->count,
		.on_ns = sample->on_ns,
	};

	aggregate->totals.samples += sample->count;
	aggregate_item_set_stacks(aggregate, &c, sample->kernel, sample->user);
	aggregate_add(aggregate, &c);
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
