/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "build_config.h"
#include "common/base.h"
#include "daemon/base/log.h"
#include "fleet/base/config.h"
#include "fleet/serve/answer.h"
#include "fleet/serve/gateway.h"
#include "proto/codec.h"

/* REPLY_BYTES: rows are added to one of several replies until they have these bytes. */
enum { REPLY_BYTES = 64 * 1024, WINDOWS_BYTES = 256 * 1024 };

/* A call waits this long for a place among the answers. */
#define PLACE_WAIT_NS (30 * NS_PER_S)

struct exchange;

/* One row of the table of methods. */
struct method {
	const struct wire_method *wire;
	bool is_open;	/* everybody who can connect may call it */
	bool has_place; /* it counts among GATEWAY_ANSWERS_MAX */
	/* Appends the next reply. Returns as server_handler.step does. NULL: it is not supported.
	 */
	int (*reply)(struct exchange *exchange, struct text *out);
};

/* A call and its replies. */
struct exchange {
	struct gateway *gateway;
	struct server_peer *peer;
	struct varlink_message *call;
	const struct method *method; /* NULL: there is none of this name */
	struct arena *arena;
	void *request;
	struct shards *shards; /* of all answers of the call; NULL: not made yet */
	struct fleet_answer *answer;
	size_t next;  /* number of the next row or window to send */
	size_t range; /* number of the range or of the slice that the answer is about */
	struct fleet_slices slices; /* of the answer to a Snapshot with each_ns */
	enum probe_kind kind;	    /* the probe of an overview that the answer is about */
	struct wire_range used;	    /* the time of an overview */
	bool has_place;
	int64_t waits_since; /* CLOCK_MONOTONIC; 0: it has not waited for a place */
};

static int reply_error(enum wire_error_code code, const char *what, const char *message,
		       struct text *out)
{
	const struct wire_error error = { .code = code, .what = what, .message = message };

	text_reset(out);
	return varlink_error_encode(&error, out);
}

