/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include "build_config.h"
#include "common/base.h"
#include "common/note_words.h"
#include "daemon/parse/parser.h"
#include "daemon/query/answer.h"
#include "daemon/query/answer_pressure.h"
#include "daemon/query/health.h"
#include "daemon/query/limits.h"
#include "daemon/query/reach.h"
#include "daemon/session/budget.h"
#include "daemon/session/recorder.h"

/*
 * The maximum number of rows about binaries in the reply. One of them stands for all binaries that
 * have no row of their own.
 */
enum { MAX_BINARIES = WALK_STATS_MAX + 1 };

static int64_t rss_bytes(void)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/self/statm", "re");
	long size, resident;

	if (!f || fscanf(f, "%ld %ld", &size, &resident) != 2)
		return 0;
	return (int64_t)resident * sysconf(_SC_PAGESIZE);
}

static bool stats_are_enabled(void)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/sys/kernel/bpf_stats_enabled", "re");
	int on = 0;

	return f && fscanf(f, "%d", &on) == 1 && on;
}

static int64_t timeval_ns(const struct timeval *tv)
{
	return tv->tv_sec * NS_PER_S + tv->tv_usec * NS_PER_US;
}

/* True if the always-on probe iolat records no call, whatever the budget is. */
static bool has_no_calls(struct recorder *recorder)
{
	struct probe_status status;

	session_probe_status(sessions_always(recorder->sessions, PROBE_IOLAT), &status);
	return above_is_disks(probe_status_above(&status));
}

/* Lists what is not recorded now to keep within the budget. Returns 0 or -ENOMEM. */
static int shed_make(struct recorder *recorder, const struct budget_state *state,
		     struct arena *arena, struct wire_sheds *out)
{
	const bool no_calls = has_no_calls(recorder);
	struct wire_shed *wire = arena_array(arena, WINDOW_SHED_N, sizeof(*wire));
	unsigned int i;
	size_t n = 0;

	if (!wire)
		return -ENOMEM;
	for (i = 0; i < WINDOW_SHED_N; i++)
		if (state->shed_since_ns[i] && !(i == WINDOW_SHED_CALLS && no_calls))
			wire[n++] = (struct wire_shed){
				.name = window_shed_name(i),
				.length_ns = WIRE_ABSENT,
				.since = state->shed_since_ns[i],
				.every = i == WINDOW_SHED_SAMPLES ? state->sample_every
								  : WIRE_ABSENT,
			};
	if (n)
		*out = (struct wire_sheds){ .v = wire, .n = n };
	return 0;
}

/* Sets *out to what is done to keep within the budget. Returns 0 or -ENOMEM. */
static int budget_make(struct recorder *recorder, struct arena *arena,
		       const struct wire_budget **out)
{
	enum { NS_PER_PPM = NS_PER_S / 1000000 };
	struct budget_state state;
	struct wire_budget *wire;

	budget_state(recorder->budget, &state);
	if (!state.limit_ppm)
		return 0;
	wire = arena_alloc(arena, sizeof(*wire));
	if (!wire)
		return -ENOMEM;
	*wire = (struct wire_budget){
		.asked_ns = state.asked_ppm < state.limit_ppm
				    ? (int64_t)state.asked_ppm * NS_PER_PPM
				    : WIRE_ABSENT,
		.walks_ns = (int64_t)state.cost.walk_ppm * NS_PER_PPM,
		.hooks_ns = (int64_t)state.cost.hook_ppm * NS_PER_PPM,
		.threads_ns = (int64_t)state.cost.user_ppm * NS_PER_PPM,
		.sample_below_ns =
			state.sample_below_ns ? (int64_t)state.sample_below_ns : WIRE_ABSENT,
		.since = state.sample_below_ns ? state.sampled_since_ns : WIRE_ABSENT,
		.braked = (int64_t)state.braked,
		.put_off = state.put_off ? (int64_t)state.put_off : WIRE_ABSENT,
		.minute_ns = state.has_minute
				     ? (int64_t)governor_cost_sum(&state.minute) * NS_PER_PPM
				     : WIRE_ABSENT,
		.burst_ns = state.has_minute && state.burst_ppm
				    ? (int64_t)state.burst_ppm * NS_PER_PPM
				    : WIRE_ABSENT,
		.beyond_since = state.beyond_since_ns ? state.beyond_since_ns : WIRE_ABSENT,
	};
	*out = wire;
	return shed_make(recorder, &state, arena, &wire->shed);
}

