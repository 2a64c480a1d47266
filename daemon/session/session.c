/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/session/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/base/log.h"
#include "daemon/drain/call_stream.h"
#include "daemon/host/cgroup.h"
#include "daemon/session/governor.h"
#include "proto/wire_copy.h"

static struct session *session_free(struct session *session)
{
	if (!session)
		return NULL;
	drain_stop(session->drain, NULL, NULL);
	probe_close(session->probe);
	targets_fini(&session->targets);
	call_stream_unref(session->calls);
	arena_free(session->arena);
	pthread_rwlock_destroy(&session->lock);
	free(session);
	return NULL;
}

struct session *session_ref(struct session *session)
{
	atomic_fetch_add(&session->refs, 1);
	return session;
}

struct session *session_unref(struct session *session)
{
	if (session && atomic_fetch_sub(&session->refs, 1) == 1)
		session_free(session);
	return NULL;
}

void session_unrefp(struct session **session)
{
	*session = session_unref(*session);
}

static int session_copy(struct session *session, const struct session_request *request,
			struct wire_error *error)
{
	struct wire_filter *wire = NULL;
	int r;

	if (request->name) {
		session->info.name = arena_strdup(session->arena, request->name);
		if (!session->info.name)
			return -ENOMEM;
	}
	if (request->function) {
		session->info.function = arena_strdup(session->arena, request->function);
		if (!session->info.function)
			return -ENOMEM;
	}
	if (request->filter) {
		wire = arena_alloc(session->arena, sizeof(*wire));
		r = wire ? wire_filter_copy(session->arena, request->filter, wire) : -ENOMEM;
		if (r)
			return r;
	}
	/*
	 * BPF programs that record waits also sum up the waits of threads in cgroups that the
	 * filter excludes. Queries about waits must therefore check the cgroup again.
	 */
	r = filter_init(&session->filter, wire, error);
	session->filter.knows_cgroup = !probe_kind_has(request->kind, PROBE_WAITS);
	session->filter.knows_threads = !probe_kind_has(request->kind, PROBE_THREADS);
	return r;
}

int session_new(const struct session_request *request, uint64_t id, struct session **out,
		struct wire_error *error)
{
	_cleanup_(session_unrefp) struct session *session = calloc(1, sizeof(*session));
	struct session_info *info;
	int r;

	if (!session)
		return -ENOMEM;
	session->refs = 1;
	session->ended_real_ns = INT64_MAX;
	session->due_ns = INT64_MAX;
	pthread_rwlock_init(&session->lock, NULL);
	session->arena = arena_new();
	if (!session->arena)
		return -ENOMEM;
	r = session_copy(session, request, error);
	if (r)
		return r;
	info = &session->info;
	info->id = id;
	info->kind = request->kind;
	info->is_always = id < SESSION_FIRST_ID;
	info->uid = request->uid;
	info->filter = &session->filter;
	info->with_idle = request->with_idle;
	info->is_regex = request->is_regex;
	if (info->is_always)
		snprintf(info->id_text, sizeof(info->id_text), "%s",
			 probe_kind_name(request->kind));
	else
		snprintf(info->id_text, sizeof(info->id_text), "%" PRIu64, id);
	*out = TAKE(session);
	return 0;
}

int session_new_past(const struct session_past *past, struct session **out,
		     struct wire_error *error)
{
	struct session *session;
	int r = session_new(past->request, past->id, &session, error);

	if (r)
		return r;
	session->info.run = past->run;
	session->info.since_real_ns = past->since_real_ns;
	session->info.until_real_ns = INT64_MAX;
	session->info.min_wait_ns = past->min_wait_ns;
	session->info.period_ns = past->period_ns;
	session->ended_real_ns = past->ended_real_ns;
	*out = session;
	return 0;
}

/*
 * Returns the length below which the session records waits by chance. A session that asks for a
 * minimum length gets all waits of that length and none below it.
 */
static int64_t sample_below(const struct session *session, const struct config *config)
{
	if (session->filter.min_ns)
		return 0;
	return probe_sample_below_setting(session->info.kind, config);
}

