/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/window/build_offcpu_internal.h"

#include <stdlib.h>
#include <string.h>

#include "common/base.h"

/* The key of a struct exited_process. */
struct exited_key {
	uint64_t leader_boot_ns;
	uint64_t tgid;
};

_Static_assert(offsetof(struct exited_process, uid) == sizeof(struct exited_key),
	       "the key is the first two members");

static struct exited_process *exited_find(const struct offcpu_builder *builder,
					  const struct record_process *record)
{
	const struct exited_key key = { record->leader_boot_ns, record->tgid };
	struct exited_process *exited;

	HASH_FIND(hh, builder->exited, &key, sizeof(key), exited);
	return exited;
}

/* When out of memory, further reports of this exit are counted, too. */
static void exited_add(struct offcpu_builder *builder, const struct record_process *record)
{
	struct exited_process *exited = calloc(1, sizeof(*exited));

	if (!exited)
		return;
	exited->leader_boot_ns = record->leader_boot_ns;
	exited->tgid = record->tgid;
	exited->uid = record->uid;
	HASH_ADD(hh, builder->exited, leader_boot_ns, sizeof(struct exited_key), exited);
	if (!HASH_HAS(exited))
		free(exited);
}

static void exited_drop(struct offcpu_builder *builder, struct exited_process *exited)
{
	HASH_DEL(builder->exited, exited);
	free(exited);
}

/*
 * True if the exit was reported before and the report is of no use. A later report has more of the
 * CPU time: if the exit has not been counted yet, drops the earlier one.
 */
static bool is_repeated(struct offcpu_builder *builder, const struct record_process *record)
{
	struct exited_process *exited = exited_find(builder, record);
	struct thread_state *first = NULL;

	if (!exited) {
		if (record->n_threads > 1)
			exited_add(builder, record);
		return false;
	}
	if (exited->uid)
		HASH_FIND(hh, builder->threads, &exited->uid, sizeof(exited->uid), first);
	if (!record->uid || !first || !first->exit)
		return true;
	free(TAKE(first->exit));
	exited->uid = record->uid;
	return false;
}

static void add_exit(struct offcpu_builder *builder, const struct record_process *record)
{
	struct pending_exit *pending;
	struct thread_state *state;

	if (is_repeated(builder, record))
		return;
	state = record->uid ? thread_state_get(builder, record->uid) : NULL;
	pending = state && !state->exit ? calloc(1, sizeof(*pending)) : NULL;
	if (!pending) {
		window_spawns_exit(&builder->spawns, record->parent_comm, record->comm,
				   record->cpu_ns, record->life_ns);
		return;
	}
	memcpy(pending->parent, record->parent_comm, sizeof(pending->parent));
	memcpy(pending->comm, record->comm, sizeof(pending->comm));
	pending->time_ns = record->time_ns;
	pending->on_ns = record->sums.on_ns;
	pending->cpu_ns = record->cpu_ns;
	pending->life_ns = record->life_ns;
	state->exit = pending;
}

void spawns_add(struct offcpu_builder *builder, const struct record_process *record)
{
	static const struct spawn_sums fork = { .forks = 1 }, exec = { .execs = 1 };

	if (!builder->base.options.counts_spawns || record->is_kernel)
		return;
	if (record->head.type == RECORD_EXIT)
		add_exit(builder, record);
	else
		window_spawns_count(&builder->spawns, record->parent_comm, record->comm,
				    record->head.type == RECORD_FORK ? &fork : &exec);
}

void spawns_to_window(struct offcpu_builder *builder)
{
	struct window *window = builder->base.window;
	struct exited_process *exited, *next;

	HASH_ITER (hh, builder->exited, exited, next) {
		if (exited->is_old)
			exited_drop(builder, exited);
		else
			exited->is_old = true;
	}
	if (!builder->base.options.counts_spawns)
		return;
	window->spawns = builder->spawns;
	builder->spawns = (struct window_spawns){};
	window->spawns.ns = (uint64_t)(window->end_ns - window->start_ns);
	window_spawns_limit(&window->spawns, WINDOW_SPAWNS_MAX);
}

void spawns_fini(struct offcpu_builder *builder)
{
	struct exited_process *exited, *next;

	HASH_ITER (hh, builder->exited, exited, next)
		exited_drop(builder, exited);
	window_spawns_fini(&builder->spawns);
}
