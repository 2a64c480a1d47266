/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/service/internal.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"

/*
 * The methods Snapshot and Windows, whose answers may be larger than one reply. A call with the
 * flag `more` gets the answer in parts, one at each step. A call without `more` gets the whole
 * answer, or the error ExpectedMore if it does not fit into one reply.
 */

/* Copies a stack, with at most max_frames of its frames, and adds the flag "truncated". */
static int stack_truncate(struct arena *arena, const struct wire_stack *stack, size_t max_frames,
			  const struct wire_stack **out)
{
	struct wire_stack *copy;
	const char **flags;
	size_t n = stack->flags.n;

	copy = arena_alloc(arena, sizeof(*copy));
	flags = arena_array(arena, n + 1, sizeof(*flags));
	if (!copy || !flags)
		return -ENOMEM;
	*copy = *stack;
	copy->frames.n = max_frames;
	if (n > 0)
		memcpy(flags, stack->flags.v, n * sizeof(*flags));
	flags[n] = "truncated";
	copy->flags = (struct wire_strs){ flags, n + 1 };
	*out = copy;
	return 0;
}

static int row_truncate(struct arena *arena, const struct wire_row *row, size_t max_frames,
			struct wire_row *out)
{
	int r = 0;

	*out = *row;
	if (row->kernel && row->kernel->frames.n > max_frames)
		r = stack_truncate(arena, row->kernel, max_frames, &out->kernel);
	if (r == 0 && row->user && row->user->frames.n > max_frames)
		r = stack_truncate(arena, row->user, max_frames, &out->user);
	return r;
}

/*
 * Called if the next row alone is too long for a reply. Truncates the stacks of the row until it
 * fits, and appends a reply with this row.
 */
static int reply_truncated_row(struct exchange *exchange, const struct wire_snapshot_reply *reply,
			       struct text *out)
{
	struct wire_snapshot_reply part = *reply;
	const struct wire_row *row = &reply->rows.v[exchange->next];
	/*
	 * Only answers of the method Follow have a cursor. Follow sends one answer after the other,
	 * so a reply with the last row of such an answer is not the last reply.
	 */
	bool is_last = exchange->next + 1 >= reply->rows.n && !reply->cursor &&
		       !answer_has_next(exchange->answer);
	unsigned flags = is_last ? 0 : VARLINK_CONTINUES;
	size_t kernel = row->kernel ? row->kernel->frames.n : 0;
	size_t user = row->user ? row->user->frames.n : 0;
	size_t max_frames = kernel > user ? kernel : user;
	struct wire_row truncated;
	int r;

	do {
		max_frames /= 2;
		r = row_truncate(exchange->arena, row, max_frames, &truncated);
		if (r < 0)
			return r;
		part.rows = (struct wire_rows){ &truncated, 1 };
		text_reset(out);
		r = snapshot_reply_encode(&part, flags, out);
	} while (r == -EMSGSIZE && max_frames > 0);
	if (r == 0)
		exchange->next++;
	return r;
}

int reply_rows(struct exchange *exchange, struct text *out)
{
	const struct wire_snapshot_reply *reply = &answer_reply(exchange->answer)->snapshot;
	int r;

	r = snapshot_reply_encode_part(reply, answer_has_next(exchange->answer), &exchange->next,
				       SERVICE_PART, out);
	if (r == -EMSGSIZE && exchange->next < reply->rows.n)
		r = reply_truncated_row(exchange, reply, out);
	if (r < 0)
		return r;
	return exchange->next < reply->rows.n ? SERVER_MORE : 0;
}

int snapshot_query(struct recorder *recorder, const struct query_peer *peer, const void *params,
		   struct answer **out, struct wire_error *error)
{
	const struct wire_snapshot_request *request = params;

	if (!request->probe && !request->session)
		return wire_error_set(error, -EINVAL, ERROR_INVALID_PARAMETER, "probe",
				      "neither a probe nor a session is given");
	return query_snapshot(recorder, peer, request, out, error);
}

int snapshot_reply(struct exchange *exchange, struct text *out)
{
	return exchange->call->more ? reply_rows(exchange, out)
				    : reply_answer_or_refuse(exchange, out);
}

/*
 * Appends a reply with the next part of an overview, which consists of several answers, one after
 * the other.
 */
int overview_reply(struct exchange *exchange, struct text *out)
{
	struct query_peer peer = query_peer_of(exchange);
	int r = 0;

	if (exchange->has_replied &&
	    exchange->next >= answer_reply(exchange->answer)->snapshot.rows.n)
		r = query_overview_next(exchange->service->recorder, &peer, exchange->request,
					&exchange->answer);
	if (r < 0)
		return r;
	if (r > 0)
		exchange->next = 0;
	exchange->has_replied = true;
	r = reply_rows(exchange, out);
	if (r < 0)
		return r;
	return r == SERVER_MORE || answer_has_next(exchange->answer) ? SERVER_MORE : 0;
}

int windows_reply(struct exchange *exchange, struct text *out)
{
	const struct wire_windows_reply *reply = &answer_reply(exchange->answer)->windows;
	int r;

	if (!exchange->call->more)
		return reply_answer_or_refuse(exchange, out);
	r = windows_reply_encode_part(reply, &exchange->next, SERVICE_PART, out);
	if (r < 0)
		return r;
	return exchange->next < reply->windows.n ? SERVER_MORE : 0;
}
