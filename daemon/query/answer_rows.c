/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>

#include "common/base.h"
#include "daemon/query/answer_iolat.h"
#include "daemon/query/answer_stacks.h"
#include "daemon/query/snapshot_internal.h"
#include "daemon/store/reader.h"
#include "daemon/window/task_state.h"

struct process *answer_process(struct answer *answer, const struct aggregate_process *process)
{
	if (process->process || !process->number || !answer->reader)
		return process->process;
	return store_reader_process(answer->reader, process->number);
}

static struct wire_process process_wire(struct arena *arena, struct process *process)
{
	struct process_info info;

	if (!process)
		return (struct wire_process){ .start = 0, .comm = "" };
	process_check_exited(process);
	process_info(process, &info);
	return (struct wire_process){
		.pid = info.id.pid,
		.start = info.start_real_ns,
		.comm = arena_strdup(arena, info.comm),
		.exe = info.exe ? arena_strdup(arena, info.exe) : NULL,
		.cgroup = info.cgroup ? arena_strdup(arena, info.cgroup) : NULL,
		.kernel = info.is_kernel,
		.exited = info.has_exited,
	};
}

void answer_row_init(struct arena *arena, struct process *process, struct wire_row *row)
{
	*row = (struct wire_row){
		.process = process_wire(arena, process),
		.tid = WIRE_ABSENT,
		.state_bits = WIRE_ABSENT,
		.blocked_ns = WIRE_ABSENT,
		.runnable_ns = WIRE_ABSENT,
		.throttled_ns = WIRE_ABSENT,
		.sampled = WIRE_ABSENT,
		.sampled_ns = WIRE_ABSENT,
		.open = WIRE_ABSENT,
		.open_ns = WIRE_ABSENT,
		.unseen = WIRE_ABSENT,
		.max_ns = WIRE_ABSENT,
		.max_end = WIRE_ABSENT,
		.max_tid = WIRE_ABSENT,
		.window = WIRE_ABSENT,
		.folded = WIRE_ABSENT,
	};
}

