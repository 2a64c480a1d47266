/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/limits.h"

#include <errno.h>
#include <string.h>

#include "common/array.h"
#include "common/base.h"
#include "daemon/process/perf_map.h"
#include "daemon/query/answer_pressure.h"

struct limit_list {
	struct wire_limit *v;
	size_t n;
	size_t capacity;
	int error; /* 0, or -ENOMEM if `v` could not be extended */
};

/*
 * Adds one limit to the list. `name` is the key of the configuration that sets the maximum, or
 * another name if no key does. `hits` is how often something was dropped, refused or evicted
 * because of the maximum.
 */
static void limit_add(struct limit_list *list, const char *name, uint64_t max, uint64_t used,
		      uint64_t hits)
{
	if (!list->error)
		list->error = array_reserve(list->v, list->capacity, list->n + 1);
	if (list->error)
		return;
	list->v[list->n++] = (struct wire_limit){
		.name = name,
		.value = (int64_t)max,
		.used = (int64_t)used,
		.hits = (int64_t)hits,
	};
}

/*
 * Adds the limit of the memory for windows. The memory in use includes stacks and exited processes,
 * because these are kept as long as windows refer to them, and windows that wait to be written.
 */
static void window_limits(struct recorder *recorder, struct limit_list *list)
{
	struct stack_table_stats stacks;
	struct process_stats processes;
	struct history_stats history;

	stack_table_stats(recorder->stacks, &stacks);
	process_table_stats(recorder->processes, &processes);
	history_stats(recorder->history, &history);
	limit_add(list, "window.max_memory", recorder->config->window_max_memory,
		  history.bytes + history.waiting_bytes + stacks.referred_bytes +
			  processes.referred_bytes,
		  history.evicted_for_bytes + stacks.full);
	/* This limit is hit by each window that is folded because max_memory is reached. */
	limit_add(list, "window.memory_folds", 0, 0, history.folded);
}

static void probe_limits(struct recorder *recorder, struct limit_list *list)
{
	const struct config *config = recorder->config;
	struct drain_stats offcpu, oncpu, iolat;
	struct pressure_stats units = {};
	uint64_t refused;
	size_t running;

	session_stats(sessions_always(recorder->sessions, PROBE_OFFCPU), &offcpu);
	session_stats(sessions_always(recorder->sessions, PROBE_ONCPU), &oncpu);
	session_stats(sessions_always(recorder->sessions, PROBE_IOLAT), &iolat);
	sessions_count(recorder->sessions, &running, &refused);
	answer_pressure_stats(recorder, &units);
	limit_add(list, "probe.offcpu.max_threads", config->offcpu_max_threads, offcpu.threads,
		  offcpu.lost[LOST_THREADS]);
	limit_add(list, "probe.offcpu.max_keys", config->offcpu_max_keys, offcpu.keys_max,
		  offcpu.lost[LOST_WAIT_KEYS]);
	limit_add(list, "probe.offcpu.max_open_stacks", config->offcpu_max_open_stacks,
		  offcpu.openwait.max_looks, offcpu.openwait.counts.over);
	limit_add(list, "pressure.max_units", config->pressure_max_units, units.units,
		  units.beyond);
	limit_add(list, "control.max_sessions", config->control_max_sessions, running, refused);
	limit_add(list, "probe.oncpu.max_keys", config->oncpu_max_keys, oncpu.keys_max,
		  oncpu.lost[LOST_SAMPLE_KEYS]);
	limit_add(list, "probe.iolat.max_keys", config->iolat_max_keys, iolat.keys_max,
		  iolat.lost[LOST_IO_PROCESS] + iolat.lost[LOST_IO_KEYS]);
}

static void symbol_limits(struct recorder *recorder, struct limit_list *list)
{
	const struct config *config = recorder->config;
	struct process_stats processes;
	struct source_lines_stats lines;

	process_table_stats(recorder->processes, &processes);
	source_lines_helper_stats(recorder->lines, &lines);
	limit_add(list, "symbols.max_memory", config->symbols_max_memory, processes.symbol_bytes,
		  processes.evictions);
	limit_add(list, "processes", PROCESSES_MAX, processes.processes, processes.table_full);
	limit_add(list, "symbols.perf_maps", PERF_MAPS_MEMORY_MAX, processes.perf_map_bytes,
		  processes.perf_refused);
	/* This limit is hit by each file that is not read because it is on a remote file system. */
	limit_add(list, "symbols.remote", 0, 0, processes.remote);
	limit_add(list, "symbols.lines_memory", config->symbols_lines_memory, 0, lines.failed);
}

static void unwind_limits(struct recorder *recorder, struct limit_list *list)
{
	uint64_t max_memory = recorder->config->unwind_max_memory;
	struct unwind_stats stats;

	if (!recorder_unwind_stats(recorder, &stats))
		return;
	/*
	 * max_memory has two parts. The first part, stats.max_bytes, is for rows of unwind tables,
	 * which take stats.bytes now. The second part is for other BPF maps, and counts as used
	 * from the start.
	 */
	limit_add(list, "unwind.max_memory", max_memory, max_memory - stats.max_bytes + stats.bytes,
		  stats.evictions + stats.no_room);
	limit_add(list, "unwind.mappings", stats.max_segments, stats.segments,
		  stats.segments_full + stats.processes_full);
}

/*
 * Adds the limits of queues: windows to be written to disk, and windows and stacks that wait for
 * function names.
 */
static void queue_limits(struct recorder *recorder, struct limit_list *list)
{
	struct resolver_stats resolver = {};
	struct store_stats store;

	if (recorder->store) {
		store_stats(recorder->store, &store);
		limit_add(list, "store.queue", STORE_QUEUE_MAX, store.queued, store.dropped_queue);
	}
	if (recorder->resolver)
		resolver_stats(recorder->resolver, &resolver);
	limit_add(list, "symbols.waiting_stacks", RESOLVER_MAX_STACKS, resolver.stacks,
		  resolver.stacks_dropped);
	limit_add(list, "symbols.waiting_windows", RESOLVER_MAX_WINDOWS, resolver.windows,
		  resolver.windows_dropped);
}

int limits_make(struct recorder *recorder, struct arena *arena, struct wire_limits *out)
{
	static void (*const owners[])(struct recorder * recorder, struct limit_list * list) = {
		window_limits, probe_limits, symbol_limits, unwind_limits, queue_limits,
	};
	struct limit_list list = {};
	struct wire_limit *limits;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(owners); i++)
		owners[i](recorder, &list);
	limits = list.error ? NULL : arena_array(arena, list.n + 1, sizeof(*limits));
	if (limits) {
		memcpy(limits, list.v, list.n * sizeof(*limits));
		*out = (struct wire_limits){ .v = limits, .n = list.n };
	}
	free(list.v);
	return limits ? 0 : -ENOMEM;
}