/*
 * Sets the fields about the daemon as a whole, such as its version and its memory. Returns 0 or
 * -ENOMEM.
 */
static int daemon_make(struct recorder *recorder, struct answer *answer)
{
	struct wire_status_reply *reply = &answer->reply.status;
	struct drain_stats drain;
	struct cost_totals cost;
	struct rusage usage = {};
	struct utsname uts = {};
	const uint64_t budget = recorder_budget(recorder);

	session_stats(sessions_always(recorder->sessions, PROBE_OFFCPU), &drain);
	uname(&uts);
	getrusage(RUSAGE_SELF, &usage);
	reply->version = STACKD_VERSION;
	reply->pid = getpid();
	reply->started = recorder->started_real_ns;
	reply->boot_id = recorder->boot_id;
	reply->kernel = arena_strdup(answer->arena, uts.release);
	reply->window_ns = recorder->config->window_length_ns;
	reply->keep_ns = recorder->config->window_keep_ns;
	reply->cut_ns = drain.cut_ns;
	reply->cut_max_ns = drain.cut_max_ns;
	cost_meter_read(&recorder->cost, &cost);
	reply->user_ns = timeval_ns(&usage.ru_utime) + (int64_t)cost.children_ns;
	reply->system_ns = timeval_ns(&usage.ru_stime);
	reply->bpf_ns = (int64_t)cost.bpf.ns;
	reply->answers_ns = (int64_t)cost.answers_ns;
	reply->sessions_ns = (int64_t)cost.bpf.session_ns;
	reply->budget_ns = budget ? (int64_t)(budget * (NS_PER_S / 1000000)) : WIRE_ABSENT;
	reply->rss_bytes = rss_bytes();
	reply->map_bytes = (int64_t)recorder_map_bytes(recorder);
	reply->stats_enabled = stats_are_enabled();
	return reply->kernel ? budget_make(recorder, answer->arena, &reply->budget) : -ENOMEM;
}

static int walks_make(struct recorder *recorder, struct answer *answer, struct wire_walks *out)
{
	struct walk_stats *walks = arena_array(answer->arena, MAX_BINARIES, sizeof(*walks));
	struct wire_walk *wire = arena_array(answer->arena, MAX_BINARIES, sizeof(*wire));
	size_t i, n;

	if (!walks || !wire)
		return -ENOMEM;
	n = process_table_walk_stats(recorder->processes, walks, MAX_BINARIES);
	for (i = 0; i < n; i++) {
		const uint64_t *ends = walks[i].ends;

		wire[i] = (struct wire_walk){
			.binary = walks[i].exe,
			.stacks = (int64_t)walks[i].stacks,
			.whole = (int64_t)ends[WALK_WHOLE],
			.truncated = (int64_t)ends[WALK_TRUNCATED],
			.no_table = (int64_t)ends[WALK_NO_TABLE],
			.no_mapping = (int64_t)ends[WALK_NO_MAPPING],
			.no_row = (int64_t)ends[WALK_NO_ROW],
			.fault = (int64_t)ends[WALK_FAULT],
			.frame_pointers = (int64_t)ends[WALK_FRAME_POINTERS],
			.compat = (int64_t)ends[WALK_COMPAT],
			.shed = (int64_t)ends[WALK_SHED],
		};
	}
	*out = (struct wire_walks){ .v = wire, .n = n };
	return 0;
}

