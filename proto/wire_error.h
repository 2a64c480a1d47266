/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_PROTO_WIRE_ERROR_H
#define STACKD_PROTO_WIRE_ERROR_H

/*
 * The errors that may answer a call. Each has a code in C and a name on the wire. The names and
 * parameters are those of the .varlink files. Any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "proto/wire.h"

struct wire_error {
	enum wire_error_code code;
	const char *what;    /* first parameter of the error if it is a string; may be NULL */
	int64_t limit;	     /* value of the error's first parameter if that is a number */
	const char *message; /* text for people; may be NULL */
};

/* The name of an error on the wire, and the parameters that it has. */
struct wire_error_shape {
	const char *name;  /* full name: "io.stackd.NoData" */
	const char *first; /* name of the first parameter; NULL: the error has none */
	bool is_limit;	   /* the first parameter is a number, from wire_error.limit */
	bool has_message;
};

/* The names and parameters of all errors, indexed by code. Generated from the .varlink files. */
extern const struct wire_error_shape wire_error_shapes[WIRE_ERRORS];

/* Returns the name and parameters of the error with this code; NULL for ERROR_NONE. */
const struct wire_error_shape *wire_error_shape(enum wire_error_code code);

/* Returns the full name of the error with this code, "" for ERROR_NONE. */
const char *wire_error_name(enum wire_error_code code);

/* Returns the code of the error with this full name, ERROR_NONE if the name is not known. */
enum wire_error_code wire_error_code(const char *name);

/*
 * Fills *error with the code, a copy of `what` (which may be NULL) and the formatted message.
 * Returns its argument `r`, so that a caller can set the error and return in one statement.
 */
int wire_error_set(struct wire_error *error, int r, enum wire_error_code code, const char *what,
		   const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Frees the strings of an error that wire_error_set() filled, and empties the error. */
void wire_error_clear(struct wire_error *error);

#endif
