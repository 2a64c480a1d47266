/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_PROTO_CODEC_H
#define STACKD_PROTO_CODEC_H

/*
 * The methods of io.stackd: wire structs in, messages out (NUL-ended, appended to a text), and
 * back. Encoding borrows; what is decoded lives in the caller's arena. Plain functions, any
 * thread.
 */

#include <stdbool.h>
#include <stddef.h>

#include "common/arena.h"
#include "common/text.h"
#include "proto/varlink.h"
#include "proto/wire.h"

/*
 * For each METHOD:
 *   METHOD_request_encode  a whole call; flags VARLINK_MORE, VARLINK_ONEWAY
 *   METHOD_request_decode  the parameters of a call; -EINVAL with *error for a wrong parameter
 *   METHOD_reply_encode    a whole reply; flags VARLINK_CONTINUES. -EMSGSIZE beyond out->limit
 *   METHOD_reply_decode    the parameters of a reply that is not an error; -EINVAL with *error
 *   METHOD_reply_print     the parameters as JSON, one line or pretty, no NUL, no newline
 * An unknown member of a request is an error, of a reply it is ignored; null is the same as absent;
 * error may be NULL.
 * A call without parameters (Status, Probes, Sessions, GetInfo): varlink_call_encode().
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
 * One of several replies: rows (or windows) from *next on, as many as fit in `size` bytes and at
 * least one, all other fields as they are; `continues` unless it is the last (of a reply with a
 * cursor always). Advances *next,
 * which reaches reply->rows.n (reply->windows.n) with the last one. -EMSGSIZE when one row does
 * not fit in VARLINK_MAX_REPLY; then *next is untouched and out is as before.
 */
int snapshot_reply_encode_part(const struct wire_snapshot_reply *reply, size_t *next, size_t size,
			       struct text *out);
int windows_reply_encode_part(const struct wire_windows_reply *reply, size_t *next, size_t size,
			      struct text *out);

/* One call as a JSON object, on one line without a newline. 0, -ENOMEM. */
int call_print(const struct wire_call *call, struct text *out);

#endif
