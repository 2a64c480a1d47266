/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/session_state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bpf/shared.h"
#include "daemon/filter.h"
#include "daemon/probe_tracepoints.h"
#include "proto/base.h"

static int invalid(struct wire_error *error, const char *text)
{
	return wire_error_set(error, -EINVAL, "io.stackd.InvalidFilter", "function", "%s", text);
}

int targets_search(const char *text, bool is_regex, struct targets *out, struct wire_error *error)
{
	struct target_pattern pattern;
	char why[512] = "";
	int r = target_parse(text, is_regex, &pattern, why, sizeof(why));

	if (r)
		return r == -ENOMEM ? r : invalid(error, why);
	switch (pattern.kind) {
	case TARGET_FUNCTION:
		r = target_find_functions(&pattern, out, why, sizeof(why));
		break;
	case TARGET_TRACEPOINT:
		r = probe_find_tracepoints(&pattern, out, why, sizeof(why));
		break;
	case TARGET_USER:
	case TARGET_USDT:
		r = target_find_user(&pattern, out, why, sizeof(why));
		break;
	}
	target_pattern_fini(&pattern);
	return r && why[0] ? invalid(error, why) : r;
}

static int targets_limit(const struct targets *targets, const char *text,
			 const struct config *config, struct wire_error *error)
{
	bool has_programs = targets->kind == TARGET_TRACEPOINT;
	uint64_t max = has_programs ? TRACEPOINTS_MAX : config->stackcount_max_functions;

	if (!targets->n && targets->forbidden)
		return wire_error_set(error, -EINVAL, "io.stackd.InvalidFilter", "function",
				      "0 functions matched by \"%.200s\": the kernel lets none of "
				      "the %zu of that name be traced",
				      text, targets->forbidden);
	if (!targets->n)
		return wire_error_set(
			error, -EINVAL, "io.stackd.InvalidFilter", "function",
			"0 functions matched by \"%.200s\"; stackctl probes --functions "
			"PATTERN lists them",
			text);
	if (targets->n > max)
		return wire_error_set(error, -EINVAL, "io.stackd.InvalidFilter", "function",
				      "%zu %s matched by \"%.200s\": more than %" PRIu64 "%s",
				      targets->n, has_programs ? "tracepoints" : "functions", text,
				      max,
				      has_programs ? " at a time"
						   : ", which is [probe.stackcount] max_functions");
	return 0;
}

int session_targets(struct session *session, const struct session_request *request,
		    const struct config *config, struct wire_error *error)
{
	const char *name = probe_kind_name(session->info.kind);
	int r;

	if (!probe_kind_has_calls(session->info.kind)) {
		if (!request->function && !request->is_regex && !request->rate)
			return 0;
		return wire_error_set(error, -EINVAL, "io.stackd.InvalidFilter", "function",
				      "%s traces no functions: stackcount and stacksnoop do", name);
	}
	if (!request->function)
		return wire_error_set(error, -EINVAL, "io.stackd.InvalidFilter", "function",
				      "%s needs a function, as in: stackctl record %s vfs_read",
				      name, name);
	if (request->rate && session->info.kind != PROBE_STACKSNOOP)
		return wire_error_set(error, -EINVAL, "io.stackd.InvalidFilter", "rate",
				      "%s streams nothing: only stacksnoop does", name);
	r = targets_search(request->function, request->is_regex, &session->targets, error);
	return r ? r : targets_limit(&session->targets, request->function, config, error);
}
