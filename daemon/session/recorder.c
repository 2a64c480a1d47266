/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/session/recorder.h"
#include "daemon/parse/parser.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/base/log.h"
#include "daemon/config/keys.h"
#include "daemon/host/namespaces.h"
#include "daemon/session/budget.h"
#include "daemon/session/held_waits.h"
#include "daemon/session/step_waits.h"
#include "daemon/session/sweeper.h"
#include "daemon/session/totals.h"
#include "daemon/store/store.h"
#include "daemon/window/fold.h"

/*
 * The table of stacks may take this many times the memory limit of windows. The number is above 1
 * because a stack cannot be evicted while it waits for its symbols. When the table is full, windows
 * are evicted together with their stacks, until no window is left.
 */
#define STACKS_SHARE 2
/*
 * Windows of a client's session may have this many times as many rows as windows of always-on
 * sessions, because a client that starts a session wants its details.
 */
#define CLIENT_ROWS 32
/*
 * The longest time that the start of the daemon waits for the unwind tables of running processes.
 * Tables that take longer are loaded later.
 */
#define ROWS_TIMEOUT_NS (200 * NS_PER_MS)
const char recorder_serves_only[] = "this stackd records nothing, it was started with --serve-only";

/* The longest time that the start of the daemon waits for a disk that does not answer. */
#define STORE_TIMEOUT_NS (5 * NS_PER_S)

static void boot_id_read(char *id, size_t size)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (!f || !fgets(id, (int)size, f))
		snprintf(id, size, "unknown");
	id[strcspn(id, "\n")] = '\0';
}

/* Creates the tables by which BPF programs unwind user stacks. If that fails, recorded user stacks
 * have one frame each. */
static void recorder_unwind(struct recorder *recorder, const struct config *config)
{
	int r = unwind_maps_open(config->unwind_max_memory, &recorder->unwind_maps);

	if (!r)
		r = unwind_new(unwind_maps_memory(recorder->unwind_maps), &recorder->unwind);
	if (r)
		log_err(r, "create the maps for walks of user stacks");
}

/* Evicts old windows and their stacks when the memory of stacks is full, so that new stacks keep
 * their frames. */
static void on_stacks_full(void *userdata)
{
	history_shrink(userdata);
}

/*
 * Returns the limits to which windows of always-on probes are folded. When the store merges
 * windows, it folds the merged window to these limits. Where room is short, windows on disk are
 * folded to a part of these limits.
 */
static struct window_fold_limits fold_limits(const struct config *config)
{
	return (struct window_fold_limits){
		.max_rows = config->window_max_rows,
		.max_folded = config->window_max_folded,
		.max_sums = config->window_max_folded / WINDOW_SUMS_SHARE,
		.preempted_percent = (unsigned int)config->window_preempted,
	};
}

static void folds_count(struct recorder_folds *folds, const struct window_folded *folded)
{
	if (!folded->rows)
		return;
	folds->processes += folded->processes;
	folds->rows += folded->rows;
	folds->ns += folded->ns;
	folds->unlisted += folded->unlisted;
}

/*
 * Folds a window; its stacks must have names, by which equal stacks are found. Returns a reference
 * to the folded window, or to the same window if nothing has to be folded or there is no memory.
 */
static struct window *fold_to(struct window *window, const struct window_fold_limits *limits)
{
	struct window *folded;
	int r = window_fold(window, limits, &folded);

	if (!r)
		return folded;
	log_err(r, "fold a window");
	return window_ref(window);
}

/*
 * Returns the limits of a window while it is recent: those of a client's session, which it keeps;
 * of an always-on one, those of [window] recent_rows, which are not below the final ones.
 */
static struct window_fold_limits first_limits(const struct config *config,
					      enum window_folding folding)
{
	struct window_fold_limits limits = fold_limits(config);
	const size_t recent = config->window_recent_rows;

	if (folding == WINDOW_FOLD_NONE || !limits.max_rows)
		return (struct window_fold_limits){};
	if (folding == WINDOW_FOLD_ROWS) {
		limits.max_rows *= CLIENT_ROWS;
		limits.max_folded *= CLIENT_ROWS;
	} else if (!recent) {
		return (struct window_fold_limits){};
	} else if (recent <= limits.max_rows) {
		return limits;
	} else {
		limits.max_rows = recent;
		limits.max_folded = limits.max_folded > recent ? limits.max_folded : recent;
	}
	limits.max_sums = limits.max_folded / WINDOW_SUMS_SHARE;
	limits.preempted_percent = 0;
	return limits;
}

