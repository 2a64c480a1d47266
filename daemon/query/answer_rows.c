/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>

#include "daemon/query/answer_holders.h"
#include "daemon/query/answer_iolat.h"
#include "daemon/query/answer_stacks.h"
#include "daemon/query/group_name.h"
#include "daemon/query/own_process.h"
#include "daemon/query/snapshot_internal.h"
#include "daemon/store/reader.h"
#include "daemon/window/reason_find.h"
#include "daemon/window/task_state.h"

/* Sets *out to a culprit, or leaves it NULL if there is none. Returns 0 or -ENOMEM. */
static int culprit_wire(const struct answer *answer, struct arena *arena,
			const struct culprit *culprit, const struct wire_culprit **out)
{
	const struct wire_range *range = &answer->reply.snapshot.coverage.used;
	struct process_table *processes = answer->source.options.processes;
	struct wire_culprit *wire;
	char comm[COMM_LEN];

	if (!culprit->ns)
		return 0;
	wire = arena_alloc(arena, sizeof(*wire));
	if (!wire)
		return -ENOMEM;
	wire->ns = (int64_t)culprit->ns;
	wire->pid = culprit->tgid;
	wire->tid = culprit->tid;
	wire->comm = arena_strndup(arena, culprit->comm, COMM_LEN);
	*out = wire;
	if (!wire->comm)
		return -ENOMEM;
	if (!process_table_comm(processes, (int32_t)culprit->tgid, range->start, range->end, comm))
		return 0;
	wire->process = arena_strndup(arena, comm, COMM_LEN);
	return wire->process ? 0 : -ENOMEM;
}

