/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_PROTO_VARLINK_H
#define STACKD_PROTO_VARLINK_H

/*
 * The envelope of a message: a call {method, parameters, more, oneway} or a reply
 * {parameters, continues, error}. Text in, struct out, and back. What is encoded includes the NUL
 * that ends it. No I/O, no thread of its own.
 */

#include <stdbool.h>
#include <stddef.h>

#include "common/text.h"
#include "proto/wire.h"
#include "proto/wire_error.h"

struct arena;
struct json_object;
struct record;

/* Limits of a message. Nothing of io.stackd nests deeper than 8. */
enum {
	VARLINK_MAX_DEPTH = 32,
	VARLINK_MAX_REQUEST_VALUES = 65536, /* JSON values in a request */
	VARLINK_MAX_METHOD = 255,	    /* bytes of a method's or error's name */
	VARLINK_MAX_REPLY = 1024 * 1024,    /* bytes of a reply with its NUL */
};

enum varlink_flags {
	VARLINK_MORE = 1,      /* call */
	VARLINK_ONEWAY = 2,    /* call */
	VARLINK_CONTINUES = 4, /* reply */
};

/* A message that was read. The strings live as long as it. */
struct varlink_message {
	const char *method; /* of a call */
	bool more;
	bool oneway;
	bool continues;
	const char *error;		/* of a reply, NULL when it is not an error */
	struct json_object *root;	/* private */
	struct json_object *parameters; /* private, NULL where there are none */
};

/* Names the parameter that cannot be taken: "filter.pids[2]". */
struct codec_error {
	char parameter[128];
	char message[128];
};

/*
 * Read a NUL-ended text of len bytes as a call or a reply; *out is the caller's. -EBADMSG when it
 * is not one (bad JSON, bad UTF-8, a key twice, a NUL in a string, a member of the wrong type),
 * -EMSGSIZE when it is nested or has values beyond the limits, -ENOMEM.
 */
int varlink_call_parse(const char *text, size_t len, struct varlink_message **out);
int varlink_reply_parse(const char *text, size_t len, struct varlink_message **out);
struct varlink_message *varlink_message_free(struct varlink_message *message);
void varlink_message_freep(struct varlink_message **message);

/*
 * Append a message to out; record describes params. Both may be NULL: no parameters.
 * Return out->error.
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

/* The definition files, as GetInterfaceDescription returns them; built from proto/ .varlink. */
extern const char interface_io_stackd[];
extern const char interface_org_varlink_service[];

#endif