static int unwind_make(struct recorder *recorder, struct answer *answer)
{
	struct unwind_stats stats;
	struct wire_unwind *wire;

	if (!recorder_unwind_stats(recorder, &stats))
		return 0;
	wire = arena_alloc(answer->arena, sizeof(*wire));
	if (!wire)
		return -ENOMEM;
	*wire = (struct wire_unwind){
		.files = (int64_t)stats.tables,
		.bytes = (int64_t)stats.bytes,
		.max_bytes = (int64_t)stats.max_bytes,
		.loads = (int64_t)stats.loads,
		.load_ns = (int64_t)stats.load_ns,
		.evictions = (int64_t)stats.evictions,
	};
	answer->reply.status.unwind = wire;
	return walks_make(recorder, answer, &wire->binaries);
}

/* Sets the fields about the processes that parse files. Returns 0 or -ENOMEM. */
static int parser_make(struct recorder *recorder, struct answer *answer)
{
	struct wire_given_up *files;
	struct parser_stats stats;
	struct wire_parser *wire;
	size_t i;

	if (!recorder->parser)
		return 0;
	parser_stats(recorder->parser, &stats);
	wire = arena_alloc(answer->arena, sizeof(*wire));
	files = arena_array(answer->arena, stats.n_failures + 1, sizeof(*files));
	if (!wire || !files)
		return -ENOMEM;
	for (i = 0; i < stats.n_failures; i++) {
		files[i].path = arena_strdup(answer->arena, stats.failures[i].path);
		files[i].reason = stats.failures[i].reason;
		if (!files[i].path)
			return -ENOMEM;
	}
	*wire = (struct wire_parser){
		.workers = stats.workers,
		.hanging = stats.hanging,
		.replaced = (int64_t)stats.replaced,
		.given_up = (int64_t)stats.given_up,
		.requests = (int64_t)stats.requests,
		.cpu_ns = (int64_t)stats.cpu_ns,
		.files = { .v = files, .n = stats.n_failures },
	};
	answer->reply.status.parser = wire;
	return 0;
}

static void history_make(struct recorder *recorder, struct wire_status_reply *reply)
{
	struct history_list list;

	reply->oldest = reply->newest = WIRE_ABSENT;
	if (history_range(recorder->history, 0, INT64_MIN, INT64_MAX, &list))
		return;
	reply->windows = (int64_t)list.n;
	if (list.n) {
		reply->oldest = list.windows[0]->start_ns + list.windows[0]->real_offset_ns;
		reply->newest =
			list.windows[list.n - 1]->end_ns + list.windows[list.n - 1]->real_offset_ns;
	}
	history_list_fini(&list);
}

/*
 * Sums the losses of the always-on probes. The losses of sessions that clients started are reported
 * with each session.
 */
static int losses_make(struct recorder *recorder, struct arena *arena, struct wire_losts *out)
{
	uint64_t lost[WINDOW_LOST_N] = {};
	struct drain_stats stats;
	unsigned int kind, i;

	for (kind = 0; kind < PROBE_KIND_N; kind++) {
		session_stats(sessions_always(recorder->sessions, (enum probe_kind)kind), &stats);
		for (i = 0; i < WINDOW_LOST_N; i++)
			lost[i] += stats.lost[i];
	}
	return answer_losses(arena, lost, out);
}

static int64_t time_or_absent(int64_t ns)
{
	return ns == INT64_MIN ? WIRE_ABSENT : ns;
}

/*
 * Returns the time, in ns since the epoch, up to which everything that the always-on probes
 * recorded would survive a power cut. Windows are written one by one, so this is the time of the
 * probe that is furthest behind. INT64_MIN: a probe has no window on disk yet.
 */
static int64_t synced_until(struct recorder *recorder, const struct store_stats *stats)
{
	struct probe_status status;
	int64_t until = INT64_MAX;
	size_t kind;

	for (kind = 0; kind < PROBE_KIND_N && !recorder->is_serve_only; kind++) {
		session_probe_status(sessions_always(recorder->sessions, (enum probe_kind)kind),
				     &status);
		if (status.is_on && stats->synced_always_ns[kind] < until)
			until = stats->synced_always_ns[kind];
	}
	return until == INT64_MAX ? stats->synced_ns : until;
}

