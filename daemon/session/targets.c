/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/session/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bpf/shared.h"
#include "common/base.h"
#include "daemon/probe/multi_attach.h"
#include "daemon/probe/tracepoints.h"
#include "daemon/session/filter.h"

/* Sets *error: the function is not allowed; or, if r says so, cannot be looked for at present. */
static int refused(struct wire_error *error, int r, const char *text)
{
	if (target_error_is_passing(r))
		return wire_error_set(error, r, ERROR_FAILED, NULL, "%s", text);
	return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, "function", "%s", text);
}

int targets_search(const struct targets_options *options, const char *text, struct targets *out,
		   struct wire_error *error)
{
	struct target_pattern pattern;
	char why[512] = "";
	int r = target_parse(text, options->is_regex, &pattern, why, sizeof(why));

	if (r)
		return r == -ENOMEM ? r : refused(error, r, why);
	pattern.is_restricted = options->is_restricted;
	pattern.reads_remote = options->config->symbols_remote;
	pattern.parser = options->parser;
	switch (pattern.kind) {
	case TARGET_FUNCTION:
		r = target_find_functions(&pattern, out, why, sizeof(why));
		break;
	case TARGET_TRACEPOINT:
		r = tracepoints_find(&pattern, out, why, sizeof(why));
		break;
	case TARGET_USER:
	case TARGET_USDT:
		r = target_find_user(&pattern, options->tasks, out, why, sizeof(why));
		break;
	}
	if (!r && pattern.regex && regex_is_costly(pattern.regex)) {
		targets_fini(out);
		snprintf(why, sizeof(why),
			 "the regular expression %.200s takes too long to match; name more of the "
			 "function, or use fewer repetitions",
			 pattern.name);
		r = -EINVAL;
	}
	target_pattern_fini(&pattern);
	return r && why[0] ? refused(error, r, why) : r;
}

/* Sets *error to say that the pattern matches nothing, in the words of bcc's stackcount or
 * stacksnoop. */
static int none_found(const struct targets *targets, const char *text, enum probe_kind kind,
		      struct wire_error *error)
{
	bool is_snoop = probe_kind_has(kind, PROBE_STREAMS);
	char hint[256] = "";

	/* A pattern without a colon is a function of the kernel. */
	if (!strchr(text, ':'))
		snprintf(hint, sizeof(hint), "; of a library, such as libc, it is u:c:%.200s",
			 text);
	return wire_error_set(
		error, -EINVAL, ERROR_INVALID_FILTER, "function",
		"%s \"%.200s\"%s%s%.200s%s; stackctl probes --functions PATTERN lists them",
		is_snoop ? "Function" : "0 functions matched by", text,
		is_snoop ? " not found" : "", targets->path || hint[0] ? " in " : "",
		targets->path ? targets->path
		: hint[0]     ? "the kernel"
			      : "",
		hint);
}

/* Sets *error to say that all that matches is chosen at run time, and what can be traced instead.
 */
static int only_chosen(const struct targets *targets, const char *text, struct wire_error *error)
{
	const uint64_t address = targets_chosen_address(targets);
	char instead[400] = "its implementations have names and addresses of their own";

	if (address)
		snprintf(instead, sizeof(instead),
			 "on this host that is u:%.300s:0x%" PRIx64
			 ", which other functions may share",
			 targets->path, address);
	return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, "function",
			      "0 functions matched by \"%.200s\": %.100s is chosen at run time "
			      "(IFUNC) from several implementations; %s",
			      text, targets->chosen, instead);
}

