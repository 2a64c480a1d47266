/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/service/internal.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "build_config.h"
#include "common/base.h"

enum { STREAMS_LIMITS = 2 };

static int info_reply(struct exchange *exchange, struct text *out)
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

static int description_reply(struct exchange *exchange, struct text *out)
{
	const struct wire_description_request *request = exchange->request;
	struct wire_description_reply reply;

	if (strcmp(request->interface, "io.stackd") == 0)
		reply.description = interface_io_stackd;
	else if (strcmp(request->interface, "org.varlink.service") == 0)
		reply.description = interface_org_varlink_service;
	else
		return reply_error(ERROR_INTERFACE_NOT_FOUND, request->interface, out);
	return description_reply_encode(&reply, 0, out);
}

/* Sets limits[STREAMS_LIMITS] to the limits of long answers. */
static void streams_limits(struct streams *streams, struct wire_limit *limits)
{
	pthread_mutex_lock(&streams->lock);
	limits[0] = (struct wire_limit){ "query.max_streams", (int64_t)streams->max,
					 (int64_t)streams->n_held, (int64_t)streams->waited };
	limits[1] =
		(struct wire_limit){ "slow_reader_ns", streams->slow_ns, 0, (int64_t)streams->cut };
	pthread_mutex_unlock(&streams->lock);
}

/* Adds the limits of the socket to `limits`, which already has the limits of the recorder. */
static int limits_join(struct exchange *exchange, struct wire_limits *limits)
{
	const struct wire_limits before = *limits;
	struct rlimit files = { 0 };
	struct server_stats stats;
	struct wire_limit *joined;
	size_t n;

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
		{ "answer_time_ns", exchange->service->answer_time_ns, 0,
		  atomic_load(&exchange->service->answer_time_hits) },
	};

	n = before.n + ARRAY_SIZE(ours) + STREAMS_LIMITS;
	joined = arena_array(exchange->arena, n, sizeof(*joined));
	if (!joined)
		return -ENOMEM;
	if (before.n > 0)
		memcpy(joined, before.v, before.n * sizeof(*joined));
	memcpy(joined + before.n, ours, sizeof(ours));
	streams_limits(&exchange->service->streams, joined + n - STREAMS_LIMITS);
	*limits = (struct wire_limits){ joined, n };
	return 0;
}

static int status_reply(struct exchange *exchange, struct text *out)
{
	struct wire_status_reply reply = answer_reply(exchange->answer)->status;
	int r = limits_join(exchange, &reply.limits);

	return r < 0 ? r : status_reply_encode(&reply, 0, out);
}

/*
 * Finds a method in the table of all methods. A new method needs a definition in
 * proto/io.stackd.varlink, a function query_NAME() in daemon/query/, and a row in this table. The
 * methods Functions and Start require METHOD_CONTROL because they read files that only stackd may
 * read.
 */
const struct method *method_find(const char *name)
{
	static const struct method methods[] = {
		{ &method_info, METHOD_OPEN, .reply = info_reply },
		{ &method_description, METHOD_OPEN, .reply = description_reply },
		{ &method_status, METHOD_QUERY, .query = query_status, .reply = status_reply },
		{ &method_probes, METHOD_QUERY, .query = query_probes },
		{ &method_sessions, METHOD_QUERY, .query = query_sessions },
		{ &method_windows, METHOD_QUERY, .query = query_windows, .reply = windows_reply },
		{ &method_snapshot, METHOD_QUERY, .is_long = snapshot_is_long,
		  .query = snapshot_query, .reply = snapshot_reply },
		{ &method_overview, METHOD_QUERY, .needs_more = true, .is_long = overview_is_long,
		  .query = query_overview, .reply = overview_reply },
		{ &method_follow, METHOD_QUERY, .needs_more = true, .reply = follow_reply },
		{ &method_functions, METHOD_CONTROL, .is_slow = true, .query = query_functions },
		{ &method_start, METHOD_CONTROL, .is_slow = true, .query = query_start,
		  .reply = start_reply },
		{ &method_stop, METHOD_CONTROL, .is_slow = true, .query = query_stop },
	};

	for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
		if (strcmp(methods[i].wire->name, name) == 0)
			return &methods[i];
	return NULL;
}
