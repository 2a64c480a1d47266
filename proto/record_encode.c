/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proto/record.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "proto/json_text.h"
#include "proto/wire.h"

/* Returns the value of a field of the struct at `base`. `type` is the C type of the field. */
#define MEMBER(type, base, field)                                                        \
	({                                                                               \
		type _value;                                                             \
		memcpy(&_value, (const char *)(base) + (field)->offset, sizeof(_value)); \
		_value;                                                                  \
	})

bool record_is_absent(const struct field *field, const void *base)
{
	switch (field->kind) {
	case FIELD_STRING:
		return !MEMBER(const char *, base, field);
	case FIELD_INT:
	case FIELD_TIME:
		return MEMBER(int64_t, base, field) == WIRE_ABSENT;
	case FIELD_TRISTATE:
		return MEMBER(int, base, field) == WIRE_BOOL_ABSENT;
	case FIELD_STRINGS:
	case FIELD_INTS:
	case FIELD_STRUCTS:
		return MEMBER(struct record_list, base, field).n == 0;
	case FIELD_STRUCT_PTR:
		return !MEMBER(const void *, base, field);
	case FIELD_BOOL:
	case FIELD_STRUCT:
		return false;
	}
	return false;
}

static void open_bracket(struct text *out, const char *bracket)
{
	text_put_str(out, bracket);
	if (out->indent >= 0)
		out->indent++;
}

static void close_bracket(struct text *out, const char *bracket, bool is_empty)
{
	if (out->indent >= 0)
		out->indent--;
	if (!is_empty)
		json_put_break(out);
	text_put_str(out, bracket);
}

static void encode_string(const char *s, struct text *out)
{
	if (s)
		json_put_string(out, s);
	else if (out->error == 0)
		out->error = -EINVAL;
}

static void encode_bool(bool value, struct text *out)
{
	text_put_str(out, value ? "true" : "false");
}

static void encode_time(int64_t epoch_ns, struct text *out)
{
	text_put_str(out, "{\"ns\":");
	text_put_int(out, epoch_ns);
	text_put_str(out, ",\"text\":");
	json_put_time(out, epoch_ns);
	text_put_str(out, "}");
}

static void encode_member(const struct field *field, const void *base, size_t i, struct text *out)
{
	struct record_list list = MEMBER(struct record_list, base, field);

	if (field->kind == FIELD_STRINGS)
		encode_string(((const char *const *)list.v)[i], out);
	else if (field->kind == FIELD_INTS)
		text_put_int(out, ((const int64_t *)list.v)[i]);
	else
		record_encode(field->record, (const char *)list.v + i * field->record->size, out);
}

static void encode_list(const struct field *field, const void *base, struct text *out)
{
	size_t n = MEMBER(struct record_list, base, field).n;

	open_bracket(out, "[");
	for (size_t i = 0; i < n && out->error == 0; i++) {
		if (i > 0)
			text_put_str(out, ",");
		json_put_break(out);
		encode_member(field, base, i, out);
	}
	close_bracket(out, "]", n == 0);
}

static void encode_field(const struct field *field, const void *base, struct text *out)
{
	switch (field->kind) {
	case FIELD_STRING:
		encode_string(MEMBER(const char *, base, field), out);
		break;
	case FIELD_INT:
		text_put_int(out, MEMBER(int64_t, base, field));
		break;
	case FIELD_BOOL:
		encode_bool(MEMBER(bool, base, field), out);
		break;
	case FIELD_TRISTATE:
		encode_bool(MEMBER(int, base, field) != 0, out);
		break;
	case FIELD_TIME:
		encode_time(MEMBER(int64_t, base, field), out);
		break;
	case FIELD_STRINGS:
	case FIELD_INTS:
	case FIELD_STRUCTS:
		encode_list(field, base, out);
		break;
	case FIELD_STRUCT:
		record_encode(field->record, (const char *)base + field->offset, out);
		break;
	case FIELD_STRUCT_PTR:
		record_encode(field->record, MEMBER(const void *, base, field), out);
		break;
	}
}

void record_encode(const struct record *record, const void *base, struct text *out)
{
	bool is_empty = true;

	open_bracket(out, "{");
	for (size_t i = 0; i < record->n_fields; i++) {
		const struct field *field = &record->fields[i];

		if (field->is_optional && record_is_absent(field, base))
			continue;
		if (!is_empty)
			text_put_str(out, ",");
		is_empty = false;
		json_put_break(out);
		text_put_str(out, "\"");
		text_put_str(out, field->name);
		text_put_str(out, out->indent < 0 ? "\":" : "\": ");
		encode_field(field, base, out);
	}
	close_bracket(out, "}", is_empty);
}
