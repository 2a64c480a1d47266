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
 * Called if a row alone is too long for a reply. Truncates the stacks of the row until it fits, and
 * adds it to the reply.
 */
static int row_add_truncated(struct exchange *exchange, const struct wire_row *row,
			     struct text *out)
{
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
		r = snapshot_part_add(&truncated, out);
	} while (r == -EMSGSIZE && max_frames > 0);
	/* The client has these stacks now, not the whole ones. */
	if (r == 0 && exchange->sent)
		stacks_sent_note(exchange->sent, &truncated);
	return r;
}

/*
 * Adds the text of a row to the reply, without the frames of stacks that the client has. may_cut:
 * if the row is too long, its stacks are truncated.
 */
static int row_add(struct exchange *exchange, const struct wire_row *row, bool may_cut,
		   struct text *out)
{
	struct short_row brief;
	int r;

	if (!exchange->sent) {
		r = snapshot_part_add(row, out);
	} else {
		stacks_sent_shorten(exchange->sent, row, &brief);
		r = snapshot_part_add(&brief.row, out);
		if (r == 0)
			stacks_sent_note(exchange->sent, &brief.row);
	}
	return r == -EMSGSIZE && may_cut ? row_add_truncated(exchange, row, out) : r;
}

/*
 * Adds the text of rows to the reply in `out`, from row number exchange->next on. Stops when the
 * added text has `size` bytes, or when the next row would make the reply larger than a reply may
 * be. Adds at least one row, unless none is left. Then frees the rows whose text was added.
 */
static int rows_add(struct exchange *exchange, size_t size, struct text *out)
{
	size_t first = exchange->next, start = out->len, n = answer_n_rows(exchange->answer);
	const struct wire_row *row;
	int r = 0;

	while (exchange->next < n && out->len - start < size) {
		r = answer_row(exchange->answer, exchange->next, &row);
		if (r < 0)
			break;
		r = row_add(exchange, row, exchange->next == first && exchange->call->more, out);
		if (r < 0)
			break;
		exchange->next++;
	}
	answer_rows_sent(exchange->answer, exchange->next);
	return r == -EMSGSIZE && exchange->next > first ? 0 : r;
}

#define TOO_SLOW "the client reads too slowly: "

/* True if the client has taken too long to read the rows of the answer before the next one. */
static bool is_overdue(struct exchange *exchange)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);

	if (exchange->next == 0)
		exchange->answered_ns = now;
	return now - exchange->answered_ns > exchange->service->answer_time_ns;
}

/*
 * Returns why the client does not get the rest of the answer; NULL if it does. Ends the time that
 * counts as the client's: what is done from now on is the daemon's work.
 */
static const char *refusal(struct exchange *exchange)
{
	if (!admission_reply_begin(&exchange->service->admission, &exchange->place))
		return TOO_SLOW "others wait to be answered";
	if (!is_overdue(exchange))
		return NULL;
	atomic_fetch_add(&exchange->service->answer_time_hits, 1);
	return TOO_SLOW "an answer must be read within 10 minutes";
}

static int reply_refusal(struct exchange *exchange, const char *message, struct text *out)
{
	const struct wire_error error = {
		.code = ERROR_FAILED,
		.what = exchange->call->method,
		.message = message,
	};

	exchange->answer = answer_free(exchange->answer);
	return varlink_error_encode(&error, out);
}

int reply_rows(struct exchange *exchange, struct text *out)
{
	const struct wire_snapshot_reply *reply = &answer_reply(exchange->answer)->snapshot;
	const char *message = refusal(exchange);
	bool is_last;
	int r;

	if (message)
		return reply_refusal(exchange, message, out);
	r = snapshot_part_begin(reply, out);
	if (r == 0)
		r = rows_add(exchange, exchange->place.is_long ? SERVICE_ROWS : SIZE_MAX, out);
	if (r < 0)
		return r;
	is_last = exchange->next == answer_n_rows(exchange->answer);
	/*
	 * Only answers of the method Follow have a cursor. Follow sends other replies after the
	 * last row.
	 */
	r = snapshot_part_end(!is_last || reply->cursor || answer_has_next(exchange->answer), out);
	return r < 0 ? r : is_last ? 0 : SERVER_MORE;
}

