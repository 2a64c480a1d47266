/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/service/internal.h"

#include <errno.h>

#include "common/base.h"

/* The replies of the methods Start and Follow, which are sent as long as the client is
 * connected. */

/*
 * How long traced calls may wait for the names of their functions after their session has ended.
 * After that, they are dropped without being sent.
 */
#define LAST_CALLS_NS (5 * NS_PER_S)

/*
 * Appends a reply of Start. If the traced calls in it are too long for one reply, leaves them out
 * and adds their number to the number of missed calls.
 */
static int start_encode(struct exchange *exchange, bool is_last, struct text *out)
{
	unsigned int flags = is_last ? 0 : VARLINK_CONTINUES;
	struct wire_start_reply reply = answer_reply(exchange->answer)->start;
	int r = start_reply_encode(&reply, flags, out);

	if (r != -EMSGSIZE || reply.calls.n == 0)
		return r;
	reply.missed = (reply.missed == WIRE_ABSENT ? 0 : reply.missed) + (int64_t)reply.calls.n;
	reply.calls = (struct wire_calls){};
	text_reset(out);
	return start_reply_encode(&reply, flags, out);
}

/*
 * Appends the next reply of a Start with `more`. If there are traced calls, the reply has them. If
 * there are none, a reply with the state of the session is sent once a second. After the end of the
 * session, the last reply is sent when all traced calls were sent, or when the rest of them has
 * waited for LAST_CALLS_NS.
 */
static int start_stream(struct exchange *exchange, struct text *out)
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
		r = start_encode(exchange, is_last, out);
	if (r < 0)
		return r;
	answer_start_clear_missed(exchange->answer);
	return is_last ? 0 : n ? SERVER_MORE : SERVER_WAIT;
}

int start_reply(struct exchange *exchange, struct text *out)
{
	int r;

	if (exchange->is_unconfirmed)
		return 0; /* no flag `more`: the only reply has been written */
	if (exchange->call->more && !exchange->is_bound) {
		exchange->is_bound = true;
		atomic_store(&exchange->peer->is_bound, true);
	}
	if (exchange->is_bound)
		return start_stream(exchange, out);
	/*
	 * A client that does not receive the reply does not know the session's id and cannot stop
	 * the session, so the session ends unless the reply is written. A client that calls with
	 * the flag `oneway` wants no reply.
	 */
	exchange->is_unconfirmed = !exchange->call->oneway;
	r = start_encode(exchange, true, out);
	return r < 0 ? r : SERVER_MORE; /* SERVER_MORE makes another step follow once the reply is
					   written */
}

/*
 * Makes the next answer of Follow, if it is due. While others hold all places, it waits, and is
 * then about a longer time. Returns 1, SERVER_WAIT if there is no answer yet, or a negative errno.
 */
static int follow_next(struct exchange *exchange, struct wire_error *error)
{
	int r;

	if (!query_follow_is_due(exchange->follow) || place_take(exchange, NULL))
		return SERVER_WAIT;
	exchange->next = 0;
	r = query_follow_next(exchange->follow, &exchange->answer, error);
	if (r <= 0)
		place_leave(exchange);
	return r ? r : SERVER_WAIT;
}

/*
 * Appends a reply with the next part of the answer of Follow. After the last part, waits for new
 * windows, which make the next answer.
 */
int follow_reply(struct exchange *exchange, struct text *out)
{
	struct wire_error error = { .limit = WIRE_ABSENT };
	struct query_peer peer = query_peer_of(exchange);
	int r = 0;

	if (!exchange->follow)
		r = query_follow_new(exchange->service->recorder, &peer, exchange->request,
				     &exchange->follow, &error);
	if (r == 0 && !exchange->answer)
		r = follow_next(exchange, &error);
	if (r == SERVER_WAIT)
		return r;
	if (r < 0)
		return error.code ? reply_query_error(&error, out) : r;
	r = reply_rows(exchange, out);
	if (r != 0 || !exchange->answer)
		return r;
	exchange->answer = answer_free(exchange->answer);
	place_leave(exchange);
	return SERVER_WAIT;
}
