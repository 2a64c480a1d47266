/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/service/internal.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"

/*
 * Answers that may be larger than a reply. With `more` the answer is kept and each step sends a
 * part of it; otherwise it fits, or the client is told to ask with `more`.
 */

static int stack_cut(struct arena *arena, const struct wire_stack *stack, size_t max_frames,
		     const struct wire_stack **out)
{
	struct wire_stack *cut;
	const char **flags;
	size_t n = stack->flags.n;

	cut = arena_alloc(arena, sizeof(*cut));
	flags = arena_array(arena, n + 1, sizeof(*flags));
	if (!cut || !flags)
		return -ENOMEM;
	*cut = *stack;
	cut->frames.n = max_frames;
	if (n > 0)
		memcpy(flags, stack->flags.v, n * sizeof(*flags));
	flags[n] = "truncated";
	cut->flags = (struct wire_strs){ flags, n + 1 };
	*out = cut;
	return 0;
}

static int row_cut(struct arena *arena, const struct wire_row *row, size_t max_frames,
		   struct wire_row *out)
{
	int r = 0;

	*out = *row;
	if (row->kernel && row->kernel->frames.n > max_frames)
		r = stack_cut(arena, row->kernel, max_frames, &out->kernel);
	if (r == 0 && row->user && row->user->frames.n > max_frames)
		r = stack_cut(arena, row->user, max_frames, &out->user);
	return r;
}

static size_t row_most_frames(const struct wire_row *row)
{
	size_t kernel = row->kernel ? row->kernel->frames.n : 0;
	size_t user = row->user ? row->user->frames.n : 0;

	return kernel > user ? kernel : user;
}

/* A row whose names alone are more than a reply holds: its stacks are cut, and say so. */
static int reply_cut_row(struct exchange *exchange, const struct wire_snapshot_reply *reply,
			 struct text *out)
{
	struct wire_snapshot_reply part = *reply;
	const struct wire_row *row = &reply->rows.v[exchange->next];
	/* A stream with a cursor goes on after its last row. */
	bool is_last = exchange->next + 1 >= reply->rows.n && !reply->cursor;
	unsigned flags = is_last ? 0 : VARLINK_CONTINUES;
	size_t max_frames = row_most_frames(row);
	struct wire_row cut;
	int r;

	do {
		max_frames /= 2;
		r = row_cut(exchange->arena, row, max_frames, &cut);
		if (r < 0)
			return r;
		part.rows = (struct wire_rows){ &cut, 1 };
		text_reset(out);
		r = snapshot_reply_encode(&part, flags, out);
	} while (r == -EMSGSIZE && max_frames > 0);
	if (r == 0)
		exchange->next++;
	return r;
}

int reply_rows(struct exchange *exchange, struct text *out)
{
	const struct wire_snapshot_reply *reply = answer_snapshot(exchange->answer);
	int r;

	r = snapshot_reply_encode_part(reply, &exchange->next, SERVICE_PART, out);
	if (r == -EMSGSIZE && exchange->next < reply->rows.n)
		r = reply_cut_row(exchange, reply, out);
	return r < 0 ? r : exchange->next < reply->rows.n;
}

int handle_snapshot(struct exchange *exchange, struct text *out)
{
	const struct query_peer peer = query_peer_of(exchange);
	struct wire_snapshot_request request;
	struct wire_error error = { .limit = WIRE_ABSENT };
	struct codec_error codec_error;
	int r;

	if (exchange->answer)
		return reply_rows(exchange, out);
	r = snapshot_request_decode(exchange->call, exchange->arena, &request, &codec_error);
	if (r == -EINVAL)
		return reply_error(ERROR_INVALID_PARAMETER, codec_error.parameter, out);
	if (r < 0)
		return r;
	if (!request.probe && !request.session)
		return reply_error(ERROR_INVALID_PARAMETER, "probe", out);
	r = query_snapshot(exchange->service->recorder, &peer, &request, &exchange->answer, &error);
	if (r < 0)
		return error.code ? reply_query_error(&error, out) : r;
	if (exchange->call->more)
		return reply_rows(exchange, out);
	r = snapshot_reply_encode(answer_snapshot(exchange->answer), 0, out);
	if (r != -EMSGSIZE)
		return r;
	text_reset(out);
	return reply_error(ERROR_EXPECTED_MORE, NULL, out);
}

static int reply_windows(struct exchange *exchange, struct text *out)
{
	const struct wire_windows_reply *reply = answer_windows(exchange->answer);
	int r = windows_reply_encode_part(reply, &exchange->next, SERVICE_PART, out);

	return r < 0 ? r : exchange->next < reply->windows.n;
}

int handle_windows(struct exchange *exchange, struct text *out)
{
	struct wire_windows_request request;
	struct wire_error error = { .limit = WIRE_ABSENT };
	struct codec_error codec_error;
	int r;

	if (exchange->answer)
		return reply_windows(exchange, out);
	r = windows_request_decode(exchange->call, exchange->arena, &request, &codec_error);
	if (r == -EINVAL)
		return reply_error(ERROR_INVALID_PARAMETER, codec_error.parameter, out);
	if (r < 0)
		return r;
	r = query_windows(exchange->service->recorder, &request, &exchange->answer, &error);
	if (r < 0)
		return error.code ? reply_query_error(&error, out) : r;
	if (exchange->call->more)
		return reply_windows(exchange, out);
	r = windows_reply_encode(answer_windows(exchange->answer), 0, out);
	if (r != -EMSGSIZE)
		return r;
	text_reset(out);
	return reply_error(ERROR_EXPECTED_MORE, NULL, out);
}
