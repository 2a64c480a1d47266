/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/limits.h"

#include <errno.h>
#include <string.h>

#include "common/array.h"
#include "common/base.h"
#include "daemon/parse/parser.h"
#include "daemon/process/maps.h"
#include "daemon/process/perf_map.h"
#include "daemon/query/answer_pressure.h"
#include "daemon/query/snapshot_internal.h"
#include "daemon/session/sweeper.h"

struct limit_list {
	struct wire_limit *v;
	size_t n;
	size_t capacity;
	int error; /* 0, or -ENOMEM if `v` could not be extended */
};

/* For each limit, by its name: its unit, and what happens when it is reached. */
static const struct {
	const char *name;
	const char *unit; /* NULL: a number */
	const char *effect;
} effects[] = {
	{ "window.max_memory", "bytes",
	  "the oldest windows in memory are dropped early and read from disk" },
	{ "budget.memory", "bytes",
	  "the oldest windows in memory are dropped early and read from disk; raise it" },
	{ "probe.offcpu.max_threads", NULL, "waits of further threads are lost; raise it" },
	{ "probe.offcpu.max_keys", NULL, "further waits of the window are lost; raise it" },
	{ "probe.offcpu.max_open_stacks", NULL,
	  "further waits that have not ended have no user stack" },
	{ "pressure.max_units", NULL, "the pressure of further units is not known" },
	{ "control.max_sessions", NULL, "further sessions were refused" },
	{ "probe.oncpu.max_keys", NULL, "further samples of the window are lost; raise it" },
	{ "probe.iolat.max_keys", NULL,
	  "operations of several processes are in one row, or lost; raise it" },
	{ "symbols.max_memory", "bytes",
	  "symbol tables were dropped and are read again when they are needed, which takes CPU "
	  "time" },
	{ "processes", NULL, "events of further processes are lost" },
	{ "processes.moves", NULL,
	  "processes that are moved to another control group again and again are in no unit" },
	{ "processes.mappings", "bytes",
	  "code in mappings of a process beyond its first ones has addresses instead of names, "
	  "unless stack walks find its file" },
	{ "processes.maps_memory", "bytes",
	  "code in mappings of further processes beyond their first ones has addresses instead of "
	  "names, unless stack walks find its file" },
	{ "symbols.perf_maps", "bytes",
	  "functions of further programs that make code at run time have addresses instead of "
	  "names" },
	{ "symbols.user_time_ns", "ns",
	  "files of a user, or of root in one unit, that take long to read wait, and their functions have addresses "
	  "instead of names meanwhile" },
	{ "symbols.wait_ns", "ns",
	  "functions of files that were not read in time had addresses instead of names until they "
	  "were" },
	{ "symbols.remote", NULL,
	  "files on remote file systems were not read: their functions have no names, see "
	  "[symbols] remote" },
	{ "symbols.hanging_opens", NULL,
	  "files were not opened because their file system does not answer: their functions have "
	  "no names" },
	{ "symbols.lines_memory", "bytes", "--lines found no source lines in some files" },
	{ "unwind.max_memory", "bytes",
	  "user stacks of programs whose tables had no room end early (no_table); raise it" },
	{ "unwind.mappings", NULL,
	  "user stacks of further processes end early (no_mapping), see [unwind] max_memory" },
	{ "request_ranges", NULL, "questions about more ranges at once were refused" },
	{ "store.queue", NULL,
	  "windows were not written: the disk is too slow, or another program locks the database" },
	{ "symbols.waiting_stacks", NULL, "stacks have addresses instead of names" },
	{ "symbols.waiting_windows", NULL, "windows were lost: names are looked up too slowly" },
};

/* Sets the unit and the effect of the limit by its name. */
static void limit_describe(struct wire_limit *limit)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(effects); i++) {
		if (strcmp(effects[i].name, limit->name) != 0)
			continue;
		limit->unit = effects[i].unit;
		limit->effect = effects[i].effect;
	}
}

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
	list->v[list->n] = (struct wire_limit){
		.name = name,
		.value = (int64_t)max,
		.used = (int64_t)used,
		.hits = (int64_t)hits,
	};
	limit_describe(&list->v[list->n++]);
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
	struct sweeper_memory memory;

	stack_table_stats(recorder->stacks, &stacks);
	process_table_stats(recorder->processes, &processes);
	history_stats(recorder->history, &history);
	limit_add(list, "window.max_memory", recorder->config->window_max_memory,
		  history.bytes + history.waiting_bytes + stacks.referred_bytes +
			  processes.referred_bytes,
		  history.evicted_for_bytes + stacks.full);
	sweeper_memory(recorder->sweeper, &memory);
	/* This limit is hit each time that windows have to make room because of it. */
	limit_add(list, "budget.memory", recorder->config->budget_memory, memory.rss,
		  memory.lowered);
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
	struct parser_stats parser = {};

	if (recorder->parser)
		parser_stats(recorder->parser, &parser);
	process_table_stats(recorder->processes, &processes);
	source_lines_helper_stats(recorder->lines, &lines);
	limit_add(list, "symbols.max_memory", config->symbols_max_memory, processes.symbol_bytes,
		  processes.evictions);
	limit_add(list, "processes", PROCESSES_MAX, processes.processes, processes.table_full);
	/* This limit is hit by each move of a process beyond it. */
	limit_add(list, "processes.moves", PROCESS_MOVES_MAX, 0, processes.moves_full);
	/* This limit is hit by each read of a process whose mappings exceed it. */
	limit_add(list, "processes.mappings", PROC_MAPS_BYTES_MAX, 0, processes.mappings_full);
	limit_add(list, "processes.maps_memory", MAPS_MEMORY_MAX, processes.maps_bytes,
		  processes.maps_refused);
	limit_add(list, "symbols.perf_maps", PERF_MAPS_MEMORY_MAX, processes.perf_map_bytes,
		  processes.perf_refused);
	/* This limit is hit by each request to parse a file whose owner has to wait. */
	limit_add(list, "symbols.user_time_ns", (uint64_t)PARSER_OWNER_NS, 0, parser.postponed);
	/* This limit is hit by each reading of a file that was not done in time. */
	limit_add(list, "symbols.wait_ns", (uint64_t)SYMBOLS_WAIT_NS, 0, processes.symbols_late);
	/* This limit is hit by each file that is not read because it is on a remote file system. */
	limit_add(list, "symbols.remote", 0, 0, processes.remote);
	/* This limit is hit by each file whose opening hangs, and each that is not tried then. */
	limit_add(list, "symbols.hanging_opens", OPENERS_HANGING_MAX, processes.opening.hanging,
		  processes.opening.hung + processes.opening.refused);
	limit_add(list, "symbols.lines_memory", config->symbols_lines_memory, 0, lines.failed);
}

/* Adds the limit of the ranges in a request, which is hit by each request that has more. */
static void request_limits(struct recorder *recorder, struct limit_list *list)
{
	limit_add(list, "request_ranges", RANGES_MAX, 0, (uint64_t)ranges_refused());
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
		window_limits, probe_limits, symbol_limits,
		unwind_limits, queue_limits, request_limits,
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
