/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_PROTO_VARLINK_H
#define STACKD_PROTO_VARLINK_H

/*
 * Reads and writes messages: calls {method, parameters, more, oneway} and replies {parameters,
 * continues, error}. A message that is written ends with a NUL byte. Does no I/O. Any thread.
 */

#include <stdbool.h>
#include <stddef.h>

#include "common/text.h"
#include "proto/wire.h"
#include "proto/wire_error.h"

struct arena;
struct json_object;
struct record;

/*
 * Limits of a message. The depth limit is generous: parameters of io.stackd are nested at most 8
 * deep.
 */
enum {
	VARLINK_MAX_DEPTH = 32,
	VARLINK_MAX_REQUEST_VALUES = 65536, /* maximum number of JSON values in a request */
	VARLINK_MAX_METHOD = 255,	    /* maximum bytes in the name of a method or error */
	VARLINK_MAX_REPLY = 1024 * 1024,    /* maximum bytes of a reply, with its NUL */
};

enum varlink_flags {
	VARLINK_MORE = 1,      /* in a call: the client accepts several replies */
	VARLINK_ONEWAY = 2,    /* in a call: the client wants no reply */
	VARLINK_CONTINUES = 4, /* in a reply: more replies follow */
};

/* A message that was parsed. Its strings are freed with it. */
struct varlink_message {
	const char *method; /* name of the method; NULL in a reply */
	bool more;
	bool oneway;
	bool continues;
	const char *error;		/* name of the error; NULL if it is not an error reply */
	struct json_object *root;	/* private: the parsed JSON text */
	struct json_object *parameters; /* private; NULL if the message has no parameters */
};

/* Says which parameter could not be decoded ("filter.pids[2]"), and why. */
struct codec_error {
	char parameter[128];
	char message[128];
};

/*
 * Parse a NUL-ended text of len bytes as a call or as a reply. Return 0 with *out, which the caller
 * frees; -EBADMSG if the text is not a valid message (bad JSON or UTF-8, a member that is named
 * twice or has the wrong type, a NUL in a string); -EMSGSIZE if it exceeds a limit VARLINK_MAX_...;
 * or -ENOMEM.
 */
int varlink_call_parse(const char *text, size_t len, struct varlink_message **out);
int varlink_reply_parse(const char *text, size_t len, struct varlink_message **out);
struct varlink_message *varlink_message_free(struct varlink_message *message);
void varlink_message_freep(struct varlink_message **message);

/*
 * Append a call or a reply to out. `record` describes params; both are NULL if there are no
 * parameters. Return out->error.
 */
int varlink_call_encode(const char *method, const struct record *record, const void *params,
			unsigned flags, struct text *out);
int varlink_reply_encode(const struct record *record, const void *params, unsigned flags,
			 struct text *out);

/* Appends an error reply. Returns -EINVAL if the code is ERROR_NONE, else out->error. */
int varlink_error_encode(const struct wire_error *error, struct text *out);

/*
 * Reads the error of a reply. Its strings are in the arena. An error whose name is not known has
 * the code ERROR_NONE and no parameters. Returns 0; -EINVAL when the reply is not an error; or
 * -ENOMEM.
 */
int varlink_error_decode(const struct varlink_message *message, struct arena *arena,
			 struct wire_error *out);

/* The texts of the .varlink files, which GetInterfaceDescription returns (see embed.py). */
extern const char interface_io_stackd[];
extern const char interface_org_varlink_service[];

#endif