/* Keeps a window of an always-on session, folded for the disk, and whole for queries of now. */
static void window_keep(struct recorder *recorder, struct window *whole, size_t referred_bytes)
{
	const struct window_fold_limits limits = fold_limits(recorder->config);
	struct window *always, *folded;

	/*
	 * A process that has exited sends no more stacks, and those that it has sent take much
	 * memory. A client that starts a session gets all details.
	 */
	window_share_stacks(whole, recorder->stacks);
	folded = fold_to(whole, &limits);
	folds_count(&recorder->folds, &folded->folded);
	always = window_ref(folded);
	history_add(recorder->history, whole, folded == whole ? window_unref(folded) : folded,
		    referred_bytes);
	/* The totals may keep the window: from now on it does not change. */
	totals_add(recorder->totals, always);
	window_unref(always);
}

static void on_resolved(void *userdata, struct window *window, size_t referred_bytes)
{
	struct recorder *recorder = userdata;
	const struct window_fold_limits limits = first_limits(recorder->config, window->folding);
	struct window *first;

	step_waits_find(recorder->steps, window);
	held_waits_find(recorder->held, window);
	first = fold_to(window, &limits);
	window_unref(window);
	if (first->session < SESSION_FIRST_ID) {
		window_keep(recorder, first, referred_bytes);
		return;
	}
	folds_count(&recorder->folds, &first->folded);
	history_add(recorder->history, first, NULL, referred_bytes);
}

static int recorder_tables(struct recorder *recorder, const struct config *config)
{
	struct window_sink sink = { on_resolved, NULL };
	int r = process_table_new(config->symbols_max_memory, &recorder->processes);

	if (r)
		return r;
	process_table_set_parser(recorder->processes, recorder->parser);
	if (config->symbols_remote)
		process_table_read_remote(recorder->processes);
	r = stack_table_new(STACKS_SHARE * config->window_max_memory, &recorder->stacks);
	if (r)
		return r;
	r = history_new(config->window_keep_ns, config->window_max_memory, &recorder->history);
	if (r)
		return r;
	sink.userdata = recorder;
	stack_table_set_relief(recorder->stacks, on_stacks_full, recorder->history);
	r = source_lines_helper_new(config->symbols_lines_memory, &recorder->lines);
	if (r || recorder->is_serve_only)
		return r;
	r = totals_new(&recorder->totals);
	if (r)
		return r;
	recorder->held = held_waits_new();
	recorder->steps = step_waits_new();
	if (!recorder->held || !recorder->steps)
		return -ENOMEM;
	return resolver_new(recorder->processes, recorder->stacks, &sink, config->idle_functions,
			    &recorder->resolver);
}

static size_t on_window(void *userdata, struct window *window)
{
	return store_add(userdata, window);
}

/* Allocates the path of the database; the caller frees it. The file is in systemd's state
 * directory, unless the settings give another path. Returns 0 or -ENOMEM. */
static int store_path_make(const struct config *config, char **out)
{
	const char *directory = getenv("STATE_DIRECTORY");
	const char *fallback = config_keys[config_key_find("store", "path")].fallback;
	int r;

	if (!directory || strchr(directory, ':') || strcmp(config->store_path, fallback) != 0)
		r = asprintf(out, "%s", config->store_path);
	else
		r = asprintf(out, "%s/stackd.db", directory);
	return r < 0 ? -ENOMEM : 0;
}

static int recorder_store(struct recorder *recorder, const struct config *config, bool is_read_only)
{
	struct store_options options = {
		.max_size = config->store_max_size,
		.max_age_ns = config->store_max_age_ns,
		.n_tiers = config->store_tiers.n,
		.fold = fold_limits(config),
		.window_ns = config->window_length_ns,
		.boot_id = recorder->boot_id,
		.is_read_only = is_read_only,
	};
	_cleanup_(freep) char *path = NULL;
	size_t i;
	int r;

	if (!config->store_enabled)
		return 0;
	for (i = 0; i < config->store_tiers.n; i++)
		options.tiers[i] = (struct store_tier){
			.length_ns = config->store_tiers.tier[i].length_ns,
			.keep_ns = config->store_tiers.tier[i].keep_ns,
			.share = config->store_tiers.tier[i].share,
		};
	r = store_path_make(config, &path);
	if (r)
		return r;
	options.path = path;
	r = store_start(&options, &recorder->store);
	if (!r && !is_read_only)
		history_set_sink(recorder->history, on_window, recorder->store);
	return r;
}

static int recorder_sessions(struct recorder *recorder, const struct config *config)
{
	struct sessions_options options = {
		.config = config,
		.broker = recorder->broker,
		.parser = recorder->parser,
		.unwind = recorder->unwind ? recorder->unwind_maps : NULL,
		.processes = recorder->processes,
		.stacks = recorder->stacks,
		.resolver = recorder->resolver,
		.cost = &recorder->cost,
		.is_serve_only = recorder->is_serve_only,
	};

	return sessions_new(&options, &recorder->sessions);
}

