/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_PROTO_CODEC_H
#define STACKD_PROTO_CODEC_H

/*
 * Requests and replies of all methods as messages: encodes structs of the wire as text (NUL-ended,
 * appended), and decodes messages. Encoding borrows what it is given; what is decoded lives in the
 * caller's arena. Any thread.
 */

#include <stdbool.h>
#include <stddef.h>

#include "common/arena.h"
#include "common/text.h"
#include "proto/varlink.h"
#include "proto/wire.h"

/*
 * For any method. Flags of a call: VARLINK_MORE, VARLINK_ONEWAY; of a reply: VARLINK_CONTINUES.
 * A null counts as absent. An unknown member of a request is an error, of a reply it is ignored.
 * Decoding returns -EINVAL with *error (which may be NULL) for a wrong parameter, or -ENOMEM.
 */

/* Appends a whole call; request is NULL for a method without parameters. Returns out->error. */
int method_call_encode(const struct wire_method *method, const void *request, unsigned flags,
		       struct text *out);

/* Decodes the parameters of a call of a method that has some. */
int method_request_decode(const struct wire_method *method, const struct varlink_message *call,
			  struct arena *arena, void **request_out, struct codec_error *error);

/* Appends a whole reply. Returns out->error: -EMSGSIZE where it is beyond out->limit. */
int method_reply_encode(const struct wire_method *method, const void *reply, unsigned flags,
			struct text *out);

/* Decodes the parameters of a reply that is not an error into the struct of its method. */
int method_reply_decode(const struct wire_method *method, const struct varlink_message *message,
			struct arena *arena, void *reply_out, struct codec_error *error);

/*
 * The same with the types of one METHOD:
 *   METHOD_request_encode  a whole call
 *   METHOD_request_decode  the parameters of a call
 *   METHOD_reply_encode    a whole reply
 *   METHOD_reply_decode    the parameters of a reply
 *   METHOD_reply_print     the parameters as JSON, one line or pretty, no NUL, no newline
 */
#define CODEC_DECLARE_REQUEST(method)                                                              \
	int method##_request_encode(const struct wire_##method##_request *request, unsigned flags, \
				    struct text *out);                                             \
	int method##_request_decode(const struct varlink_message *message, struct arena *arena,    \
				    struct wire_##method##_request *out,                           \
				    struct codec_error *error);

#define CODEC_DECLARE_REPLY(method)                                                              \
	int method##_reply_encode(const struct wire_##method##_reply *reply, unsigned flags,     \
				  struct text *out);                                             \
	int method##_reply_decode(const struct varlink_message *message, struct arena *arena,    \
				  struct wire_##method##_reply *out, struct codec_error *error); \
	int method##_reply_print(const struct wire_##method##_reply *reply, bool is_pretty,      \
				 struct text *out);

WIRE_REQUESTS(CODEC_DECLARE_REQUEST)
WIRE_REPLIES(CODEC_DECLARE_REPLY)

/*
 * Append one of several replies: the rows (or windows) from *next on, at least one and as many as
 * fit in `size` bytes; all other fields are the same in each. The reply `continues` unless it is
 * the last one; a reply with a cursor always does. *next is advanced, and is reply->rows.n
 * (reply->windows.n) after the last one. -EMSGSIZE where one row does not fit in VARLINK_MAX_REPLY:
 * then *next and out are as before.
 */
int snapshot_reply_encode_part(const struct wire_snapshot_reply *reply, size_t *next, size_t size,
			       struct text *out);
int windows_reply_encode_part(const struct wire_windows_reply *reply, size_t *next, size_t size,
			      struct text *out);

/* Appends a traced call as a JSON object, on one line without a newline. 0 or -ENOMEM. */
int call_print(const struct wire_call *call, struct text *out);

#endif
