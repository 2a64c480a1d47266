/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proto/record.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "common/arena.h"
#include "proto/varlink.h"
#include "proto/wire.h"

/*
 * One step of the path to a member, with a link to the step before it. Error messages print the
 * path, like "filter.pids[2]".
 */
struct path {
	const struct path *up;
	const char *name; /* name of the member; NULL: it is member number `index` of a list */
	size_t index;
};

struct decoder {
	bool is_strict; /* true: a member that the struct does not have is an error */
	struct arena *arena;
	struct codec_error *error; /* receives the description of an error; may be NULL */
};

static void path_print(const struct path *path, char *out, size_t size)
{
	size_t used;

	if (path->up)
		path_print(path->up, out, size);
	used = strlen(out);
	if (path->name)
		snprintf(out + used, size - used, "%s%s", used ? "." : "", path->name);
	else
		snprintf(out + used, size - used, "[%zu]", path->index);
}

static int fail(const struct decoder *decoder, const struct path *path, const char *message)
{
	struct codec_error *error = decoder->error;

	if (!error)
		return -EINVAL;
	error->parameter[0] = '\0';
	path_print(path, error->parameter, sizeof(error->parameter));
	snprintf(error->message, sizeof(error->message), "%s", message);
	return -EINVAL;
}

static int decode_string(const struct decoder *decoder, const struct path *path,
			 struct json_object *value, const char **out)
{
	char *copy;

	if (!json_object_is_type(value, json_type_string))
		return fail(decoder, path, "must be a string");
	copy = arena_strdup(decoder->arena, json_object_get_string(value));
	if (!copy)
		return -ENOMEM;
	*out = copy;
	return 0;
}

/*
 * Decodes an integer. Refuses the least and the greatest number of 64 bits, because json-c returns
 * them for all numbers that need more than 64 bits.
 */
static int decode_int(const struct decoder *decoder, const struct path *path,
		      struct json_object *value, int64_t *out)
{
	int64_t i;

	if (!json_object_is_type(value, json_type_int))
		return fail(decoder, path, "must be an integer");
	i = json_object_get_int64(value);
	if (i == INT64_MAX || i == INT64_MIN)
		return fail(decoder, path, "must be less than 2^63 - 1 in size");
	*out = i;
	return 0;
}

static int decode_bool(const struct decoder *decoder, const struct path *path,
		       struct json_object *value, bool *out)
{
	if (!json_object_is_type(value, json_type_boolean))
		return fail(decoder, path, "must be true or false");
	*out = json_object_get_boolean(value);
	return 0;
}

static int decode_time(const struct decoder *decoder, const struct path *path,
		       struct json_object *value, int64_t *out)
{
	const struct path ns_path = { .up = path, .name = "ns" };
	struct json_object *ns = NULL;

	if (!json_object_is_type(value, json_type_object))
		return fail(decoder, path, "must be an object");
	if (!json_object_object_get_ex(value, "ns", &ns))
		return fail(decoder, &ns_path, "is missing");
	return decode_int(decoder, &ns_path, ns, out);
}

static int decode_object(const struct decoder *decoder, const struct path *path,
			 const struct record *record, struct json_object *object, void *base);

static int decode_pointer(const struct decoder *decoder, const struct path *path,
			  const struct record *record, struct json_object *value, void **out)
{
	void *p = arena_alloc(decoder->arena, record->size);
	int r;

	if (!p)
		return -ENOMEM;
	r = decode_object(decoder, path, record, value, p);
	if (r < 0)
		return r;
	*out = p;
	return 0;
}

static int decode_member(const struct decoder *decoder, const struct path *path,
			 const struct field *field, struct json_object *value, void *v)
{
	if (field->kind == FIELD_STRINGS)
		return decode_string(decoder, path, value, (const char **)v + path->index);
	if (field->kind == FIELD_INTS)
		return decode_int(decoder, path, value, (int64_t *)v + path->index);
	return decode_object(decoder, path, field->record, value,
			     (char *)v + path->index * field->record->size);
}

static int decode_list(const struct decoder *decoder, const struct path *path,
		       const struct field *field, struct json_object *value,
		       struct record_list *out)
{
	size_t size = field->kind == FIELD_STRUCTS ? field->record->size
		      : field->kind == FIELD_INTS  ? sizeof(int64_t)
						   : sizeof(char *);
	struct record_list list;
	int r;

	if (!json_object_is_type(value, json_type_array))
		return fail(decoder, path, "must be a list");
	list.n = json_object_array_length(value);
	list.v = arena_array(decoder->arena, list.n, size);
	if (!list.v)
		return -ENOMEM;
	for (size_t i = 0; i < list.n; i++) {
		const struct path member = { .up = path, .index = i };

		r = decode_member(decoder, &member, field, json_object_array_get_idx(value, i),
				  list.v);
		if (r < 0)
			return r;
	}
	*out = list;
	return 0;
}

