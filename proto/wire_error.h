/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_PROTO_WIRE_ERROR_H
#define STACKD_PROTO_WIRE_ERROR_H

/*
 * The errors that a call may be answered with: a code each, and the name by which an error is
 * known on the wire. Names and parameters are those of the .varlink files. Any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "proto/wire.h"

struct wire_error {
	enum wire_error_code code;
	const char *what;    /* the first parameter where it is a string; optional */
	int64_t limit;	     /* the first parameter where it is a number; optional */
	const char *message; /* optional */
};

/* The name of an error on the wire, and its parameters. */
struct wire_error_shape {
	const char *name;  /* qualified: "io.stackd.NoData" */
	const char *first; /* name of the first parameter; NULL: it has none */
	bool is_limit;	   /* the first parameter is wire_error.limit */
	bool has_message;
};

/* Generated from the .varlink files, indexed by code. */
extern const struct wire_error_shape wire_error_shapes[WIRE_ERRORS];

/* Returns the shape of a code, NULL for ERROR_NONE. */
const struct wire_error_shape *wire_error_shape(enum wire_error_code code);

/* Returns the qualified name of a code, "" for ERROR_NONE. */
const char *wire_error_name(enum wire_error_code code);

/* Returns the code of a qualified name, ERROR_NONE where it is not known. */
enum wire_error_code wire_error_code(const char *name);

/* Fills an error with copies of what (may be NULL) and of the message. Returns r. */
int wire_error_set(struct wire_error *error, int r, enum wire_error_code code, const char *what,
		   const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Frees the strings of an error that wire_error_set() filled, and empties it. */
void wire_error_clear(struct wire_error *error);

#endif
