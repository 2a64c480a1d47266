/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/service/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>

#include "build_config.h"
#include "common/base.h"

enum { PLACE_LIMITS = 5 };

/* Queries that were refused longer ago than this are no problem of the daemon any more. */
#define REFUSED_RECENT_NS (600 * NS_PER_S)

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

/*
 * Sets limits[PLACE_LIMITS] to the limits of answers that are being made and sent. The hits of
 * query.max_wait are calls that were refused, those of slow_reader_ns clients that were cut off,
 * and the others calls that had to wait.
 */
static void place_limits(struct admission *admission, struct wire_limit *limits)
{
	const struct admission_limits *max = &admission->limits;
	const uint64_t *waited = admission->waited;

	pthread_mutex_lock(&admission->lock);
	limits[0] = (struct wire_limit){ "query.max_answers",
					 (int64_t)max->max_bytes,
					 (int64_t)(admission->n_held * max->answer_bytes),
					 (int64_t)waited[PLACE_NO_BYTES],
					 "bytes",
					 "further calls waited" };
	limits[1] = (struct wire_limit){ "query.max_streams",
					 (int64_t)max->max_long,
					 (int64_t)admission->n_long,
					 (int64_t)waited[PLACE_NO_LONG],
					 NULL,
					 "further calls for long answers waited" };
	limits[2] = (struct wire_limit){ "query.max_per_user",
					 (int64_t)max->max_per_user,
					 0,
					 (int64_t)waited[PLACE_NO_SHARE],
					 NULL,
					 "further calls of a user waited" };
	limits[3] = (struct wire_limit){ "query.max_wait",
					 max->max_wait_ns,
					 0,
					 (int64_t)admission->refused,
					 "ns",
					 "calls that waited longer were refused" };
	limits[4] = (struct wire_limit){ "slow_reader_ns",
					 admission->slow_ns,
					 0,
					 (int64_t)admission->cut,
					 "ns",
					 "clients that read too slowly while others waited were "
					 "disconnected" };
	pthread_mutex_unlock(&admission->lock);
}

/* Says whose clients had to go because of control.max_clients. */
static const char *clients_effect(struct arena *arena, const struct server_stats *stats)
{
	static const char effect[] =
		"clients of the user who had most of them were disconnected or refused";

	if (stats->clients_hits == 0)
		return effect;
	return arena_printf(arena, "%s, the last one of uid %" PRId64, effect, stats->dropped_uid);
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
		  stats.clients_hits, NULL, clients_effect(exchange->arena, &stats) },
		{ "control.max_message", (int64_t)options->max_message, 0, stats.message_hits,
		  "bytes", "clients that sent larger requests were disconnected" },
		{ "control.idle_timeout", options->idle_timeout_ns, 0, stats.idle_timeout_hits,
		  "ns", "clients that asked nothing for longer were disconnected" },
		{ "descriptors", (int64_t)files.rlim_cur, 0, stats.accept_failures, NULL,
		  "further clients could not connect; raise LimitNOFILE= of the unit" },
		{ "request_depth", VARLINK_MAX_DEPTH, 0, stats.shape_hits, NULL,
		  "clients whose requests had more levels or values were disconnected" },
		{ "request_time_ns", options->message_timeout_ns, 0, stats.message_timeout_hits,
		  "ns", "clients that took longer to send a request were disconnected" },
		{ "reply_bytes_waiting", (int64_t)options->max_output, stats.output,
		  stats.output_hits, "bytes", "clients that read too slowly were disconnected" },
		{ "reply_time_ns", options->write_timeout_ns, 0, stats.write_timeout_hits, "ns",
		  "clients that read nothing for longer were disconnected" },
		{ "answer_time_ns", exchange->service->answer_time_ns, 0,
		  atomic_load(&exchange->service->answer_time_hits), "ns",
		  "answers that clients read too slowly were cut off" },
	};

	n = before.n + ARRAY_SIZE(ours) + PLACE_LIMITS;
	joined = arena_array(exchange->arena, n, sizeof(*joined));
	if (!joined)
		return -ENOMEM;
	if (before.n > 0)
		memcpy(joined, before.v, before.n * sizeof(*joined));
	memcpy(joined + before.n, ours, sizeof(ours));
	place_limits(&exchange->service->admission, joined + n - PLACE_LIMITS);
	*limits = (struct wire_limits){ joined, n };
	return 0;
}

/*
 * Adds a problem to those that the recorder found, if calls were refused lately although their
 * users had room for more answers. Returns 0 or -ENOMEM.
 */
static int problems_join(struct exchange *exchange, struct wire_status_reply *reply)
{
	struct admission *admission = &exchange->service->admission;
	const struct wire_strs before = reply->problems;
	const char **problems = arena_array(exchange->arena, before.n + 1, sizeof(*problems));
	int64_t since = clock_ns(CLOCK_MONOTONIC) - REFUSED_RECENT_NS;
	bool is_recent;

	if (!problems)
		return -ENOMEM;
	if (before.n)
		memcpy(problems, before.v, before.n * sizeof(*problems));
	pthread_mutex_lock(&admission->lock);
	is_recent = admission->starved && admission->starved_ns >= since;
	if (is_recent)
		problems[before.n] = arena_printf(
			exchange->arena,
			"%" PRIu64 " quer%s refused because others took too long, the last in the "
			"last 10 minutes: see %s",
			admission->starved, admission->starved == 1 ? "y was" : "ies were",
			admission->starved_by);
	pthread_mutex_unlock(&admission->lock);
	if (!is_recent)
		return 0;
	if (!problems[before.n])
		return -ENOMEM;
	reply->problems = (struct wire_strs){ .v = problems, .n = before.n + 1 };
	reply->healthy = false;
	return 0;
}

static int status_reply(struct exchange *exchange, struct text *out)
{
	struct wire_status_reply reply = answer_reply(exchange->answer)->status;
	int r = limits_join(exchange, &reply.limits);

	if (r == 0)
		r = problems_join(exchange, &reply);
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
		{ &method_metrics, METHOD_QUERY, .query = query_metrics },
		{ &method_settled, METHOD_QUERY, .is_slow = true, .query = query_settled },
		{ &method_windows, METHOD_QUERY, .has_place = true, .query = query_windows,
		  .reply = windows_reply },
		{ &method_snapshot, METHOD_QUERY, .has_place = true, .is_long = snapshot_is_long,
		  .query = snapshot_query, .reply = snapshot_reply },
		{ &method_overview, METHOD_QUERY, .needs_more = true, .has_place = true,
		  .is_long = overview_is_long, .query = query_overview, .reply = overview_reply },
		/* follow_reply() takes a place for each answer. */
		{ &method_follow, METHOD_QUERY, .needs_more = true, .is_long = follow_is_long,
		  .reply = follow_reply },
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
