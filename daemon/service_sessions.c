/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/service_exchange.h"

#include <errno.h>

#include "proto/base.h"

struct query_peer query_peer_of(const struct exchange *exchange)
{
	return (struct query_peer){
		.is_root = exchange->peer->uid == 0,
		.uid = exchange->peer->uid,
	};
}

int handle_start(struct exchange *exchange, struct text *out)
{
	struct wire_error error = { .limit = WIRE_ABSENT };
	struct query_peer peer = query_peer_of(exchange);
	struct wire_start_request request;
	struct codec_error codec_error;
	int r;

	r = start_request_decode(exchange->call, exchange->arena, &request, &codec_error);
	if (r == -EINVAL)
		return reply_error(ERROR_INVALID_PARAMETER, codec_error.parameter, out);
	if (r < 0)
		return r;
	r = query_start(exchange->service->recorder, &peer, &request, &exchange->answer, &error);
	if (r < 0)
		return error.name ? reply_query_error(&error, out) : r;
	return start_reply_encode(answer_start(exchange->answer), 0, out);
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
		return error.name ? reply_query_error(&error, out) : r;
	return stop_reply_encode(answer_stop(exchange->answer), 0, out);
}