static void probe_options_init(const struct session *session,
			       const struct sessions_options *sessions,
			       const struct session_filter *programs, struct probe_options *out)
{
	const struct wire_filter *wire = session->filter.wire;
	const struct session_info *info = &session->info;

	*out = (struct probe_options){
		.kind = info->kind,
		.config = sessions->config,
		.broker = sessions->broker,
		.unwind = sessions->unwind,
		.hash_seed = session->hash_seed,
		.cgroup_root = cgroup_root(),
		.is_small = !info->is_always,
		.follows_processes = session->notes_processes,
		.filter = programs,
		.cgroups = session->cgroups,
		.pids = wire ? &wire->pids : NULL,
		.tids = wire ? &wire->tids : NULL,
		.cpus = wire ? &wire->cpus : NULL,
		.min_wait_ns = info->min_wait_ns,
		.sample_below_ns = sample_below(session, sessions->config),
		.period_ns = info->period_ns,
		.with_cycles = info->with_cycles,
		.with_idle = info->with_idle,
		.targets = &session->targets,
		.rate = info->rate,
	};
	out->is_disabled = info->is_always && (sessions->is_serve_only ||
					       !probe_is_enabled(info->kind, sessions->config));
}

/* Returns the estimated time in ns that the kernel needs to enter the BPF program at each traced
 * call. */
static uint64_t call_cost(const struct session *session)
{
	static const uint64_t costs_ns[] = {
		[TARGET_FUNCTION] = 100,
		[TARGET_TRACEPOINT] = 20,
		[TARGET_USER] = 1000,
		/*
		 * A probe of USDT is cheaper than one of TARGET_USER: the probed instruction is a
		 * nop, which the kernel emulates instead of executing it in a single step.
		 */
		[TARGET_USDT] = 500,
	};

	return costs_ns[session->targets.kind];
}

/* Converts a recent time of CLOCK_MONOTONIC to ns since the epoch. */
static int64_t real_time_of(int64_t monotonic_ns)
{
	return clock_ns(CLOCK_REALTIME) - (clock_ns(CLOCK_MONOTONIC) - monotonic_ns);
}

/* Replaces *text by a copy in the session's arena; NULL stays NULL. False if out of memory. */
static bool text_keep(struct session *session, const char **text)
{
	const char *from = *text;

	*text = from ? arena_strdup(session->arena, from) : NULL;
	return !from || *text;
}

/* Reads the probe's status and copies its strings, because the probe, which owns them, may be
 * closed while a query still uses them. */
static int status_keep(struct session *session)
{
	struct probe_status *status = &session->status;
	bool is_kept;
	size_t i;

	probe_status(session->probe, status);
	is_kept = text_keep(session, &status->hook);
	is_kept = text_keep(session, &status->reason) && is_kept;
	for (i = 0; i < status->n_blind; i++)
		is_kept = text_keep(session, &status->blind[i]) && is_kept;
	for (i = 0; i < status->n_programs; i++) {
		is_kept = text_keep(session, &status->programs[i].name) && is_kept;
		is_kept = text_keep(session, &status->programs[i].hook) && is_kept;
	}
	return is_kept ? 0 : -ENOMEM;
}

/*
 * Returns how windows of the session are folded. Windows are not folded if the session promises
 * exact counts, or if a client started it for certain processes or threads.
 */
static enum window_folding session_folding(const struct session_info *info)
{
	const struct wire_filter *wire = info->filter->wire;

	if (probe_kind_has(info->kind, PROBE_COUNTS) || (wire && (wire->pids.n || wire->tids.n)))
		return WINDOW_FOLD_NONE;
	return info->is_always ? WINDOW_FOLD_ALL : WINDOW_FOLD_ROWS;
}

int session_begin(struct session *session, const struct sessions_options *sessions, char *reason,
		  size_t size)
{
	struct session_filter programs;
	struct probe_options options;
	struct drain_options drain = {
		.config = sessions->config,
		.processes = sessions->processes,
		.stacks = sessions->stacks,
		.resolver = sessions->resolver,
		.tick = sessions->tick,
		.cost = sessions->cost,
		.session = session->info.id,
		.min_wait_ns = session->info.min_wait_ns,
		.follows_processes = session->notes_processes,
		.is_always = session->info.is_always,
		.folding = session_folding(&session->info),
		.reads_units = session->reads_units,
		.rate = session->info.rate,
		.call_cost_ns = call_cost(session),
	};
	int r;

	if (probe_kind_has(session->info.kind, PROBE_STREAMS) && !session->info.is_always) {
		session->calls = call_stream_new();
		if (!session->calls)
			return -ENOMEM;
	}
	drain.calls = session->calls;

	filter_to_programs(&session->filter, &programs);
	probe_options_init(session, sessions, &programs, &options);
	r = probe_open(&options, &session->probe, reason, size);
	if (r)
		return r;
	r = status_keep(session);
	if (r)
		return r;
	session->info.since_real_ns = clock_ns(CLOCK_REALTIME);
	if (!probe_is_on(session->probe))
		return 0;
	session->map_bytes = probe_map_bytes(session->probe);
	session->n_functions = probe_functions(session->probe);
	drain.probe = session->probe;
	r = drain_start(&drain, &session->drain);
	if (!r)
		session->info.since_real_ns =
			real_time_of((int64_t)probe_cut(session->probe)->start_ns[1]);
	return r;
}