/* Appends a reply with all rows, or the error ExpectedMore if they do not fit into one reply. */
static int reply_all_rows(struct exchange *exchange, struct text *out)
{
	const struct wire_snapshot_reply *reply = &answer_reply(exchange->answer)->snapshot;
	size_t n = answer_n_rows(exchange->answer);
	int r = snapshot_part_begin(reply, out);

	if (r == 0)
		r = rows_add(exchange, SIZE_MAX, out);
	if (r == 0 && exchange->next == n)
		return snapshot_part_end(false, out);
	if (r < 0 && r != -EMSGSIZE)
		return r;
	text_reset(out);
	return reply_error(ERROR_EXPECTED_MORE, NULL, out);
}

/* True if an answer with this value of `top` may be long; 0 stands for all rows. */
static bool rows_are_many(int64_t top)
{
	return top == WIRE_ABSENT || top == 0 || top > SHORT_ROWS;
}

bool snapshot_is_long(const void *params)
{
	const struct wire_snapshot_request *request = params;

	return rows_are_many(request->top) || request->each_ns != WIRE_ABSENT || request->ranges.n;
}

bool follow_is_long(const void *params)
{
	const struct wire_follow_request *request = params;

	return rows_are_many(request->top);
}

bool overview_is_long(const void *params)
{
	const struct wire_overview_request *request = params;

	return rows_are_many(request->top);
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

/* Replaces the answer by the next one. Returns 1, 0 if there is none, or a negative errno. */
static int answer_replace(struct exchange *exchange)
{
	struct recorder *recorder = exchange->service->recorder;
	struct query_peer peer = query_peer_of(exchange);

	if (exchange->method->wire == &method_overview)
		return query_overview_next(recorder, &peer, exchange->request, &exchange->answer);
	return query_snapshot_next(recorder, &peer, exchange->request, &exchange->answer);
}

/*
 * Appends a reply with the next rows of several answers, which are sent one after the other.
 */
static int reply_answers(struct exchange *exchange, struct text *out)
{
	const char *message = refusal(exchange);
	int r = 0;

	if (message)
		return reply_refusal(exchange, message, out);
	if (exchange->has_replied && exchange->next >= answer_n_rows(exchange->answer))
		r = answer_replace(exchange);
	if (r < 0)
		return r;
	if (r > 0)
		exchange->next = 0;
	exchange->has_replied = true;
	r = reply_rows(exchange, out);
	if (r < 0 || !exchange->answer)
		return r;
	return r == SERVER_MORE || answer_has_next(exchange->answer) ? SERVER_MORE : 0;
}

int snapshot_reply(struct exchange *exchange, struct text *out)
{
	const struct wire_snapshot_request *request = exchange->request;

	if (exchange->call->more && request->stacks_once == 1 && !exchange->sent) {
		exchange->sent = stacks_sent_new();
		if (!exchange->sent)
			return -ENOMEM;
	}
	if (exchange->call->more)
		return reply_answers(exchange, out);
	if (request->each_ns != WIRE_ABSENT || request->ranges.n || request->stacks_once == 1)
		return reply_error(ERROR_EXPECTED_MORE, NULL, out);
	return reply_all_rows(exchange, out);
}

int overview_reply(struct exchange *exchange, struct text *out)
{
	return reply_answers(exchange, out);
}

int windows_reply(struct exchange *exchange, struct text *out)
{
	const struct wire_windows_reply *reply = &answer_reply(exchange->answer)->windows;
	const char *message;
	int r;

	if (!exchange->call->more)
		return reply_answer_or_refuse(exchange, out);
	message = refusal(exchange);
	if (message)
		return reply_refusal(exchange, message, out);
	r = windows_reply_encode_part(reply, &exchange->next, SERVICE_WINDOWS, out);
	if (r < 0)
		return r;
	return exchange->next < reply->windows.n ? SERVER_MORE : 0;
}
