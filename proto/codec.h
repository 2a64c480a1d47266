/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_PROTO_CODEC_H
#define STACKD_PROTO_CODEC_H

/*
 * Turns the requests and replies of all methods into messages and back. Encoding appends a
 * NUL-ended text and only borrows the struct. Decoding puts all that the struct points to into the
 * caller's arena. Any thread.
 */

#include <stdbool.h>
#include <stddef.h>

#include "common/arena.h"
#include "common/text.h"
#include "proto/varlink.h"
#include "proto/wire.h"

/*
 * Conventions of this header: the flags of a call are VARLINK_MORE and VARLINK_ONEWAY; the flag of
 * a reply is VARLINK_CONTINUES. A member that is null counts as absent. A member that is not
 * defined is an error in a request and ignored in a reply. Decoding returns 0; -EINVAL with *error
 * (which may be NULL) if a parameter is wrong; or -ENOMEM.
 */

/*
 * Appends a whole call to out. request is NULL for a method without parameters. Returns out->error.
 */
int method_call_encode(const struct wire_method *method, const void *request, unsigned flags,
		       struct text *out);

/*
 * Decodes the parameters of a call into a new struct in the arena. The method must have parameters.
 */
int method_request_decode(const struct wire_method *method, const struct varlink_message *call,
			  struct arena *arena, void **request_out, struct codec_error *error);

/*
 * Appends a whole reply to out. Returns out->error, which is -EMSGSIZE if out exceeds out->limit.
 */
int method_reply_encode(const struct wire_method *method, const void *reply, unsigned flags,
			struct text *out);

/*
 * Decodes the parameters of a reply into *reply_out, the struct for replies of this method. The
 * reply must not be an error.
 */
int method_reply_decode(const struct wire_method *method, const struct varlink_message *message,
			struct arena *arena, void *reply_out, struct codec_error *error);

/*
 * Declares functions for one METHOD, whose arguments have the types of that method:
 *   METHOD_request_encode  appends a whole call
 *   METHOD_request_decode  decodes the parameters of a call
 *   METHOD_reply_encode    appends a whole reply
 *   METHOD_reply_decode    decodes the parameters of a reply
 *   METHOD_reply_print     appends the parameters of a reply as JSON, pretty or on one line;
 *                          the text ends without a NUL and without a newline
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
 * Append a reply of Snapshot, Overview or Follow, or one of the several replies of a long answer.
 * snapshot_part_begin() appends all members of the reply but its rows, snapshot_part_add() one row,
 * and snapshot_part_end() the end of the message, with the flag `continues` if more replies follow.
 * snapshot_part_add() returns -EMSGSIZE, with out unchanged, if the message would become longer
 * than out->limit. All return out->error otherwise.
 */
int snapshot_part_begin(const struct wire_snapshot_reply *reply, struct text *out);
int snapshot_part_add(const struct wire_row *row, struct text *out);
int snapshot_part_end(bool continues, struct text *out);

/*
 * Append an answer as one JSON document, as snapshot_reply_print() does, when its rows are not
 * known all at once: begin() appends the beginning of the document, rows() the next rows, end() the
 * end. n_before is the number of rows that were appended so far. Return out->error.
 */
int snapshot_print_begin(const struct wire_snapshot_reply *reply, bool is_pretty, struct text *out);
int snapshot_print_rows(const struct wire_rows *rows, size_t n_before, bool is_pretty,
			struct text *out);
int snapshot_print_end(size_t n_before, bool is_pretty, struct text *out);

/*
 * Appends one part of a list of windows that is sent as several replies. The part has the windows
 * from number *next on: at least one, and as many as fit in `size` bytes. The gaps are the same in
 * each part. `continues` is set in all parts but the last. *next is set to the number of the next
 * window, which is reply->windows.n after the last one. Returns -EMSGSIZE, with *next and out
 * unchanged, if one window does not fit in VARLINK_MAX_REPLY.
 */
int windows_reply_encode_part(const struct wire_windows_reply *reply, size_t *next, size_t size,
			      struct text *out);

/* Appends a traced call as a JSON object on one line, without a newline. Returns 0 or -ENOMEM. */
int call_print(const struct wire_call *call, struct text *out);

#endif
