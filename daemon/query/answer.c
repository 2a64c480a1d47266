/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/answer.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base.h"
#include "daemon/query/answer_stacks.h"
#include "daemon/query/snapshot_internal.h"
#include "daemon/session/session.h"
#include "daemon/store/reader.h"
#include "daemon/store/store.h"
#include "daemon/store/timeline.h"

struct answer *answer_new(void)
{
	struct answer *answer = calloc(1, sizeof(*answer));

	if (!answer)
		return NULL;
	answer->arena = arena_new();
	if (!answer->arena) {
		free(answer);
		return NULL;
	}
	return answer;
}

struct store_reader *answer_reader(struct answer *answer, struct store *store)
{
	if (!answer->reader && store) {
		answer->store = store;
		if (store_reader_begin(store, &answer->reader))
			answer->reader = NULL;
	}
	return answer->reader;
}

void answer_step_fini(struct answer *answer)
{
	arena_free(answer->step);
	answer->step = NULL;
	while (answer->n_taken > 0)
		call_fini(&answer->taken[--answer->n_taken]);
}

/* Frees what answer->source has. */
static void answer_source_fini(struct answer *answer)
{
	if (answer->source.stacks)
		answer_stacks_fini(answer->source.stacks);
	free(answer->source.io_groups);
	answer->source = (struct answer_source){};
}

void answer_aggregate_free(struct answer *answer)
{
	answer_source_fini(answer);
	answer->aggregate = aggregate_free(answer->aggregate);
}

struct answer *answer_free(struct answer *answer)
{
	if (!answer)
		return NULL;
	answer_aggregate_free(answer);
	session_unref(answer->session);
	sessions_list_free(answer->sessions, answer->n_sessions);
	timeline_close(answer->timeline);
	store_reader_end(answer->store, answer->reader);
	answer_step_fini(answer);
	slices_free(answer->slices);
	arena_free(answer->arena);
	free(answer);
	return NULL;
}

void answer_freep(struct answer **answer)
{
	*answer = answer_free(*answer);
}

bool answer_has_next(const struct answer *answer)
{
	return answer->has_next;
}

const union wire_reply *answer_reply(const struct answer *answer)
{
	return &answer->reply;
}

struct process *answer_process(struct answer *answer, const struct aggregate_process *process)
{
	if (process->process || !process->number || !answer->reader)
		return process->process;
	/* A thread may be loading the next windows with this reader. */
	if (answer->timeline)
		timeline_pause(answer->timeline);
	return store_reader_process(answer->reader, process->number);
}

static struct wire_process process_wire(struct arena *arena, struct process *process, int64_t at_ns)
{
	struct process_info info;

	if (!process)
		return (struct wire_process){ .comm = "", .replaced = WIRE_BOOL_ABSENT };
	process_check_exited(process);
	process_info_at(process, at_ns, &info);
	return (struct wire_process){
		.pid = info.id.pid,
		.start = info.start_real_ns,
		.comm = arena_strdup(arena, info.comm),
		.exe = info.exe ? arena_strdup(arena, info.exe) : NULL,
		.cgroup = info.cgroup ? arena_strdup(arena, info.cgroup) : NULL,
		.kernel = info.is_kernel,
		.exited = info.has_exited,
		.replaced = info.is_replaced ? 1 : WIRE_BOOL_ABSENT,
	};
}

void answer_row_init(struct arena *arena, struct process *process, int64_t at_ns,
		     struct wire_row *row)
{
	*row = wire_row_absent();
	row->process = process_wire(arena, process, at_ns);
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

int answer_folded(struct arena *arena, const struct window_folded *folded,
		  const struct wire_folded **out)
{
	struct wire_folded *wire;

	if (!folded->rows)
		return 0;
	wire = arena_alloc(arena, sizeof(*wire));
	if (!wire)
		return -ENOMEM;
	*wire = (struct wire_folded){
		.rows = (int64_t)folded->rows,
		.processes = (int64_t)(folded->processes > folded->started ? folded->processes
									   : folded->started),
		.total_ns = (int64_t)folded->ns,
		.unlisted = (int64_t)folded->unlisted,
	};
	*out = wire;
	return 0;
}

/* Lists what was not recorded in some of the windows of an answer. Returns 0 or -ENOMEM. */
static int shed_make(struct arena *arena, const struct window_cost *cost, struct wire_sheds *out)
{
	struct wire_shed *wire = arena_array(arena, WINDOW_SHED_N, sizeof(*wire));
	unsigned int i;
	size_t n = 0;

	if (!wire)
		return -ENOMEM;
	for (i = 0; i < WINDOW_SHED_N; i++)
		if (cost->shed_ns[i])
			wire[n++] = (struct wire_shed){
				.name = window_shed_name(i),
				.length_ns = (int64_t)cost->shed_ns[i],
				.since = WIRE_ABSENT,
				.every = WIRE_ABSENT,
			};
	if (n)
		*out = (struct wire_sheds){ .v = wire, .n = n };
	return 0;
}

int answer_cost(struct arena *arena, const struct window_cost *cost, const struct wire_cost **out)
{
	struct wire_cost *wire;

	if (!cost->ns)
		return 0;
	wire = arena_alloc(arena, sizeof(*wire));
	if (!wire)
		return -ENOMEM;
	*wire = (struct wire_cost){
		.length_ns = (int64_t)cost->ns,
		.cpu_ns = (int64_t)cost->cpu_ns,
		.bpf_ns = (int64_t)cost->bpf_ns,
		.answers_ns = (int64_t)cost->answers_ns,
		.sessions_ns = (int64_t)cost->sessions_ns,
		.budget_ns = cost->limited_ns ? (int64_t)cost->budget_ns : WIRE_ABSENT,
		.limited_ns = cost->limited_ns ? (int64_t)cost->limited_ns : WIRE_ABSENT,
		.beyond_ns = cost->beyond_ns ? (int64_t)cost->beyond_ns : WIRE_ABSENT,
		.unknown_ns = cost->known_ns < cost->ns ? (int64_t)(cost->ns - cost->known_ns)
							: WIRE_ABSENT,
		.braked = cost->braked ? (int64_t)cost->braked : WIRE_ABSENT,
		.brake_below_ns = cost->brake_below_ns ? cost->brake_below_ns : WIRE_ABSENT,
	};
	*out = wire;
	return shed_make(arena, cost, &wire->shed);
}

/*
 * Leaves out LOST_IO_PROCESS: those operations are not lost, but counted in a row that several
 * processes share, because the window had no room for more rows.
 */
int answer_losses(struct arena *arena, const uint64_t *lost, struct wire_losts *out)
{
	struct wire_lost *losts = arena_array(arena, WINDOW_LOST_N, sizeof(*losts));
	size_t n = 0;
	unsigned int i;

	if (!losts)
		return -ENOMEM;
	for (i = 0; i < WINDOW_LOST_N; i++)
		if (lost[i] && i != LOST_IO_PROCESS)
			losts[n++] = (struct wire_lost){
				.reason = window_loss_name(i),
				.count = (int64_t)lost[i],
			};
	*out = (struct wire_losts){ .v = losts, .n = n };
	return 0;
}