static int targets_limit(const struct targets *targets, const char *text, enum probe_kind kind,
			 const struct config *config, struct wire_error *error)
{
	bool has_programs = targets->kind == TARGET_TRACEPOINT;
	uint64_t max = has_programs ? TRACEPOINTS_MAX : config->stackcount_max_functions;

	if (!targets->n && targets->chosen)
		return only_chosen(targets, text, error);
	if (!targets->n && targets->forbidden)
		return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, "function",
				      "0 functions matched by \"%.200s\": the kernel lets none of "
				      "the %zu of that name be traced",
				      text, targets->forbidden);
	if (!targets->n)
		return none_found(targets, text, kind, error);
	if (targets->n > max)
		return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, "function",
				      "%zu %s matched by \"%.200s\": more than %" PRIu64 "%s",
				      targets->n, has_programs ? "tracepoints" : "functions", text,
				      max,
				      has_programs ? " at a time"
						   : ", which is [probe.stackcount] max_functions");
	return 0;
}

/* Copies the ids of the processes and threads that the filter names into one array, which the
 * caller frees. */
static int tasks_of(const struct wire_filter *filter, int64_t **ids_out, size_t *n_out)
{
	size_t pids = filter ? filter->pids.n : 0, tids = filter ? filter->tids.n : 0;
	int64_t *ids = calloc(pids + tids + 1, sizeof(*ids));

	if (!ids)
		return -ENOMEM;
	if (pids)
		memcpy(ids, filter->pids.v, pids * sizeof(*ids));
	if (tids)
		memcpy(ids + pids, filter->tids.v, tids * sizeof(*ids));
	*ids_out = ids;
	*n_out = pids + tids;
	return 0;
}

static int function_find(struct session *session, const struct session_request *request,
			 const struct sessions_options *options, struct wire_error *error)
{
	_cleanup_(freep) int64_t *ids = NULL;
	struct target_tasks tasks = {};
	const struct targets_options search = {
		.config = options->config,
		.parser = options->parser,
		.is_regex = request->is_regex,
		.is_restricted = request->uid != 0,
		.tasks = &tasks,
	};
	int r = tasks_of(request->filter, &ids, &tasks.n);

	tasks.ids = ids;
	return r ? r : targets_search(&search, request->function, &session->targets, error);
}

/*
 * Refuses probes in programs while a process is known whose memory map is locked. The kernel takes
 * the map of each process that has the file, one after the other, and lets no process of the host
 * fork until it is done (register_for_each_vma(), dup_mmap_sem in kernel/events/uprobes.c).
 */
static int check_maps(const struct session *session, const struct sessions_options *options,
		      struct wire_error *error)
{
	struct process_stats stats;

	if (session->targets.kind != TARGET_USER && session->targets.kind != TARGET_USDT)
		return 0;
	process_table_stats(options->processes, &stats);
	if (!stats.hanging)
		return 0;
	return wire_error_set(error, -EAGAIN, ERROR_ATTACH_FAILED, "function",
			      "the memory map of process %" PRId32
			      " seems to be locked: until it is free again, a probe in a program "
			      "would keep every process of this host from forking",
			      stats.last_hanging);
}

int session_targets(struct session *session, const struct session_request *request,
		    const struct sessions_options *options, struct wire_error *error)
{
	const char *name = probe_kind_name(session->info.kind);
	char kinds[64];
	int r;

	if (!probe_kind_has(session->info.kind, PROBE_FUNCTIONS)) {
		if (!request->function && !request->is_regex && !request->rate)
			return 0;
		probe_kinds_with(PROBE_FUNCTIONS, " and ", kinds, sizeof(kinds));
		return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, "function",
				      "%s traces no functions: %s do", name, kinds);
	}
	if (!request->function)
		return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, "function",
				      "%s needs a function, as in: stackctl record %s %s", name,
				      name, multi_attach_example());
	if (request->rate && !probe_kind_has(session->info.kind, PROBE_STREAMS))
		return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, "rate",
				      "%s streams nothing: only stacksnoop does", name);
	r = function_find(session, request, options, error);
	if (r)
		return r;
	r = targets_limit(&session->targets, request->function, session->info.kind, options->config,
			  error);
	return r ? r : check_maps(session, options, error);
}
