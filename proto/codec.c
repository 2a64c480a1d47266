/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proto/codec.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "proto/json_text.h"
#include "proto/record.h"

int method_call_encode(const struct wire_method *method, const void *request, unsigned flags,
		       struct text *out)
{
	return varlink_call_encode(method->name, method->request, request, flags, out);
}

int method_request_decode(const struct wire_method *method, const struct varlink_message *call,
			  struct arena *arena, void **request_out, struct codec_error *error)
{
	void *request = arena_alloc(arena, method->request->size);
	int r;

	if (!request)
		return -ENOMEM;
	r = record_decode_strict(method->request, call->parameters, arena, request, error);
	if (r == 0)
		*request_out = request;
	return r;
}

int method_reply_encode(const struct wire_method *method, const void *reply, unsigned flags,
			struct text *out)
{
	return varlink_reply_encode(method->reply, reply, flags, out);
}

int method_reply_decode(const struct wire_method *method, const struct varlink_message *message,
			struct arena *arena, void *reply_out, struct codec_error *error)
{
	return record_decode(method->reply, message->parameters, arena, reply_out, error);
}

static int parameters_print(const struct record *record, const void *params, bool is_pretty,
			    struct text *out)
{
	out->indent = is_pretty ? 0 : -1;
	record_encode(record, params, out);
	out->indent = -1;
	return out->error;
}

#define CODEC_DEFINE_REQUEST(method)                                                               \
	int method##_request_encode(const struct wire_##method##_request *request, unsigned flags, \
				    struct text *out)                                              \
	{                                                                                          \
		return method_call_encode(&method_##method, request, flags, out);                  \
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
		return method_reply_encode(&method_##method, reply, flags, out);                \
	}                                                                                       \
	int method##_reply_decode(const struct varlink_message *message, struct arena *arena,   \
				  struct wire_##method##_reply *out, struct codec_error *error) \
	{                                                                                       \
		return method_reply_decode(&method_##method, message, arena, out, error);       \
	}                                                                                       \
	int method##_reply_print(const struct wire_##method##_reply *reply, bool is_pretty,     \
				 struct text *out)                                              \
	{                                                                                       \
		return parameters_print(&record_##method##_reply, reply, is_pretty, out);       \
	}

WIRE_REQUESTS(CODEC_DEFINE_REQUEST)
WIRE_REPLIES(CODEC_DEFINE_REPLY)

/*
 * A reply that is sent in parts. Each part is a message with some members of the reply's one long
 * list, such as the windows of a list of windows.
 */
struct parts {
	const struct record *record; /* describes the struct of the reply */
	const struct record *member; /* describes the struct of one member of the list */
	const void *reply;	     /* a copy of the reply; its list is replaced for each part */
	void *list;		     /* the list inside `reply`, such as its struct wire_windows */
	const char *v;		     /* the first member of the whole list */
	size_t n;
};

/*
 * Counts the members of the list, starting with number `from`, that fit into `size` bytes together
 * with the other fields of the reply. Counts at least one, unless none is left.
 */
static int parts_fit(const struct parts *parts, size_t from, size_t size, size_t *n_out)
{
	_cleanup_(text_fini) struct text scratch = {};
	const struct record_list empty = {};
	size_t used, n = 0;
	int r;

	text_init(&scratch, VARLINK_MAX_REPLY);
	memcpy(parts->list, &empty, sizeof(empty));
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
		used += scratch.len + 1; /* one byte for the comma after the member */
		n++;
	}
	*n_out = n;
	return 0;
}

/*
 * Appends a reply with as many of the list's next members as fit into it. Appends nothing if it
 * fails.
 */
static int parts_encode_next(const struct parts *parts, size_t *next, size_t size, struct text *out)
{
	size_t n = 0, len = out->len;
	struct record_list part;
	bool is_last;
	int r = parts_fit(parts, *next, size, &n);

	if (r < 0)
		return r;
	part = (struct record_list){ (char *)parts->v + *next * parts->member->size, n };
	memcpy(parts->list, &part, sizeof(part));
	is_last = *next + n == parts->n;
	r = varlink_reply_encode(parts->record, parts->reply, is_last ? 0 : VARLINK_CONTINUES, out);
	if (r < 0) {
		out->len = len;
		out->error = 0;
		return r;
	}
	*next += n;
	return 0;
}

/*
 * The end of a reply whose last member is a list, and the same end in a reply that others follow.
 */
static const char message_end[] = "]}}", message_continues[] = "]},\"continues\":true}";

int snapshot_part_begin(const struct wire_snapshot_reply *reply, struct text *out)
{
	struct wire_snapshot_reply head = *reply;

	head.rows = (struct wire_rows){};
	varlink_reply_encode(&record_snapshot_reply, &head, 0, out);
	/* The rows are the last member: take the end of the message off again, with its NUL. */
	if (out->error == 0)
		out->len -= sizeof(message_end);
	return out->error;
}

int snapshot_part_add(const struct wire_row *row, struct text *out)
{
	size_t len = out->len;

	if (len > 0 && out->data[len - 1] != '[')
		text_put_str(out, ",");
	record_encode(&record_row, row, out);
	if (out->error == 0 && out->limit - out->len < sizeof(message_continues))
		out->error = -EMSGSIZE;
	if (out->error != -EMSGSIZE)
		return out->error;
	out->len = len;
	out->error = 0;
	return -EMSGSIZE;
}

int snapshot_part_end(bool continues, struct text *out)
{
	text_put_str(out, continues ? message_continues : message_end);
	text_put(out, "", 1);
	return out->error;
}

int snapshot_print_begin(const struct wire_snapshot_reply *reply, bool is_pretty, struct text *out)
{
	struct wire_snapshot_reply head = *reply;

	head.rows = (struct wire_rows){};
	parameters_print(&record_snapshot_reply, &head, is_pretty, out);
	/* The rows are the last member: take the ends of the list and of the document off again. */
	if (out->error == 0)
		out->len -= strlen(is_pretty ? "]\n}" : "]}");
	return out->error;
}

int snapshot_print_rows(const struct wire_rows *rows, size_t n_before, bool is_pretty,
			struct text *out)
{
	out->indent = is_pretty ? 2 : -1;
	for (size_t i = 0; i < rows->n && out->error == 0; i++) {
		if (n_before + i > 0)
			text_put_str(out, ",");
		json_put_break(out);
		record_encode(&record_row, &rows->v[i], out);
	}
	out->indent = -1;
	return out->error;
}

int snapshot_print_end(size_t n_before, bool is_pretty, struct text *out)
{
	text_put_str(out, !is_pretty ? "]}" : n_before > 0 ? "\n\t]\n}" : "]\n}");
	return out->error;
}

int windows_reply_encode_part(const struct wire_windows_reply *reply, size_t *next, size_t size,
			      struct text *out)
{
	struct wire_windows_reply copy = *reply;
	const struct parts parts = {
		.record = &record_windows_reply,
		.member = &record_window,
		.reply = &copy,
		.list = &copy.windows,
		.v = (const char *)reply->windows.v,
		.n = reply->windows.n,
	};

	return parts_encode_next(&parts, next, size, out);
}

int call_print(const struct wire_call *call, struct text *out)
{
	record_encode(&record_call, call, out);
	return out->error;
}
