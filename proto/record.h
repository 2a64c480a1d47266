/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_PROTO_RECORD_H
#define STACKD_PROTO_RECORD_H

/*
 * Encodes, decodes and copies any struct of the wire, by a table of its fields: writes it as JSON,
 * reads it from JSON, or makes a copy. The tables are generated and constant (proto/wire.h declares
 * them). Only proto/ and its tests include this. Any thread.
 */

#include <stdbool.h>
#include <stddef.h>

#include "common/text.h"

struct arena;
struct codec_error;
struct json_object;

/*
 * The C type of a field. The comment at the top of proto/generate.py says which types of a .varlink
 * file become which C types.
 */
enum field_kind {
	FIELD_STRING,	  /* a const char * */
	FIELD_INT,	  /* an int64_t */
	FIELD_BOOL,	  /* a bool */
	FIELD_TRISTATE,	  /* an int: an optional bool, which is 0, 1 or absent */
	FIELD_TIME,	  /* an int64_t in ns; on the wire it is an object {ns, text} */
	FIELD_STRINGS,	  /* a struct wire_strs, a list of strings */
	FIELD_INTS,	  /* a struct int_list, a list of numbers */
	FIELD_STRUCT,	  /* a struct, stored inside the struct that has the field */
	FIELD_STRUCT_PTR, /* a pointer to a struct; NULL: the field is absent */
	FIELD_STRUCTS,	  /* a list of structs, such as a struct wire_rows */
};

struct field {
	const char *name;
	enum field_kind kind;
	bool is_optional;
	size_t offset;
	/* Describes the struct in a FIELD_STRUCT, FIELD_STRUCT_PTR or FIELD_STRUCTS; else NULL. */
	const struct record *record;
};

/* The most fields of a struct; generate.py refuses more. */
enum { RECORD_FIELDS_MAX = 128 };

struct record {
	/* name of a type; "METHOD" for the request, "METHOD()" for the reply of a method */
	const char *name;
	size_t size;
	const struct field *fields;
	size_t n_fields;
};

/* The layout that all lists of wire.h have: a pointer, and the number of members. */
struct record_list {
	void *v;
	size_t n;
};

/* True if the field of the struct at `base` has no value; false if it is not optional. */
bool record_is_absent(const struct field *field, const void *base);

/*
 * Appends a struct as a JSON object. Sets out->error if it fails: to -EINVAL if a string that is
 * not optional is NULL.
 */
void record_encode(const struct record *record, const void *base, struct text *out);

/*
 * Decodes a JSON object into a struct. NULL counts as an empty object. Members of the object that
 * the struct does not have are ignored. Returns 0; or, with *out unchanged, -EINVAL with *error
 * filled, or -ENOMEM.
 */
int record_decode(const struct record *record, struct json_object *object, struct arena *arena,
		  void *out, struct codec_error *error);

/*
 * Decodes as record_decode() does, but returns -EINVAL if the object has a member that the struct
 * does not have.
 */
int record_decode_strict(const struct record *record, struct json_object *object,
			 struct arena *arena, void *out, struct codec_error *error);

/*
 * Copies the struct at `from` to `to`. Everything that the struct points to is copied into the
 * arena. Returns 0, or -ENOMEM; the struct at `to` is then undefined.
 */
int record_copy(const struct record *record, const void *from, struct arena *arena, void *to);

#endif