const struct session_info *session_info(const struct session *session)
{
	return &session->info;
}

int64_t session_ended(struct session *session)
{
	int64_t ended;

	pthread_rwlock_rdlock(&session->lock);
	ended = session->ended_real_ns;
	pthread_rwlock_unlock(&session->lock);
	return ended;
}

/*
 * Stops the drain (the thread that reads the probe) and returns the probe, which the caller closes
 * after it has released session->lock: detaching a probe from many functions takes seconds, and
 * queries need the lock.
 */
static struct probe *session_finish(struct session *session)
{
	session->drain = drain_stop(session->drain, &session->stats, &session->last_seq);
	session->status.n_programs = 0;
	session->status.is_on = false;
	session->ended_real_ns = real_time_of(session->stats.last_ns - session->stats.cut_ns);
	return TAKE(session->probe);
}

void session_end_always(struct session *session)
{
	struct probe *probe = NULL;

	if (!session)
		return;
	pthread_rwlock_wrlock(&session->lock);
	if (session->drain)
		probe = session_finish(session);
	session->status.reason = NULL;
	pthread_rwlock_unlock(&session->lock);
	probe_close(probe);
}

static int stop_for(struct session *session, const char *why)
{
	struct probe *probe = NULL;
	int r = 0;

	if (session->info.is_always)
		return -EPERM;
	pthread_rwlock_wrlock(&session->lock);
	if (session->ended_real_ns != INT64_MAX)
		r = -EALREADY;
	else
		probe = session_finish(session);
	if (!r && why)
		snprintf(session->reason, sizeof(session->reason), "%s", why);
	pthread_rwlock_unlock(&session->lock);
	probe_close(probe);
	if (!r)
		log_info("session %s ended%s%s", session->info.id_text, why ? ": " : "",
			 why ? why : "");
	return r;
}

int session_stop(struct session *session)
{
	return stop_for(session, NULL);
}

int session_stop_untold(struct session *session)
{
	return stop_for(session, "its client went away before it was answered");
}

int session_stop_over(struct session *session, uint64_t budget_percent)
{
	struct drain_stats stats;
	char why[256];

	session_stats(session, &stats);
	snprintf(why, sizeof(why),
		 "it took %" PRIu64 " %% of a CPU for %" PRIu64
		 " calls a second with one in %" PRIu64
		 " recorded, which is over [probe.stackcount] max_cpu = %" PRIu64,
		 stats.load_percent, stats.calls_per_s, stats.every, budget_percent);
	return stop_for(session, why);
}

/* While drain_cut() runs, session->lock is held, so that no other thread frees session->drain. */
int session_cut(struct session *session, int64_t timeout_ns, uint64_t *seq_out)
{
	int r = 0;

	pthread_rwlock_rdlock(&session->lock);
	if (session->drain)
		r = drain_cut(session->drain, timeout_ns, seq_out);
	else
		*seq_out = session->last_seq;
	pthread_rwlock_unlock(&session->lock);
	return r;
}

int session_catch_up(struct session *session, int64_t timeout_ns)
{
	int r = 0;

	pthread_rwlock_rdlock(&session->lock);
	if (session->drain)
		r = drain_catch_up(session->drain, timeout_ns);
	pthread_rwlock_unlock(&session->lock);
	return r;
}

/* Appends a remark to *note, which is NULL before the first one. Returns 0 or -ENOMEM. */
static int remark_add(struct arena *arena, const char **note, const char *text)
{
	*note = arena_printf(arena, "%s%s%s", *note ? *note : "", *note ? "; " : "", text);
	return *note ? 0 : -ENOMEM;
}

static int session_note_locked(const struct session *session, struct arena *arena, const char **out)
{
	char text[512];
	int r;

	if (session->reason[0]) {
		snprintf(text, sizeof(text), "stackd ended the session: %s", session->reason);
		r = remark_add(arena, out, text);
		if (r)
			return r;
	}
	if (probe_kind_has(session->info.kind, PROBE_FUNCTIONS) && session->status.reason) {
		r = remark_add(arena, out, session->status.reason);
		if (r)
			return r;
	}
	if (!session->targets.chosen)
		return 0;
	snprintf(text, sizeof(text),
		 "%zu functions that match are chosen at run time (IFUNC) and not "
		 "recorded, such as %.256s",
		 session->targets.forbidden, session->targets.chosen);
	return remark_add(arena, out, text);
}

