/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "common/base.h"
#include "daemon/query/answer_stacks.h"
#include "daemon/window/task_state.h"

void answer_process(const struct process_info *info, struct arena *arena, struct wire_process *out)
{
	*out = (struct wire_process){
		.pid = info->id.pid,
		.start = info->start_real_ns,
		.comm = arena_strdup(arena, info->comm),
		.exe = info->exe ? arena_strdup(arena, info->exe) : NULL,
		.cgroup = info->cgroup ? arena_strdup(arena, info->cgroup) : NULL,
		.kernel = info->is_kernel,
		.exited = info->has_exited,
	};
}

static int row_buckets(struct arena *arena, const struct aggregate_group *group,
		       struct int_list *out)
{
	int64_t *buckets;
	size_t n = WAIT_BUCKETS, i;

	while (n > 0 && !group->buckets[n - 1])
		n--;
	buckets = arena_array(arena, n + 1, sizeof(*buckets));
	if (!buckets)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		buckets[i] = (int64_t)group->buckets[i];
	*out = (struct int_list){ .v = buckets, .n = n };
	return 0;
}

/* What only waits have. */
static int row_waits(struct answer_stacks *stacks, const struct aggregate_group *group,
		     struct wire_row *row)
{
	row->state = group->is_short ? "-" : task_states_letter(group->state);
	row->state_bits = group->state & STATE_TASK_MASK;
	row->blocked_ns = (int64_t)group->blocked_ns;
	row->runnable_ns = (int64_t)group->runnable_ns;
	row->throttled_ns = group->key.waker ? WIRE_ABSENT : (int64_t)group->throttled_ns;
	row->open = (int64_t)group->open;
	row->open_ns = (int64_t)group->open_ns;
	row->unseen = group->unseen ? (int64_t)group->unseen : WIRE_ABSENT;
	row->max_ns = (int64_t)group->max_ns;
	if (group->max_ns && group->max_end_real_ns != INT64_MAX)
		row->max_end = group->max_end_real_ns;
	if (group->max_ns) {
		row->max_tid = group->max_tid;
		row->max_comm = arena_strndup(stacks->arena, group->max_comm, COMM_LEN);
	}
	return row_buckets(stacks->arena, group, &row->buckets);
}

static int link_wire(struct answer_stacks *stacks, const struct window_link *link,
		     struct wire_link *out)
{
	static const char *const names[WAKE_CONTEXTS] = {
		[WAKE_NONE] = "unknown", [WAKE_UNKNOWN] = "unknown", [WAKE_TASK] = "task",
		[WAKE_IRQ] = "irq",	 [WAKE_SOFTIRQ] = "softirq", [WAKE_TIMER] = "timer",
	};

	*out = (struct wire_link){
		.context = names[link->context < WAKE_CONTEXTS ? link->context : WAKE_UNKNOWN],
		.pid = WIRE_ABSENT,
		.tid = WIRE_ABSENT,
	};
	if (link->context != WAKE_TASK)
		return 0;
	out->pid = link->pid;
	out->tid = link->tid;
	out->comm = arena_strndup(stacks->arena, link->comm, COMM_LEN);
	return out->comm ? 0 : -ENOMEM;
}

static int waker_wire(struct answer_stacks *stacks, const struct window_waker *waker,
		      const struct wire_waker **out)
{
	struct wire_waker *wire = arena_alloc(stacks->arena, sizeof(*wire));
	struct wire_link *links = arena_array(stacks->arena, WAKE_LINKS, sizeof(*links));
	size_t n = 0;
	int r = 0;

	if (!wire || !links)
		return -ENOMEM;
	while (n < WAKE_LINKS && waker->links[n].context != WAKE_NONE && !r) {
		r = link_wire(stacks, &waker->links[n], &links[n]);
		n++;
	}
	wire->path = (struct wire_links){ .v = links, .n = n };
	if (!r)
		r = answer_stack(stacks, waker->kernel, &wire->kernel);
	if (!r)
		r = answer_stack(stacks, waker->user, &wire->user);
	*out = wire;
	return r;
}

static int row_wire(struct answer_stacks *stacks, const struct aggregate_group *group,
		    struct wire_row *row)
{
	struct process_info info;
	int r = 0;

	process_info(group->image->process, &info);
	answer_process(&info, stacks->arena, &row->process);
	row->tid = stacks->options->by_thread ? group->image->tid : WIRE_ABSENT;
	row->comm = arena_strndup(stacks->arena, group->key.comm, COMM_LEN);
	row->idle = group->is_idle;
	row->count = (int64_t)group->count;
	row->total_ns = (int64_t)(group->on_ns + group->blocked_ns + group->runnable_ns);
	row->state_bits = row->blocked_ns = row->runnable_ns = row->throttled_ns = WIRE_ABSENT;
	row->unseen = row->open = row->open_ns = row->max_ns = WIRE_ABSENT;
	row->max_end = row->max_tid = row->window = WIRE_ABSENT;
	if (!group->is_sample)
		r = row_waits(stacks, group, row);
	if (!r && group->is_short)
		return answer_short_stack(stacks, &row->kernel);
	if (!r)
		r = answer_stack(stacks, group->kernel, &row->kernel);
	if (!r)
		r = answer_stack(stacks, group->user, &row->user);
	if (!r && group->key.waker)
		r = waker_wire(stacks, &group->waker, &row->waker);
	return r;
}

int answer_rows(struct answer *answer, struct aggregate_group *const *groups, size_t n,
		const struct answer_row_options *options)
{
	struct wire_row *rows = arena_array(answer->arena, n + 1, sizeof(*rows));
	struct answer_stacks stacks = { .arena = answer->arena, .options = options };
	size_t i;
	int r = 0;

	if (!rows)
		return -ENOMEM;
	for (i = 0; i < n && !r; i++)
		r = row_wire(&stacks, groups[i], &rows[i]);
	if (!r && options->lines_of)
		r = answer_lines(answer, &stacks);
	answer_stacks_fini(&stacks);
	answer->reply.snapshot.rows = (struct wire_rows){ .v = rows, .n = n };
	return r;
}
