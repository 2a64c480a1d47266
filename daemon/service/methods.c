/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/service/internal.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "build_config.h"
#include "common/base.h"

static int handle_get_info(struct exchange *exchange, struct text *out)
{
	static const char *const interfaces[] = { "org.varlink.service", "io.stackd" };
	const struct wire_info_reply reply = {
		.vendor = "stackd",
		.product = "stackd",
		.version = STACKD_VERSION,
		.url = "man:stackd(8)",
		.interfaces = { interfaces, ARRAY_SIZE(interfaces) },
	};

	return info_reply_encode(&reply, 0, out);
}

static int handle_get_description(struct exchange *exchange, struct text *out)
{
	struct wire_description_request request;
	struct wire_description_reply reply;
	struct codec_error error;
	int r;

	r = description_request_decode(exchange->call, exchange->arena, &request, &error);
	if (r == -EINVAL)
		return reply_error(ERROR_INVALID_PARAMETER, error.parameter, out);
	if (r < 0)
		return r;
	if (strcmp(request.interface, "io.stackd") == 0)
		reply.description = interface_io_stackd;
	else if (strcmp(request.interface, "org.varlink.service") == 0)
		reply.description = interface_org_varlink_service;
	else
		return reply_error(ERROR_INTERFACE_NOT_FOUND, request.interface, out);
	return description_reply_encode(&reply, 0, out);
}

/* The recorder's limits and, behind them, those of the socket. */
static int limits_join(struct exchange *exchange, struct wire_limits *limits)
{
	const struct wire_limits before = *limits;
	struct rlimit files = { 0 };
	struct server_stats stats;
	struct wire_limit *joined;

	if (!exchange->service->server)
		return 0;
	server_stats_get(exchange->service->server, &stats);
	getrlimit(RLIMIT_NOFILE, &files);
	const struct server_options *options = &stats.options;
	const struct wire_limit ours[] = {
		{ "control.max_clients", (int64_t)options->max_clients, stats.clients,
		  stats.clients_hits },
		{ "control.max_message", (int64_t)options->max_message, 0, stats.message_hits },
		{ "control.idle_timeout", options->idle_timeout_ns, 0, stats.idle_timeout_hits },
		{ "descriptors", (int64_t)files.rlim_cur, 0, stats.accept_failures },
		{ "request_depth", VARLINK_MAX_DEPTH, 0, stats.shape_hits },
		{ "request_time_ns", options->message_timeout_ns, 0, stats.message_timeout_hits },
		{ "reply_bytes_waiting", (int64_t)options->max_output, stats.output,
		  stats.output_hits },
		{ "reply_time_ns", options->write_timeout_ns, 0, stats.write_timeout_hits },
	};

	joined = arena_array(exchange->arena, before.n + ARRAY_SIZE(ours), sizeof(*joined));
	if (!joined)
		return -ENOMEM;
	if (before.n > 0)
		memcpy(joined, before.v, before.n * sizeof(*joined));
	memcpy(joined + before.n, ours, sizeof(ours));
	*limits = (struct wire_limits){ joined, before.n + ARRAY_SIZE(ours) };
	return 0;
}

static int handle_status(struct exchange *exchange, struct text *out)
{
	_cleanup_(answer_freep) struct answer *answer = NULL;
	struct wire_status_reply reply;
	int r;

	r = query_status(exchange->service->recorder, &answer);
	if (r < 0)
		return r;
	reply = *answer_status(answer);
	r = limits_join(exchange, &reply.limits);
	if (r < 0)
		return r;
	return status_reply_encode(&reply, 0, out);
}

static int handle_probes(struct exchange *exchange, struct text *out)
{
	_cleanup_(answer_freep) struct answer *answer = NULL;
	int r = query_probes(exchange->service->recorder, &answer);

	return r < 0 ? r : probes_reply_encode(answer_probes(answer), 0, out);
}

static int handle_sessions(struct exchange *exchange, struct text *out)
{
	_cleanup_(answer_freep) struct answer *answer = NULL;
	int r = query_sessions(exchange->service->recorder, &answer);

	return r < 0 ? r : sessions_reply_encode(answer_sessions(answer), 0, out);
}

const struct method *method_find(const char *name)
{
	static const struct method methods[] = {
		{ &method_info, handle_get_info, METHOD_OPEN, false },
		{ &method_description, handle_get_description, METHOD_OPEN, false },
		{ &method_status, handle_status, METHOD_QUERY, false },
		{ &method_probes, handle_probes, METHOD_QUERY, false },
		{ &method_sessions, handle_sessions, METHOD_QUERY, false },
		{ &method_windows, handle_windows, METHOD_QUERY, false },
		{ &method_start, handle_start, METHOD_CONTROL, true },
		{ &method_stop, handle_stop, METHOD_CONTROL, true },
		{ &method_functions, handle_functions, METHOD_CONTROL, true },
		{ &method_follow, handle_follow, METHOD_QUERY, false },
		{ &method_snapshot, handle_snapshot, METHOD_QUERY, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
		if (strcmp(methods[i].wire->name, name) == 0)
			return &methods[i];
	return NULL;
}