static int decode_field(const struct decoder *decoder, const struct path *path,
			const struct field *field, struct json_object *value, void *base)
{
	void *member = (char *)base + field->offset;
	bool b = false;
	int r;

	switch (field->kind) {
	case FIELD_STRING:
		return decode_string(decoder, path, value, member);
	case FIELD_INT:
		return decode_int(decoder, path, value, member);
	case FIELD_BOOL:
		return decode_bool(decoder, path, value, member);
	case FIELD_TRISTATE:
		r = decode_bool(decoder, path, value, &b);
		if (r == 0)
			*(int *)member = b;
		return r;
	case FIELD_TIME:
		return decode_time(decoder, path, value, member);
	case FIELD_STRINGS:
	case FIELD_INTS:
	case FIELD_STRUCTS:
		return decode_list(decoder, path, field, value, member);
	case FIELD_STRUCT:
		return decode_object(decoder, path, field->record, value, member);
	case FIELD_STRUCT_PTR:
		return decode_pointer(decoder, path, field->record, value, member);
	}
	return -EINVAL;
}

/*
 * Marks an optional field as absent, in a struct that is all zero. Lists, strings and pointers are
 * absent when they are zero.
 */
static void set_absent(const struct field *field, void *base)
{
	void *member = (char *)base + field->offset;

	if (field->kind == FIELD_INT || field->kind == FIELD_TIME)
		*(int64_t *)member = WIRE_ABSENT;
	else if (field->kind == FIELD_TRISTATE)
		*(int *)member = WIRE_BOOL_ABSENT;
}

/*
 * Returns the index of the field of that name, or n_fields if there is none. Looks from field
 * `from` on first: members mostly come in the order of the fields.
 */
static size_t find_field(const struct record *record, const char *name, size_t from)
{
	for (size_t i = 0; i < record->n_fields; i++) {
		size_t k = from + i < record->n_fields ? from + i : from + i - record->n_fields;

		if (strcmp(record->fields[k].name, name) == 0)
			return k;
	}
	return record->n_fields;
}

/*
 * Decodes the members of an object, and notes in is_set which fields they are. A member that is
 * null counts as absent. A member that the struct does not have is refused if the decoder is
 * strict: if a mistyped filter were ignored, the answer would be wrong.
 */
static int decode_members(const struct decoder *decoder, const struct path *up,
			  const struct record *record, struct json_object *object, void *base,
			  bool *is_set)
{
	size_t next = 0;

	json_object_object_foreach(object, name, value)
	{
		const struct path path = { .up = up, .name = name };
		size_t i = find_field(record, name, next);
		int r;

		if (i == record->n_fields && decoder->is_strict)
			return fail(decoder, &path, "is unknown");
		if (i == record->n_fields || !value)
			continue;
		r = decode_field(decoder, &path, &record->fields[i], value, base);
		if (r < 0)
			return r;
		is_set[i] = true;
		next = i + 1;
	}
	return 0;
}

static int decode_fields(const struct decoder *decoder, const struct path *up,
			 const struct record *record, struct json_object *object, void *base)
{
	bool is_set[RECORD_FIELDS_MAX] = { 0 };
	int r = object ? decode_members(decoder, up, record, object, base, is_set) : 0;

	if (r < 0)
		return r;
	for (size_t i = 0; i < record->n_fields; i++) {
		const struct path path = { .up = up, .name = record->fields[i].name };

		if (is_set[i])
			continue;
		if (!record->fields[i].is_optional)
			return fail(decoder, &path, "is missing");
		set_absent(&record->fields[i], base);
	}
	return 0;
}

static int decode_object(const struct decoder *decoder, const struct path *path,
			 const struct record *record, struct json_object *object, void *base)
{
	if (!json_object_is_type(object, json_type_object))
		return fail(decoder, path, "must be an object");
	return decode_fields(decoder, path, record, object, base);
}

static int decode(const struct decoder *decoder, const struct record *record,
		  struct json_object *object, void *out)
{
	void *base = arena_alloc(decoder->arena, record->size);
	int r;

	if (!base)
		return -ENOMEM;
	r = decode_fields(decoder, NULL, record, object, base);
	if (r < 0)
		return r;
	memcpy(out, base, record->size);
	return 0;
}

int record_decode(const struct record *record, struct json_object *object, struct arena *arena,
		  void *out, struct codec_error *error)
{
	const struct decoder decoder = { .arena = arena, .error = error };

	return decode(&decoder, record, object, out);
}

int record_decode_strict(const struct record *record, struct json_object *object,
			 struct arena *arena, void *out, struct codec_error *error)
{
	const struct decoder decoder = { .arena = arena, .error = error, .is_strict = true };

	return decode(&decoder, record, object, out);
}