static int info_reply(struct exchange *exchange, struct text *out)
{
	static const char *const interfaces[] = { "org.varlink.service", "io.stackd" };
	const struct wire_info_reply reply = {
		.vendor = "stackd",
		.product = "stackd-fleet",
		.version = STACKD_VERSION,
		.url = "man:stackd-fleet(1)",
		.interfaces = { (const char **)interfaces, ARRAY_SIZE(interfaces) },
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
		return reply_error(ERROR_INTERFACE_NOT_FOUND, request->interface, NULL, out);
	return description_reply_encode(&reply, 0, out);
}

/* Makes a new answer by `make`. Appends an error if the request is at fault. */
static int answer_begin(struct exchange *exchange, struct text *out,
			int (*make)(struct exchange *exchange, struct wire_error *error))
{
	struct wire_error error = { .limit = WIRE_ABSENT };
	struct gateway *gateway = exchange->gateway;
	int r = exchange->shards ? 0 : shards_new(gateway->config, &exchange->shards);

	if (r)
		return r;
	exchange->answer = fleet_answer_free(exchange->answer);
	exchange->answer = fleet_answer_new(gateway->config, exchange->shards, &gateway->limits);
	r = exchange->answer ? make(exchange, &error) : -ENOMEM;
	if (!r || !error.code)
		return r;
	exchange->answer = fleet_answer_free(exchange->answer);
	text_reset(out);
	r = varlink_error_encode(&error, out);
	wire_error_clear(&error);
	return r;
}

static int make_status(struct exchange *exchange, struct wire_error *error)
{
	return fleet_status(exchange->answer, exchange->gateway->started, error);
}

static int status_reply(struct exchange *exchange, struct text *out)
{
	int r = answer_begin(exchange, out, make_status);

	if (r || !exchange->answer)
		return r;
	return status_reply_encode(&exchange->answer->reply.status, 0, out);
}

static int make_windows(struct exchange *exchange, struct wire_error *error)
{
	return fleet_windows(exchange->answer, exchange->request, error);
}

static int windows_reply(struct exchange *exchange, struct text *out)
{
	const struct wire_windows_reply *reply;
	int r = exchange->answer ? 0 : answer_begin(exchange, out, make_windows);

	if (r || !exchange->answer)
		return r;
	reply = &exchange->answer->reply.windows;
	if (!exchange->call->more) {
		r = windows_reply_encode(reply, 0, out);
		return r == -EMSGSIZE ? reply_error(ERROR_EXPECTED_MORE, NULL, NULL, out) : r;
	}
	r = windows_reply_encode_part(reply, &exchange->next, WINDOWS_BYTES, out);
	return r ? r : exchange->next < reply->windows.n ? SERVER_MORE : 0;
}

static int make_snapshot(struct exchange *exchange, struct wire_error *error)
{
	const struct fleet_slices *slices = &exchange->slices;
	const struct fleet_question question = {
		.request = exchange->request,
		.range = slices->n ? 0 : exchange->range,
		.slice = slices->n ? &slices->v[exchange->range] : NULL,
		.table = slices->table,
	};

	return fleet_snapshot(exchange->answer, &question, error);
}

static int make_slices(struct exchange *exchange, struct wire_error *error)
{
	return fleet_slices(exchange->answer, exchange->request, &exchange->slices, error);
}

static int make_overview(struct exchange *exchange, struct wire_error *error)
{
	int r = fleet_overview(exchange->answer, exchange->request, exchange->kind, exchange->used,
			       error);

	if (r)
		return r;
	if (exchange->kind == PROBE_OFFCPU)
		exchange->used = exchange->answer->reply.snapshot.coverage.used;
	return 0;
}

/* Adds the next rows, up to `size` bytes of them. */
static int rows_add(struct exchange *exchange, size_t size, struct text *out)
{
	const struct wire_rows *rows = &exchange->answer->reply.snapshot.rows;
	size_t first = exchange->next, start = out->len;
	int r = 0;

	while (exchange->next < rows->n && out->len - start < size) {
		struct wire_row row = rows->v[exchange->next];

		r = snapshot_part_add(&row, out);
		if (r == -EMSGSIZE && exchange->next == first) {
			/* No host of good will sends such a stack. */
			row.kernel = row.user = NULL;
			r = snapshot_part_add(&row, out);
		}
		if (r)
			break;
		exchange->next++;
	}
	return r == -EMSGSIZE && exchange->next > first ? 0 : r;
}

/*
 * Appends the next reply of an answer with its rows. `has_more`: another answer follows it. Returns
 * SERVER_MORE, 0 after the last reply of the last answer, or a negative errno.
 */
static int reply_rows(struct exchange *exchange, bool has_more, struct text *out)
{
	const struct wire_snapshot_reply *reply = &exchange->answer->reply.snapshot;
	bool is_last;
	int r = snapshot_part_begin(reply, out);

	if (!r)
		r = rows_add(exchange, exchange->call->more ? REPLY_BYTES : SIZE_MAX, out);
	if (r && r != -EMSGSIZE)
		return r;
	is_last = !r && exchange->next == reply->rows.n;
	if (!exchange->call->more && !is_last)
		return reply_error(ERROR_EXPECTED_MORE, NULL, NULL, out);
	if (r)
		return r;
	r = snapshot_part_end(!is_last || has_more, out);
	if (r || !is_last)
		return r ? r : SERVER_MORE;
	exchange->next = 0;
	exchange->answer = fleet_answer_free(exchange->answer);
	return has_more ? SERVER_MORE : 0;
}

static int snapshot_reply(struct exchange *exchange, struct text *out)
{
	const struct wire_snapshot_request *request = exchange->request;
	bool has_slices = request->each_ns != WIRE_ABSENT;
	size_t n;
	int r = 0;

	if (!exchange->call->more && (has_slices || request->ranges.n || request->stacks_once == 1))
		return reply_error(ERROR_EXPECTED_MORE, NULL, NULL, out);
	if (has_slices && !exchange->slices.n) {
		r = answer_begin(exchange, out, make_slices);
		if (r || !exchange->answer)
			return r;
		exchange->answer = fleet_answer_free(exchange->answer);
	}
	if (!exchange->answer) {
		/* Each range or slice is an answer by itself. */
		if (exchange->shards)
			shards_renew(exchange->shards);
		r = answer_begin(exchange, out, make_snapshot);
	}
	if (r || !exchange->answer)
		return r;
	n = exchange->slices.n ? exchange->slices.n : request->ranges.n;
	r = reply_rows(exchange, exchange->range + 1 < n, out);
	if (!exchange->answer)
		exchange->range++;
	return r;
}

static int overview_reply(struct exchange *exchange, struct text *out)
{
	const struct wire_overview_request *request = exchange->request;
	enum probe_kind last = request->io == 1 ? PROBE_IOLAT : PROBE_ONCPU;
	int r = 0;

	if (!exchange->call->more)
		return reply_error(ERROR_EXPECTED_MORE, NULL, NULL, out);
	if (!exchange->answer)
		r = answer_begin(exchange, out, make_overview);
	if (r || !exchange->answer)
		return r;
	r = reply_rows(exchange, exchange->kind != last, out);
	if (!exchange->answer)
		exchange->kind = exchange->kind == PROBE_OFFCPU ? PROBE_ONCPU : PROBE_IOLAT;
	return r;
}

static const struct method *method_find(const char *name)
{
	static const struct method methods[] = {
		{ .wire = &method_info, .is_open = true, .reply = info_reply },
		{ .wire = &method_description, .is_open = true, .reply = description_reply },
		{ .wire = &method_status, .has_place = true, .reply = status_reply },
		{ .wire = &method_windows, .has_place = true, .reply = windows_reply },
		{ .wire = &method_snapshot, .has_place = true, .reply = snapshot_reply },
		{ .wire = &method_overview, .has_place = true, .reply = overview_reply },
		{ .wire = &method_probes },
		{ .wire = &method_sessions },
		{ .wire = &method_metrics },
		{ .wire = &method_settled },
		{ .wire = &method_follow },
		{ .wire = &method_functions },
		{ .wire = &method_start },
		{ .wire = &method_stop },
	};

	for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
		if (strcmp(methods[i].wire->name, name) == 0)
			return &methods[i];
	return NULL;
}

/* Appends the error for a method that is not answered, with what to do instead. */
static int reply_unsupported(const struct exchange *exchange, struct text *out)
{
	return reply_error(
		ERROR_NOT_SUPPORTED, exchange->method->wire->name,
		"the gateway of a fleet has windows that were sent to it; ask the host itself",
		out);
}

static int reply_unknown(const struct exchange *exchange, struct text *out)
{
	return reply_error(ERROR_METHOD_NOT_FOUND, exchange->call->method, NULL, out);
}

static bool may_call(const struct exchange *exchange)
{
	const struct server_peer *peer = exchange->peer;
	const struct gateway *gateway = exchange->gateway;

	return exchange->method->is_open || peer->uid == 0 || peer->uid == geteuid() ||
	       (gateway->has_group && server_peer_in_group(peer, gateway->group));
}

/* Takes a place among the answers. Returns 0, SERVER_WAIT, or -EBUSY after a long time. */
static int place_take(struct exchange *exchange)
{
	struct gateway *gateway = exchange->gateway;
	int64_t now = clock_ns(CLOCK_MONOTONIC);

	if (exchange->has_place)
		return 0;
	if (atomic_fetch_add(&gateway->limits.answers, 1) < GATEWAY_ANSWERS_MAX) {
		exchange->has_place = true;
		return 0;
	}
	atomic_fetch_sub(&gateway->limits.answers, 1);
	if (!exchange->waits_since)
		exchange->waits_since = now;
	if (now - exchange->waits_since < PLACE_WAIT_NS)
		return SERVER_WAIT;
	atomic_fetch_add(&gateway->limits.hits[FLEET_ANSWERS], 1);
	return -EBUSY;
}

static int exchange_reply(struct exchange *exchange, struct text *out)
{
	const struct method *method = exchange->method;
	struct codec_error error;
	int r;

	if (!method)
		return reply_unknown(exchange, out);
	if (!may_call(exchange))
		return reply_error(ERROR_PERMISSION_DENIED,
				   exchange->gateway->has_group ? exchange->gateway->config->group
								: "root",
				   NULL, out);
	if (!method->reply)
		return reply_unsupported(exchange, out);
	if (method->wire->request && !exchange->request) {
		r = method_request_decode(method->wire, exchange->call, exchange->arena,
					  &exchange->request, &error);
		if (r == -EINVAL)
			return reply_error(ERROR_INVALID_PARAMETER, error.parameter, NULL, out);
		if (r)
			return r;
	}
	r = method->has_place ? place_take(exchange) : 0;
	if (r == -EBUSY)
		return reply_error(ERROR_BUSY, "answers",
				   "the gateway makes as many answers as it may; ask again later",
				   out);
	return r ? r : method->reply(exchange, out);
}

static int on_step(void *userdata, struct text *out)
{
	struct exchange *exchange = userdata;
	int r;

	out->limit = VARLINK_MAX_REPLY;
	r = exchange_reply(exchange, out);
	if (r < 0) {
		log_err(r, "cannot answer %s", exchange->call->method);
		r = reply_error(ERROR_FAILED, exchange->call->method, strerrordesc_np(-r), out);
	}
	if (exchange->call->oneway && r != SERVER_WAIT) {
		text_reset(out);
		return 0;
	}
	return r;
}

static void exchange_free(struct exchange *exchange)
{
	if (!exchange)
		return;
	if (exchange->has_place)
		atomic_fetch_sub(&exchange->gateway->limits.answers, 1);
	fleet_answer_free(exchange->answer);
	shards_free(exchange->shards);
	free(exchange->slices.v);
	arena_free(exchange->arena);
	varlink_message_free(exchange->call);
	free(exchange);
}

static void exchange_freep(struct exchange **exchange)
{
	exchange_free(*exchange);
}

static int on_begin(void *userdata, struct server_peer *peer, const char *message, size_t len,
		    void **exchange_out)
{
	_cleanup_(exchange_freep) struct exchange *exchange = calloc(1, sizeof(*exchange));
	int r;

	if (!exchange)
		return -ENOMEM;
	exchange->gateway = userdata;
	exchange->peer = peer;
	exchange->kind = PROBE_OFFCPU;
	exchange->arena = arena_new();
	if (!exchange->arena)
		return -ENOMEM;
	r = varlink_call_parse(message, len, &exchange->call);
	if (r < 0)
		return r;
	exchange->method = method_find(exchange->call->method);
	*exchange_out = TAKE(exchange);
	return 0;
}

static void on_end(void *userdata, bool is_written)
{
	exchange_free(userdata);
}

struct server_handler gateway_handler(struct gateway *gateway)
{
	return (struct server_handler){
		.userdata = gateway,
		.begin = on_begin,
		.step = on_step,
		.end = on_end,
	};
}