int recorder_check(const struct recorder *recorder, char *reason, size_t size)
{
	int r = recorder->is_serve_only ? 0 : namespaces_check(reason, size);

	return r || recorder->is_serve_only ? r : probe_check(reason, size);
}

static int recorder_budget_start(struct recorder *recorder, const struct config *config)
{
	const struct budget_options options = {
		.config = config,
		.sessions = recorder->sessions,
		.cost = &recorder->cost,
		.processes = recorder->processes,
	};

	return recorder->is_serve_only ? 0 : budget_new(&options, &recorder->budget);
}

static int recorder_sweeper(struct recorder *recorder, const struct config *config)
{
	const struct sweeper_options options = {
		.config = config,
		.processes = recorder->processes,
		.stacks = recorder->stacks,
		.history = recorder->history,
		.resolver = recorder->resolver,
		.sessions = recorder->sessions,
		.budget = recorder->budget,
	};

	return recorder->is_serve_only ? 0 : sweeper_start(&options, &recorder->sweeper);
}

/* Opens and starts the parts of the recorder. The caller stops those that are there on an error. */
static int recorder_open(const struct config *config, struct recorder *recorder, char *reason,
			 size_t size)
{
	int r = recorder_tables(recorder, config);

	if (r)
		return r;
	if (recorder->unwind)
		process_table_set_unwind(recorder->processes, recorder->unwind);
	r = recorder_store(recorder, config, recorder->is_serve_only);
	if (r)
		return r;
	r = recorder_sessions(recorder, config);
	if (r)
		return r;
	r = sessions_start_always(recorder->sessions, reason, size);
	if (r)
		return r;
	r = recorder_budget_start(recorder, config);
	if (r)
		return r;
	r = recorder_sweeper(recorder, config);
	if (r)
		return r;
	if (!recorder->is_serve_only) {
		r = process_table_scan(recorder->processes);
		if (r)
			return r;
		process_table_load_rows(recorder->processes, ROWS_TIMEOUT_NS);
	}
	/* Wait until the database is open: a query right after the start must see its windows. */
	store_wait(recorder->store, STORE_TIMEOUT_NS);
	return 0;
}

int recorder_start(const struct config *config, struct recorder *recorder, char *reason,
		   size_t size)
{
	int r;

	recorder->config = config;
	recorder->cost.workers_ns = recorder->parser ? parser_cpu_ns(recorder->parser) : NULL;
	recorder->started_real_ns = clock_ns(CLOCK_REALTIME);
	boot_id_read(recorder->boot_id, sizeof(recorder->boot_id));
	if (!recorder->is_serve_only)
		recorder_unwind(recorder, config);
	r = recorder_open(config, recorder, reason, size);
	if (r) {
		if (!reason[0])
			snprintf(reason, size, "start recording: %s", strerror(-r));
		recorder_stop(recorder);
		return r;
	}
	/* Until now, this thread worked for the start. */
	cost_meter_answers(&recorder->cost);
	return 0;
}

void recorder_set_limits(struct recorder *recorder)
{
	const struct config *config = recorder->config;

	store_set_window(recorder->store, config->window_length_ns);
	history_set_limits(recorder->history, config->window_keep_ns, config->window_max_memory);
	stack_table_set_max(recorder->stacks, STACKS_SHARE * config->window_max_memory);
}

void recorder_end(struct recorder *recorder)
{
	sessions_end(recorder->sessions);
	resolver_end(recorder->resolver);
	store_end(recorder->store);
}

void recorder_stop(struct recorder *recorder)
{
	recorder_end(recorder);
	recorder->sweeper = sweeper_stop(recorder->sweeper);
	recorder->budget = budget_free(recorder->budget);
	recorder->sessions = sessions_free(recorder->sessions);
	recorder->resolver = resolver_free(recorder->resolver);
	recorder->held = held_waits_free(recorder->held);
	recorder->steps = step_waits_free(recorder->steps);
	recorder->totals = totals_free(recorder->totals);
	recorder->lines = source_lines_helper_free(recorder->lines);
	recorder->store = store_stop(recorder->store);
	if (recorder->store)
		return; /* the store's thread hangs in a write and still uses what is freed below */
	recorder->history = history_free(recorder->history);
	recorder->stacks = stack_table_free(recorder->stacks);
	recorder->processes = process_table_free(recorder->processes);
	if (recorder->processes)
		return; /* a thread hangs in a read and still uses what is freed below */
	recorder->unwind = unwind_free(recorder->unwind);
	recorder->unwind_maps = unwind_maps_close(recorder->unwind_maps);
}

bool recorder_is_used(const struct recorder *recorder)
{
	return recorder->store || recorder->processes;
}