int session_note(struct session *session, struct arena *arena, const char **out)
{
	int r;

	*out = NULL;
	pthread_rwlock_rdlock(&session->lock);
	r = session_note_locked(session, arena, out);
	pthread_rwlock_unlock(&session->lock);
	return r;
}

size_t session_functions(struct session *session)
{
	return session->n_functions;
}

const char *session_file(const struct session *session)
{
	return session->targets.path;
}

struct call_stream *session_calls(struct session *session)
{
	return session->calls;
}

void session_stats(struct session *session, struct drain_stats *out)
{
	pthread_rwlock_rdlock(&session->lock);
	if (session->drain)
		drain_stats(session->drain, out);
	else
		*out = session->stats;
	pthread_rwlock_unlock(&session->lock);
}

uint64_t session_events(const struct session *session, const struct drain_stats *stats)
{
	const enum probe_kind kind = session->info.kind;

	return probe_kind_has(kind, PROBE_IO)	   ? stats->counts.ios
	       : probe_kind_has(kind, PROBE_WAITS) ? stats->counts.switch_ins
						   : stats->counts.samples;
}

void session_probe_status(struct session *session, struct probe_status *out)
{
	const struct probe_status *kept = &session->status;
	size_t i;

	pthread_rwlock_rdlock(&session->lock);
	if (session->probe)
		probe_status(session->probe, out);
	else
		*out = *kept;
	/* The reason from probe_status() belongs to the probe, which may be closed when a client's
	 * session ends. Return the session's own copy. */
	if (!session->info.is_always)
		out->reason = kept->reason;
	pthread_rwlock_unlock(&session->lock);
	if (session->info.is_always)
		return;
	out->hook = kept->hook;
	memcpy(out->blind, kept->blind, sizeof(out->blind));
	out->n_blind = kept->n_blind;
	for (i = 0; i < out->n_programs; i++) {
		out->programs[i].name = kept->programs[i].name;
		out->programs[i].hook = kept->programs[i].hook;
	}
}

/*
 * Returns the length below which a probe records waits or operations by chance at this level; 0: it
 * records none by chance. For iolat it is the same length as for the waits of offcpu, if that is
 * above the length from which on operations are slow.
 */
static uint64_t below_of_level(enum probe_kind kind, int64_t min_wait_ns,
			       const struct config *config, unsigned int level)
{
	const uint64_t setting = (uint64_t)probe_sample_below_setting(kind, config);
	uint64_t least = (uint64_t)min_wait_ns, below;

	if (!level)
		return setting;
	if (kind != PROBE_IOLAT)
		return governor_sample_below(level, setting > least ? setting : least);
	least = (uint64_t)config->offcpu_min_wait_ns;
	below = (uint64_t)config->offcpu_sample_below_ns;
	below = governor_sample_below(level, below > least ? below : least);
	return governor_sample_slow(below, (uint64_t)config->iolat_slow_ns, setting);
}

uint64_t session_set_pace(struct session *session, const struct config *config,
			  const struct session_pace *pace)
{
	const struct session_info *info = &session->info;
	uint64_t below = below_of_level(info->kind, info->min_wait_ns, config, pace->level);

	pthread_rwlock_rdlock(&session->lock);
	if (session->probe)
		probe_set_shed(session->probe, pace->shed, pace->sample_every);
	if (!probe_kind_has(info->kind, PROBE_PICKS)) {
		below = 0;
	} else if (session->probe) {
		probe_set_brake(session->probe, pace->brake_share);
		probe_set_sample_below(session->probe, below);
		below = probe_sample_below(session->probe);
	}
	pthread_rwlock_unlock(&session->lock);
	return below;
}

uint64_t session_map_bytes(struct session *session)
{
	uint64_t bytes;

	pthread_rwlock_rdlock(&session->lock);
	bytes = session->probe ? session->map_bytes : 0;
	pthread_rwlock_unlock(&session->lock);
	return bytes;
}

bool session_is_on(struct session *session)
{
	bool is_on;

	pthread_rwlock_rdlock(&session->lock);
	is_on = session->drain != NULL;
	pthread_rwlock_unlock(&session->lock);
	return is_on;
}