/* Returns the last notice of each kind; NULL if there are none. */
static const char *notices_text(struct arena *arena, const struct store_stats *stats)
{
	const char *text = NULL;

	for (size_t i = 0; i < STORE_NOTICES; i++)
		if (stats->notices[i].text[0])
			text = arena_printf(arena, "%s%s%s", text ? text : "", text ? "; " : "",
					    stats->notices[i].text);
	return text;
}

/* Sets the state of the store in the reply. If stackd has no store, the reply has no such field. */
static int store_make(struct recorder *recorder, struct answer *answer)
{
	struct wire_store *store;
	struct store_stats stats;

	if (!recorder->store)
		return 0;
	store = arena_alloc(answer->arena, sizeof(*store));
	if (!store)
		return -ENOMEM;
	if (recorder->is_serve_only)
		answer_reader(answer, recorder->store);
	store_stats_read(recorder->store, answer->reader, &stats);
	*store = (struct wire_store){
		.path = store_path(recorder->store),
		.state = stats.is_read_only ? "serving"
			 : stats.is_writing ? "writing"
					    : "failed",
		.bytes = (int64_t)stats.bytes,
		.max_bytes = (int64_t)stats.max_size,
		.windows = (int64_t)stats.windows,
		.oldest = time_or_absent(stats.oldest_ns),
		.newest = time_or_absent(stats.newest_ns),
		.synced = time_or_absent(synced_until(recorder, &stats)),
		.queued = (int64_t)stats.queued,
		.written = (int64_t)stats.written,
		.dropped = (int64_t)(stats.dropped_queue + stats.dropped_write),
		.evicted = (int64_t)(stats.evicted_age + stats.evicted_size),
		.merged = (int64_t)stats.compacted,
		.damaged = (int64_t)stats.damaged,
		.notice = notices_text(answer->arena, &stats),
	};
	answer->reply.status.store = store;
	return reach_tiers(answer->arena, &stats, clock_ns(CLOCK_REALTIME), &store->tiers);
}

static int folded_make(struct recorder *recorder, struct answer *answer)
{
	const struct window_folded folded = {
		.rows = recorder->folds.rows,
		.processes = recorder->folds.processes,
		.ns = recorder->folds.ns,
		.unlisted = recorder->folds.unlisted,
	};

	return answer_folded(answer->arena, &folded, &answer->reply.status.folded);
}

int query_status(struct recorder *recorder, const struct query_peer *peer, const void *params,
		 struct answer **out, struct wire_error *error)
{
	_cleanup_(answer_freep) struct answer *answer = answer_new();
	struct wire_status_reply *reply;
	int r;

	if (!answer)
		return -ENOMEM;
	reply = &answer->reply.status;
	history_make(recorder, reply);
	r = daemon_make(recorder, answer);
	if (r)
		return r;
	r = answer_probe_list(recorder, answer->arena, &reply->probes);
	if (r)
		return r;
	r = losses_make(recorder, answer->arena, &reply->lost);
	if (r)
		return r;
	r = store_make(recorder, answer);
	if (r)
		return r;
	r = folded_make(recorder, answer);
	if (r)
		return r;
	r = answer_pressure_source(recorder, answer->arena, &reply->pressure);
	if (r)
		return r;
	r = health_problems(recorder, answer, &reply->problems);
	if (r)
		return r;
	r = limits_make(recorder, answer->arena, &reply->limits);
	if (r)
		return r;
	r = unwind_make(recorder, answer);
	if (r)
		return r;
	r = parser_make(recorder, answer);
	if (r)
		return r;
	reply->healthy = reply->problems.n == 0;
	*out = TAKE(answer);
	return 0;
}

int query_probes(struct recorder *recorder, const struct query_peer *peer, const void *params,
		 struct answer **out, struct wire_error *error)
{
	_cleanup_(answer_freep) struct answer *answer = answer_new();
	int r;

	if (!answer)
		return -ENOMEM;
	r = answer_probe_list(recorder, answer->arena, &answer->reply.probes.probes);
	if (r)
		return r;
	*out = TAKE(answer);
	return 0;
}