int answer_buckets(struct arena *arena, const uint64_t *buckets, size_t n, struct int_list *out)
{
	int64_t *v;
	size_t i;

	while (n > 0 && !buckets[n - 1])
		n--;
	v = arena_array(arena, n + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		v[i] = (int64_t)buckets[i];
	*out = (struct int_list){ .v = v, .n = n };
	return 0;
}

/* Fills the fields that only rows of waits have. Returns 0 or -ENOMEM. */
static int waits_wire(struct answer_stacks *stacks, const struct aggregate_group *group,
		      struct wire_row *row)
{
	row->state = group->is_short ? "-" : task_states_letter(group->state);
	row->state_bits = group->state & STATE_TASK_MASK;
	row->blocked_ns = (int64_t)group->blocked_ns;
	row->runnable_ns = (int64_t)group->runnable_ns;
	/* Only the probe offwake records wakers, and it does not record throttling. */
	row->throttled_ns = group->key.waker ? WIRE_ABSENT : (int64_t)group->throttled_ns;
	if (group->sampled.count || group->sampled.blocked_ns || group->sampled.runnable_ns) {
		row->sampled = (int64_t)group->sampled.count;
		row->sampled_ns = (int64_t)(group->sampled.blocked_ns + group->sampled.runnable_ns);
	}
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
	return answer_buckets(stacks->arena, group->buckets, WAIT_BUCKETS, &row->buckets);
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

/* Sets the key of a row that stands for a thread name, cgroup, module or function. */
static int row_set_key(struct answer_stacks *stacks, const struct aggregate_group *group,
		       struct wire_row *row)
{
	const struct wire_stack *stack;
	int r;

	if (group->is_others || stacks->options->group == GROUP_BY_COMM) {
		row->key = row->comm;
	} else if (group->name) {
		row->key = group->name;
	} else {
		r = answer_short_stack(stacks, &stack);
		if (r)
			return r;
		row->key = stack->frames.v[0].name;
	}
	return 0;
}

static int row_wire(struct answer *answer, struct answer_stacks *stacks,
		    const struct aggregate_group *group, struct wire_row *row)
{
	bool is_named = stacks->options->group && !group->key.comm[0];
	struct process *process = answer_process(answer, &group->process);
	int r = 0;

	if (!process && group->process.number)
		return -ENOMEM;
	answer_row_init(stacks->arena, process, row);
	if (stacks->options->by_thread && !group->is_others)
		row->tid = group->tid;
	row->comm = arena_strndup(stacks->arena, is_named ? group->max_comm : group->key.comm,
				  COMM_LEN);
	if (group->is_others)
		row->process.comm = row->comm;
	row->idle = group->is_idle;
	if (group->folded && !group->is_others && !stacks->options->group)
		row->folded = window_processes(group->folded, group->started);
	row->count = (int64_t)group->count;
	row->total_ns = (int64_t)(group->on_ns + group->blocked_ns + group->runnable_ns);
	if (!group->is_sample)
		r = waits_wire(stacks, group, row);
	if (!r && stacks->options->group)
		return row_set_key(stacks, group, row);
	if (!r && group->is_short)
		return answer_short_stack(stacks, &row->kernel);
	if (!r)
		r = answer_stack(stacks, group->kernel, &row->kernel);
	if (!r)
		r = answer_stack(stacks, group->user, &row->user);
	if (!r && group->key.waker)
		r = waker_wire(stacks, group->waker, &row->waker);
	return r;
}

int answer_source_init(struct answer *answer, const struct answer_row_options *options)
{
	struct answer_source *source = &answer->source;

	source->options = *options;
	source->stacks = arena_alloc(answer->arena, sizeof(*source->stacks));
	if (!source->stacks)
		return -ENOMEM;
	source->stacks->options = &source->options;
	source->stacks->reader = answer->reader;
	return 0;
}

void answer_source_fini(struct answer *answer)
{
	if (answer->source.stacks)
		answer_stacks_fini(answer->source.stacks);
	free(answer->source.io_groups);
	answer->source = (struct answer_source){};
}

static int source_row(struct answer *answer, size_t i, struct wire_row *row)
{
	struct answer_source *source = &answer->source;

	if (source->io_groups)
		return answer_iolat_row(answer, source->io_groups[i], source->stacks, row);
	return row_wire(answer, source->stacks, source->groups[i], row);
}

int answer_rows_make(struct answer *answer)
{
	size_t n = answer->source.n, i;
	struct wire_row *rows = arena_array(answer->arena, n + 1, sizeof(*rows));
	int r = 0;

	if (!rows)
		return -ENOMEM;
	answer->source.stacks->arena = answer->arena;
	for (i = 0; i < n && !r; i++)
		r = source_row(answer, i, &rows[i]);
	answer->reply.snapshot.rows = (struct wire_rows){ .v = rows, .n = n };
	return r;
}

size_t answer_n_rows(const struct answer *answer)
{
	return answer->source.n;
}

int answer_row(struct answer *answer, size_t i, const struct wire_row **out)
{
	struct wire_row *row;
	int r;

	if (answer->reply.snapshot.rows.v) {
		*out = &answer->reply.snapshot.rows.v[i];
		return 0;
	}
	if (!answer->step)
		answer->step = arena_new();
	answer->source.stacks->arena = answer->step;
	row = answer->step ? arena_alloc(answer->step, sizeof(*row)) : NULL;
	r = row ? source_row(answer, i, row) : -ENOMEM;
	if (!r)
		*out = row;
	return r;
}

void answer_rows_sent(struct answer *answer, size_t n)
{
	struct answer_source *source = &answer->source;

	if (answer->step)
		answer_stacks_fini(source->stacks);
	answer->step = arena_free(answer->step);
	for (; source->n_released < n; source->n_released++)
		if (source->groups)
			aggregate_group_give_stacks(source->groups[source->n_released]);
	if (n == source->n && !(answer->slices && answer->slices->n))
		store_reader_rest(answer->reader);
}
