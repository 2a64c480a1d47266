/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proto/codec.h"

#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include "common/base.h"
#include "proto/record.h"

#define CODEC_DEFINE_REQUEST(method)                                                               \
	int method##_request_encode(const struct wire_##method##_request *request, unsigned flags, \
				    struct text *out)                                              \
	{                                                                                          \
		return varlink_call_encode(method_##method.name, &record_##method##_request,       \
					   request, flags, out);                                   \
	}                                                                                          \
	int method##_request_decode(const struct varlink_message *message, struct arena *arena,    \
				    struct wire_##method##_request *out,                           \
				    struct codec_error *error)                                     \
	{                                                                                          \
		return record_decode_strict(&record_##method##_request, message->parameters,       \
					    arena, out, error);                                    \
	}

#define CODEC_DEFINE_REPLY(method)                                                              \
	int method##_reply_encode(const struct wire_##method##_reply *reply, unsigned flags,    \
				  struct text *out)                                             \
	{                                                                                       \
		return varlink_reply_encode(&record_##method##_reply, reply, flags, out);       \
	}                                                                                       \
	int method##_reply_decode(const struct varlink_message *message, struct arena *arena,   \
				  struct wire_##method##_reply *out, struct codec_error *error) \
	{                                                                                       \
		return record_decode(&record_##method##_reply, message->parameters, arena, out, \
				     error);                                                    \
	}                                                                                       \
	int method##_reply_print(const struct wire_##method##_reply *reply, bool is_pretty,     \
				 struct text *out)                                              \
	{                                                                                       \
		return parameters_print(&record_##method##_reply, reply, is_pretty, out);       \
	}

static int parameters_print(const struct record *record, const void *params, bool is_pretty,
			    struct text *out)
{
	out->indent = is_pretty ? 0 : -1;
	record_encode(record, params, out);
	out->indent = -1;
	return out->error;
}

WIRE_REQUESTS(CODEC_DEFINE_REQUEST)
WIRE_REPLIES(CODEC_DEFINE_REPLY)

/* The list of a reply that may be sent in parts, and all of the reply but this list. */
struct parts {
	const struct record *record;
	const struct record *member;
	const void *reply; /* with an empty list */
	const char *v;
	size_t n;
};

/* How many members from `from` on go with the rest of the reply into size bytes; at least one. */
static int parts_fit(const struct parts *parts, size_t from, size_t size, size_t *n_out)
{
	_cleanup_(text_fini) struct text scratch;
	size_t used, n = 0;
	int r;

	text_init(&scratch, VARLINK_MAX_REPLY);
	r = varlink_reply_encode(parts->record, parts->reply, VARLINK_CONTINUES, &scratch);
	if (r < 0)
		return r;
	used = scratch.len;
	while (from + n < parts->n) {
		text_reset(&scratch);
		record_encode(parts->member, parts->v + (from + n) * parts->member->size, &scratch);
		if (scratch.error < 0 && n == 0)
			return scratch.error;
		if (n > 0 && (scratch.error < 0 || used + scratch.len + 1 > size))
			break;
		if (used + scratch.len + 1 > VARLINK_MAX_REPLY)
			return -EMSGSIZE;
		used += scratch.len + 1; /* with its comma */
		n++;
	}
	*n_out = n;
	return 0;
}

/* Appends the message that encode() makes, or nothing. */
#define APPEND_OR_NOTHING(out, encode)     \
	({                                 \
		size_t _len = (out)->len;  \
		int _r = (encode);         \
		if (_r < 0) {              \
			(out)->len = _len; \
			(out)->error = 0;  \
		}                          \
		_r;                        \
	})

int snapshot_reply_encode_part(const struct wire_snapshot_reply *reply, size_t *next, size_t size,
			       struct text *out)
{
	struct wire_snapshot_reply part = *reply;
	const struct parts parts = {
		.record = &record_snapshot_reply,
		.member = &record_row,
		.reply = &part,
		.v = (const char *)reply->rows.v,
		.n = reply->rows.n,
	};
	size_t n = 0;
	bool is_last;
	int r;

	part.rows.n = 0;
	r = parts_fit(&parts, *next, size, &n);
	if (r < 0)
		return r;
	part.rows.v = reply->rows.v + *next;
	part.rows.n = n;
	/* A stream goes on behind an answer that tells where. */
	is_last = *next + n == reply->rows.n && !reply->cursor;
	r = APPEND_OR_NOTHING(out,
			      snapshot_reply_encode(&part, is_last ? 0 : VARLINK_CONTINUES, out));
	if (r == 0)
		*next += n;
	return r;
}

int windows_reply_encode_part(const struct wire_windows_reply *reply, size_t *next, size_t size,
			      struct text *out)
{
	struct wire_windows_reply part = *reply;
	const struct parts parts = {
		.record = &record_windows_reply,
		.member = &record_window,
		.reply = &part,
		.v = (const char *)reply->windows.v,
		.n = reply->windows.n,
	};
	size_t n = 0;
	bool is_last;
	int r;

	part.windows.n = 0;
	r = parts_fit(&parts, *next, size, &n);
	if (r < 0)
		return r;
	part.windows.v = reply->windows.v + *next;
	part.windows.n = n;
	is_last = *next + n == reply->windows.n;
	r = APPEND_OR_NOTHING(out,
			      windows_reply_encode(&part, is_last ? 0 : VARLINK_CONTINUES, out));
	if (r == 0)
		*next += n;
	return r;
}

int call_print(const struct wire_call *call, struct text *out)
{
	record_encode(&record_call, call, out);
	return out->error;
}
