/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_PROTO_RECORD_H
#define STACKD_PROTO_RECORD_H

/*
 * A struct of the wire described by a table of its fields, and what is done with any struct by its
 * table: it is written as JSON, read from JSON, or copied. The tables are generated and constant
 * (proto/wire.h names them). Only proto/ and its tests include this. Any thread.
 */

#include <stdbool.h>
#include <stddef.h>

#include "common/text.h"

struct arena;
struct codec_error;
struct json_object;

enum field_kind {
	FIELD_STRING,	  /* const char * */
	FIELD_INT,	  /* int64_t */
	FIELD_BOOL,	  /* bool */
	FIELD_TRISTATE,	  /* int, WIRE_BOOL_ABSENT where absent */
	FIELD_TIME,	  /* int64_t, {ns, text} on the wire */
	FIELD_STRINGS,	  /* struct wire_strs */
	FIELD_INTS,	  /* struct int_list */
	FIELD_STRUCT,	  /* a struct inside */
	FIELD_STRUCT_PTR, /* a pointer to one */
	FIELD_STRUCTS,	  /* a list: pointer v, size_t n */
};

struct field {
	const char *name;
	enum field_kind kind;
	bool is_optional;
	size_t offset;
	const struct record *record; /* of FIELD_STRUCT* */
};

struct record {
	const char *name; /* the type in the interface; of parameters "Method" and "Method()" */
	size_t size;
	const struct field *fields;
	size_t n_fields;
};

/* Appends base as a JSON object; failures are in out->error (-EINVAL: a string is missing). */
void record_encode(const struct record *record, const void *base, struct text *out);

/* object NULL is an empty one. *out is untouched on failure: -EINVAL with *error, -ENOMEM. */
int record_decode(const struct record *record, struct json_object *object, struct arena *arena,
		  void *out, struct codec_error *error);

/* The same, but a member that the record does not have is an error. */
int record_decode_strict(const struct record *record, struct json_object *object,
			 struct arena *arena, void *out, struct codec_error *error);

/* Copies a struct and all that it points to into the arena. 0, or -ENOMEM with *to undefined. */
int record_copy(const struct record *record, const void *from, struct arena *arena, void *to);

#endif
