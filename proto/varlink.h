/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_PROTO_VARLINK_H
#define STACKD_PROTO_VARLINK_H

/*
 * Reads and writes the envelope of a message: of a call {method, parameters, more, oneway} or a
 * reply {parameters, continues, error}. A message that is written includes the NUL that ends it.
 * Does no I/O. Any thread.
 */

#include <stdbool.h>
#include <stddef.h>

#include "common/text.h"
#include "proto/wire.h"
#include "proto/wire_error.h"

struct arena;
struct json_object;
struct record;

/* Limits of a message. The parameters of io.stackd are nested 8 deep at most. */
enum {
	VARLINK_MAX_DEPTH = 32,
	VARLINK_MAX_REQUEST_VALUES = 65536, /* JSON values in a request */
	VARLINK_MAX_METHOD = 255,	    /* bytes of a method's or error's name */
	VARLINK_MAX_REPLY = 1024 * 1024,    /* bytes of a reply with its NUL */
};

enum varlink_flags {
	VARLINK_MORE = 1,      /* a call: the client takes several replies */
	VARLINK_ONEWAY = 2,    /* a call: the client wants no reply */
	VARLINK_CONTINUES = 4, /* a reply: more replies follow */
};

/* A message that was read. Its strings live as long as it does. */
struct varlink_message {
	const char *method; /* NULL for a reply */
	bool more;
	bool oneway;
	bool continues;
	const char *error;		/* NULL unless it is a reply with an error */
	struct json_object *root;	/* private */
	struct json_object *parameters; /* private; NULL: the message has none */
};

/* Names a parameter that cannot be decoded ("filter.pids[2]") and says why. */
struct codec_error {
	char parameter[128];
	char message[128];
};

/*
 * Read a NUL-ended text of len bytes as a call or a reply. Return 0 with *out, which the caller
 * frees; -EBADMSG for a text that is not one (bad JSON or UTF-8, a member that is named twice or
 * has the wrong type, a NUL in a string); -EMSGSIZE for one beyond the limits; -ENOMEM.
 */
int varlink_call_parse(const char *text, size_t len, struct varlink_message **out);
int varlink_reply_parse(const char *text, size_t len, struct varlink_message **out);
struct varlink_message *varlink_message_free(struct varlink_message *message);
void varlink_message_freep(struct varlink_message **message);

/*
 * Append a message to out. record describes params; both are NULL for no parameters. Return
 * out->error.
 */
int varlink_call_encode(const char *method, const struct record *record, const void *params,
			unsigned flags, struct text *out);
int varlink_reply_encode(const struct record *record, const void *params, unsigned flags,
			 struct text *out);

/* Appends an error reply; -EINVAL for ERROR_NONE. Returns out->error. */
int varlink_error_encode(const struct wire_error *error, struct text *out);

/*
 * Reads the error of a reply; its strings are in the arena. An error that is not known here has
 * ERROR_NONE and no parameters. -EINVAL when the reply is not an error, -ENOMEM.
 */
int varlink_error_decode(const struct varlink_message *message, struct arena *arena,
			 struct wire_error *out);

/* The text of the .varlink files, which GetInterfaceDescription returns (see embed.py). */
extern const char interface_io_stackd[];
extern const char interface_org_varlink_service[];

#endif
