/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/service/internal.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"

/* What has no name so long after the end of its session gets none. */
#define LAST_CALLS_NS (5 * NS_PER_S)

struct query_peer query_peer_of(const struct exchange *exchange)
{
	return (struct query_peer){
		.is_root = exchange->peer->uid == 0,
		.uid = exchange->peer->uid,
	};
}

/* Calls whose frames are longer than a reply may be are told to be missed. */
static int start_reply(struct exchange *exchange, bool is_last, struct text *out)
{
	unsigned int flags = is_last ? 0 : VARLINK_CONTINUES;
	struct wire_start_reply reply = *answer_start(exchange->answer);
	int r = start_reply_encode(&reply, flags, out);

	if (r != -EMSGSIZE || reply.calls.n == 0)
		return r;
	reply.missed = (reply.missed == WIRE_ABSENT ? 0 : reply.missed) + (int64_t)reply.calls.n;
	reply.calls = (struct wire_calls){};
	text_reset(out);
	return start_reply_encode(&reply, flags, out);
}

/*
 * Calls as they come, a sign of life each second while it runs, and its end: when all calls are
 * told, or those left do not get their names in time.
 */
static int start_go_on(struct exchange *exchange, struct text *out)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);
	bool is_running = answer_start_runs(exchange->answer), is_last;
	size_t n;
	int r = answer_start_calls(exchange->answer, &n);

	if (r < 0)
		return r;
	is_last = !is_running && (!answer_start_has_calls(exchange->answer) ||
				  now > exchange->due_ns + LAST_CALLS_NS);
	if (!n && !is_last && (!is_running || now < exchange->due_ns))
		return SERVER_WAIT;
	if (is_running && now >= exchange->due_ns)
		exchange->due_ns = now + NS_PER_S;
	r = answer_start_refresh(exchange->answer);
	if (r == 0)
		r = start_reply(exchange, is_last, out);
	if (r < 0)
		return r;
	answer_start_told(exchange->answer);
	return is_last ? 0 : n ? SERVER_MORE : SERVER_WAIT;
}

int handle_start(struct exchange *exchange, struct text *out)
{
	struct wire_error error = { .limit = WIRE_ABSENT };
	struct query_peer peer = query_peer_of(exchange);
	struct wire_start_request request;
	struct codec_error codec_error;
	int r;

	if (exchange->answer && exchange->is_bound)
		return start_go_on(exchange, out);
	if (exchange->answer)
		return 0;
	r = start_request_decode(exchange->call, exchange->arena, &request, &codec_error);
	if (r == -EINVAL)
		return reply_error(ERROR_INVALID_PARAMETER, codec_error.parameter, out);
	if (r < 0)
		return r;
	r = query_start(exchange->service->recorder, &peer, &request, &exchange->answer, &error);
	if (r < 0)
		return error.code ? reply_query_error(&error, out) : r;
	exchange->is_bound = exchange->call->more;
	atomic_store(&exchange->peer->is_bound, exchange->is_bound);
	if (exchange->is_bound)
		return start_go_on(exchange, out);
	/* Nobody would ever stop what nobody knows of; with oneway its owner wanted to know
	 * nothing. */
	exchange->is_untold = !exchange->call->oneway;
	r = start_reply_encode(answer_start(exchange->answer), 0, out);
	return r < 0 ? r : SERVER_MORE; /* so that it ends when that is written */
}

int handle_stop(struct exchange *exchange, struct text *out)
{
	struct wire_error error = { .limit = WIRE_ABSENT };
	struct query_peer peer = query_peer_of(exchange);
	struct wire_stop_request request;
	struct codec_error codec_error;
	int r;

	r = stop_request_decode(exchange->call, exchange->arena, &request, &codec_error);
	if (r == -EINVAL)
		return reply_error(ERROR_INVALID_PARAMETER, codec_error.parameter, out);
	if (r < 0)
		return r;
	r = query_stop(exchange->service->recorder, &peer, &request, &exchange->answer, &error);
	if (r < 0)
		return error.code ? reply_query_error(&error, out) : r;
	return stop_reply_encode(answer_stop(exchange->answer), 0, out);
}

/* It looks into files that only stackd may read, as a session does. */
int handle_functions(struct exchange *exchange, struct text *out)
{
	struct wire_error error = { .limit = WIRE_ABSENT };
	struct wire_functions_request request;
	struct codec_error codec_error;
	int r;

	r = functions_request_decode(exchange->call, exchange->arena, &request, &codec_error);
	if (r == -EINVAL)
		return reply_error(ERROR_INVALID_PARAMETER, codec_error.parameter, out);
	if (r < 0)
		return r;
	r = query_functions(exchange->service->recorder, &request, &exchange->answer, &error);
	if (r < 0)
		return error.code ? reply_query_error(&error, out) : r;
	return functions_reply_encode(answer_functions(exchange->answer), 0, out);
}

static int follow_open(struct exchange *exchange, struct wire_error *error)
{
	struct query_peer peer = query_peer_of(exchange);
	struct wire_follow_request request;
	struct codec_error codec_error;
	int r;

	r = follow_request_decode(exchange->call, exchange->arena, &request, &codec_error);
	if (r == -EINVAL) {
		*error = (struct wire_error){ .code = ERROR_INVALID_PARAMETER,
					      .what = strdup(codec_error.parameter),
					      .limit = WIRE_ABSENT };
		return r;
	}
	return r < 0 ? r
		     : query_follow_new(exchange->service->recorder, &peer, &request,
					&exchange->follow, error);
}

/* The parts of an answer, then, when there are windows after it, the next one. */
int handle_follow(struct exchange *exchange, struct text *out)
{
	struct wire_error error = { .limit = WIRE_ABSENT };
	int r = 0;

	if (!exchange->call->more)
		return reply_error(ERROR_EXPECTED_MORE, NULL, out);
	if (!exchange->follow)
		r = follow_open(exchange, &error);
	if (r == 0 && !exchange->answer) {
		exchange->next = 0;
		r = query_follow_next(exchange->follow, &exchange->answer, &error);
		if (r == 0)
			return SERVER_WAIT;
	}
	if (r < 0)
		return error.code ? reply_query_error(&error, out) : r;
	r = reply_rows(exchange, out);
	if (r != 0)
		return r;
	exchange->answer = answer_free(exchange->answer);
	return SERVER_WAIT;
}
