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

/* How a field is kept in C; proto/generate.py says which type of the definition that is. */
enum field_kind {
	FIELD_STRING,	  /* const char * */
	FIELD_INT,	  /* int64_t */
	FIELD_BOOL,	  /* bool */
	FIELD_TRISTATE,	  /* int: an optional bool */
	FIELD_TIME,	  /* int64_t, {ns, text} on the wire */
	FIELD_STRINGS,	  /* struct wire_strs */
	FIELD_INTS,	  /* struct int_list */
	FIELD_STRUCT,	  /* a struct inside the struct */
	FIELD_STRUCT_PTR, /* a pointer to a struct, NULL where absent */
	FIELD_STRUCTS,	  /* a list of structs */
};

struct field {
	const char *name;
	enum field_kind kind;
	bool is_optional;
	size_t offset;
	const struct record *record; /* for FIELD_STRUCT, _STRUCT_PTR and _STRUCTS */
};

struct record {
	const char *name; /* "Type"; "Method" for a request, "Method()" for a reply */
	size_t size;
	const struct field *fields;
	size_t n_fields;
};

/* Any of the lists of wire.h: all are a pointer and a number of members. */
struct record_list {
	void *v;
	size_t n;
};

/* Appends a struct as a JSON object. A failure is in out->error: -EINVAL for a missing string. */
void record_encode(const struct record *record, const void *base, struct text *out);

/*
 * Decodes a JSON object (NULL: an empty one) into a struct. Members that the record does not have
 * are ignored. Returns 0; or, with *out unchanged, -EINVAL with *error, or -ENOMEM.
 */
int record_decode(const struct record *record, struct json_object *object, struct arena *arena,
		  void *out, struct codec_error *error);

/* Decodes as record_decode() does, but refuses members that the record does not have. */
int record_decode_strict(const struct record *record, struct json_object *object,
			 struct arena *arena, void *out, struct codec_error *error);

/* Copies a struct and all that it points to into the arena. 0, or -ENOMEM with *to undefined. */
int record_copy(const struct record *record, const void *from, struct arena *arena, void *to);

#endif
