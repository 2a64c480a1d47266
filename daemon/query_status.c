/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include "build_config.h"
#include "daemon/answer.h"
#include "daemon/query_health.h"
#include "daemon/recorder.h"
#include "proto/base.h"

enum { OWN_LIMITS = 10 };

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

static void usage_make(struct recorder *recorder, struct wire_status_reply *reply)
{
	struct rusage usage = {};

	getrusage(RUSAGE_SELF, &usage);
	reply->user_ns = timeval_ns(&usage.ru_utime);
	reply->system_ns = timeval_ns(&usage.ru_stime);
	reply->rss_bytes = rss_bytes();
	reply->map_bytes = (int64_t)probe_map_bytes(recorder->probe);
	reply->stats_enabled = stats_are_enabled();
}

/* What could not be had for want of room shows as hits. */
static size_t unwind_limits(struct recorder *recorder, struct wire_limit *out)
{
	struct unwind_stats stats;

	if (!recorder->unwind)
		return 0;
	unwind_stats(recorder->unwind, &stats);
	out[0] = (struct wire_limit){ "unwind.max_memory", (int64_t)stats.max_bytes,
				      (int64_t)stats.bytes,
				      (int64_t)(stats.evictions + stats.no_room) };
	out[1] = (struct wire_limit){ "unwind.mappings", (int64_t)stats.max_segments,
				      (int64_t)stats.segments,
				      (int64_t)(stats.segments_full + stats.processes_full) };
	return 2;
}

static int limits_make(struct recorder *recorder, struct answer *answer,
		       const struct drain_stats *drain)
{
	struct wire_limit *limits = arena_array(answer->arena, OWN_LIMITS, sizeof(*limits));
	const struct config *config = recorder->config;
	struct stack_table_stats stacks;
	struct process_stats processes;
	struct history_stats history;
	struct resolver_stats names;
	size_t n = 0;

	if (!limits)
		return -ENOMEM;
	stack_table_stats(recorder->stacks, &stacks);
	process_table_stats(recorder->processes, &processes);
	history_stats(recorder->history, &history);
	limits[n++] = (struct wire_limit){ "window.max_memory", (int64_t)config->window_max_memory,
					   (int64_t)(history.bytes + stacks.bytes),
					   (int64_t)(history.evicted_for_bytes + stacks.full) };
	limits[n++] =
		(struct wire_limit){ "probe.offcpu.max_threads",
				     (int64_t)config->offcpu_max_threads, (int64_t)drain->threads,
				     (int64_t)drain->lost[LOST_THREADS] };
	limits[n++] =
		(struct wire_limit){ "probe.offcpu.max_keys", (int64_t)config->offcpu_max_keys,
				     (int64_t)drain->keys_max,
				     (int64_t)drain->lost[LOST_WAIT_KEYS] };
	limits[n++] =
		(struct wire_limit){ "symbols.max_memory", (int64_t)config->symbols_max_memory,
				     (int64_t)processes.symbol_bytes,
				     (int64_t)processes.evictions };
	/* Files that would have been read. */
	limits[n++] = (struct wire_limit){ "symbols.remote", 0, 0, (int64_t)processes.remote };
	n += unwind_limits(recorder, limits + n);
	resolver_stats(recorder->resolver, &names);
	limits[n++] = (struct wire_limit){ "symbols.waiting_stacks", RESOLVER_MAX_STACKS,
					   (int64_t)names.stacks, (int64_t)names.stacks_dropped };
	limits[n++] = (struct wire_limit){ "symbols.waiting_windows", RESOLVER_MAX_WINDOWS,
					   (int64_t)names.windows, (int64_t)names.windows_dropped };
	answer->status.limits = (struct wire_limits){ .v = limits, .n = n };
	return 0;
}

static void history_make(struct recorder *recorder, struct wire_status_reply *reply)
{
	struct history_list list;

	reply->oldest = reply->newest = WIRE_ABSENT;
	if (history_range(recorder->history, INT64_MIN, INT64_MAX, &list))
		return;
	reply->windows = (int64_t)list.n;
	if (list.n) {
		reply->oldest = list.windows[0]->start_ns + list.windows[0]->real_offset_ns;
		reply->newest =
			list.windows[list.n - 1]->end_ns + list.windows[list.n - 1]->real_offset_ns;
	}
	history_list_fini(&list);
}

int query_status(struct recorder *recorder, struct answer **out)
{
	_cleanup_(answer_freep) struct answer *answer = answer_new();
	struct wire_status_reply *reply;
	struct drain_stats drain = {};
	struct utsname uts = {};
	int r;

	if (!answer)
		return -ENOMEM;
	if (recorder->drain)
		drain_stats(recorder->drain, &drain);
	uname(&uts);
	reply = &answer->status;
	reply->version = STACKD_VERSION;
	reply->pid = getpid();
	reply->started = recorder->started_real_ns;
	reply->boot_id = recorder->boot_id;
	reply->kernel = arena_strdup(answer->arena, uts.release);
	reply->window_ns = recorder->config->window_length_ns;
	reply->keep_ns = recorder->config->window_keep_ns;
	reply->cut_ns = drain.cut_ns;
	reply->cut_max_ns = drain.cut_max_ns;
	usage_make(recorder, reply);
	history_make(recorder, reply);
	r = answer_probe_list(recorder, answer->arena, &reply->probes);
	if (!r)
		r = answer_losses(answer->arena, drain.lost, &reply->lost);
	if (!r)
		r = health_problems(recorder, answer->arena, &drain, &reply->problems);
	if (!r)
		r = limits_make(recorder, answer, &drain);
	if (r)
		return r;
	reply->healthy = reply->problems.n == 0;
	*out = TAKE(answer);
	return 0;
}

int query_probes(struct recorder *recorder, struct answer **out)
{
	_cleanup_(answer_freep) struct answer *answer = answer_new();
	int r;

	if (!answer)
		return -ENOMEM;
	r = answer_probe_list(recorder, answer->arena, &answer->probes.probes);
	if (r)
		return r;
	*out = TAKE(answer);
	return 0;
}

int query_sessions(struct recorder *recorder, struct answer **out)
{
	_cleanup_(answer_freep) struct answer *answer = answer_new();
	struct wire_session *session;

	if (!answer)
		return -ENOMEM;
	session = arena_alloc(answer->arena, sizeof(*session));
	if (!session)
		return -ENOMEM;
	*session = (struct wire_session){ "offcpu", "offcpu", "stackd", recorder->started_real_ns,
					  true };
	answer->sessions.sessions.v = session;
	answer->sessions.sessions.n = probe_is_on(recorder->probe) ? 1 : 0;
	*out = TAKE(answer);
	return 0;
}