/* Fills the fields that only rows of waits have. Returns 0 or -ENOMEM. */
static int waits_wire(const struct answer *answer, struct answer_stacks *stacks,
		      const struct aggregate_group *group, struct wire_row *row)
{
	row->state = group->is_short ? "-" : task_states_letter(group->state);
	row->state_bits = group->state & STATE_TASK_MASK;
	if (group->has_reason && !group->is_own)
		row->reason = wait_reason_word(group->reason);
	else if (group->reasons && !group->is_own &&
		 reason_times_wire(group->reasons, group->blocked_ns + group->runnable_ns,
				   stacks->arena, &row->reasons))
		return -ENOMEM;
	row->blocked_ns = (int64_t)group->blocked_ns;
	row->runnable_ns = (int64_t)group->runnable_ns;
	/* Only the probe offwake records wakers, and it does not record throttling. */
	row->throttled_ns = group->key.waker ? WIRE_ABSENT : (int64_t)group->throttled_ns;
	if (group->is_estimate)
		row->estimated = 1;
	if (group->sampled.count || group->sampled.blocked_ns || group->sampled.runnable_ns) {
		row->estimated = 1;
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
	if (culprit_wire(answer, stacks->arena, &group->culprits.ran_before, &row->ran_before) ||
	    culprit_wire(answer, stacks->arena, &group->culprits.held_up_by, &row->held_up_by))
		return -ENOMEM;
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
	/* A softirq has a task if it ran as part of what the task did. */
	if (link->context != WAKE_TASK && !link->pid)
		return 0;
	/* 0 in a row by line: several processes or threads of this name are the waker. */
	out->pid = link->pid ? link->pid : WIRE_ABSENT;
	out->tid = link->tid ? link->tid : WIRE_ABSENT;
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
	*out = wire;
	if (r)
		return r;
	r = answer_stack(stacks, waker->kernel, &wire->kernel);
	if (r)
		return r;
	return answer_stack(stacks, waker->user, &wire->user);
}

/* Sets the key of a row that stands for a thread name, unit, function or the like. */
static int row_set_key(struct answer_stacks *stacks, const struct aggregate_group *group,
		       struct wire_row *row)
{
	const struct wire_stack *stack;
	int r;

	if (group->is_others || group->is_own || stacks->options->group == GROUP_BY_COMM) {
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

/*
 * Sets the keys that the row's group would have if rows were by function, module or unit, and
 * whether it is stackd's own. Its stacks have their frames. Returns 0 or -ENOMEM.
 */
static int row_set_groups(const struct answer *answer, struct answer_stacks *stacks,
			  const struct aggregate_group *group, struct wire_row *row)
{
	char unit[GROUP_CGROUP_NAME_MAX];
	const struct wire_stack *stack;
	int r;

	if (!stacks->options->groups || !stacks->options->has_stacks || group->is_others ||
	    group->is_own)
		return 0;
	if (group->is_short) {
		r = answer_short_stack(stacks, &stack);
		if (r)
			return r;
		row->function = row->module = stack->frames.v[0].name;
	} else {
		row->function = stacks->options->finds_functions
					? aggregate_function(answer->aggregate, group)
					: group_name(GROUP_BY_FUNCTION, group->kernel, group->user,
						     group->is_sample);
		row->module =
			group_name(GROUP_BY_MODULE, group->kernel, group->user, group->is_sample);
	}
	if (stacks->options->marks_own &&
	    own_process_is(row->process.comm, row->process.exe, row->process.cgroup))
		row->own = 1;
	group_cgroup_name(GROUP_BY_UNIT, row->process.cgroup, unit);
	row->unit = arena_strdup(stacks->arena, unit);
	return row->unit ? 0 : -ENOMEM;
}

/* If the row stands for several processes, says how many, and names only what they share. */
static void line_set_processes(const struct aggregate_group *group, struct wire_row *row)
{
	row->processes = (int64_t)aggregate_line_processes(group);
	if (row->processes < 2)
		return;
	row->process = (struct wire_process){
		.comm = row->process.comm,
		.exe = row->process.exe,
		.replaced = WIRE_BOOL_ABSENT,
	};
}

/* Sets the members that only rows by line have. Returns 0 or -ENOMEM. */
static int line_wire(const struct answer *answer, struct arena *arena,
		     const struct aggregate_group *group, struct wire_row *row)
{
	const struct aggregate_line *line = group->line;
	int64_t *slots = arena_array(arena, AGGREGATE_SLOTS, sizeof(*slots));
	int64_t *runnable = arena_array(arena, AGGREGATE_SLOTS, sizeof(*runnable));
	size_t i, n;

	if (!slots || !runnable)
		return -ENOMEM;
	aggregate_slots(answer->aggregate, &n);
	for (i = 0; i < n; i++) {
		slots[i] = (int64_t)line->slots[i];
		runnable[i] = (int64_t)line->runnable_slots[i];
	}
	row->slots_ns = (struct int_list){ .v = slots, .n = n };
	row->slots_runnable_ns = (struct int_list){ .v = runnable, .n = group->is_sample ? 0 : n };
	if (group->is_urgent)
		row->urgent = 1;
	/* Each thread of the kernel is a process: the row is for those of like names. */
	if (row->process.kernel) {
		row->process.pid = 0;
		row->process.comm = row->comm;
	} else if (!group->is_own) {
		line_set_processes(group, row);
	}
	return answer_holders_wire(arena, group, row);
}

/* Makes a row stand for all threads of stackd, which are threads of several processes. */
static void row_set_own(struct wire_row *row)
{
	row->own = 1;
	row->process = (struct wire_process){ .comm = "stackd", .replaced = WIRE_BOOL_ABSENT };
	row->comm = row->process.comm;
}

static int row_wire(struct answer *answer, struct answer_stacks *stacks,
		    const struct aggregate_group *group, struct wire_row *row)
{
	bool is_named = stacks->options->group && !group->key.comm[0];
	struct process *process = answer_process(answer, &group->process);
	int r;

	if (!process && group->process.number)
		return -ENOMEM;
	answer_row_init(stacks->arena, process, group->process.at_ns, row);
	if (stacks->options->by_thread && group->tid && !group->is_others && !group->is_own)
		row->tid = group->tid;
	row->comm = arena_strndup(stacks->arena, is_named ? group->max_comm : group->key.comm,
				  COMM_LEN);
	if (group->is_others)
		row->process.comm = row->comm;
	row->idle = group->is_idle;
	if (group->is_own)
		row_set_own(row);
	if (group->folded && !group->is_others && !group->is_own &&
	    (!stacks->options->group || group->line))
		row->folded = window_processes(group->folded, group->started);
	row->count = (int64_t)group->count;
	row->total_ns = (int64_t)(group->on_ns + group->blocked_ns + group->runnable_ns);
	if (!stacks->options->has_stacks)
		row->function = aggregate_function(answer->aggregate, group);
	if (stacks->options->has_estimates)
		row->estimated = 1;
	if (!group->is_sample) {
		r = waits_wire(answer, stacks, group, row);
		if (r)
			return r;
	}
	if (group->line && group->key.waker) {
		r = waker_wire(stacks, group->waker, &row->waker);
		if (r)
			return r;
	}
	if (group->line)
		return line_wire(answer, stacks->arena, group, row);
	if (stacks->options->group)
		return row_set_key(stacks, group, row);
	if (group->is_short) {
		r = answer_short_stack(stacks, &row->kernel);
		return r ? r : row_set_groups(answer, stacks, group, row);
	}
	r = answer_callers(stacks, group->kernel, group->kernel_from, &row->kernel);
	if (r)
		return r;
	r = answer_callers(stacks, group->user, group->user_from, &row->user);
	if (r)
		return r;
	r = row_set_groups(answer, stacks, group, row);
	if (r)
		return r;
	/* All waits of a row with stacks have the same ones, and the same state. */
	if (!group->is_sample && !row->reason && stacks->options->has_stacks && !group->is_others &&
	    !group->is_own)
		row->reason =
			wait_reason_word(reason_find(group->state, group->kernel, group->user));
	r = answer_holders_wire(stacks->arena, group, row);
	if (r || !group->key.waker)
		return r;
	return waker_wire(stacks, group->waker, &row->waker);
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
