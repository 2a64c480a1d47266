/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proto/wire_copy.h"

#include <errno.h>
#include <string.h>

#include "common/arena.h"
#include "proto/record.h"

static int deepen(const struct record *record, struct arena *arena, void *base);

static int string_deepen(struct arena *arena, const char **string)
{
	if (!*string)
		return 0;
	*string = arena_strdup(arena, *string);
	return *string ? 0 : -ENOMEM;
}

static int pointer_deepen(const struct record *record, struct arena *arena, void **pointer)
{
	void *copy;

	if (!*pointer)
		return 0;
	copy = arena_alloc(arena, record->size);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, *pointer, record->size);
	*pointer = copy;
	return deepen(record, arena, copy);
}

static int list_deepen(const struct field *field, struct arena *arena, struct record_list *list)
{
	size_t size = field->kind == FIELD_STRUCTS ? field->record->size
		      : field->kind == FIELD_INTS  ? sizeof(int64_t)
						   : sizeof(char *);
	void *copy;
	int r = 0;

	if (list->n == 0)
		return 0;
	copy = arena_array(arena, list->n, size);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, list->v, list->n * size);
	list->v = copy;
	for (size_t i = 0; i < list->n && r == 0; i++)
		if (field->kind == FIELD_STRUCTS)
			r = deepen(field->record, arena, (char *)copy + i * size);
		else if (field->kind == FIELD_STRINGS)
			r = string_deepen(arena, (const char **)copy + i);
	return r;
}

/*
 * Copies everything that a struct points to into the arena, and makes the struct point to the
 * copies.
 */
static int deepen(const struct record *record, struct arena *arena, void *base)
{
	int r = 0;

	for (size_t i = 0; i < record->n_fields && r == 0; i++) {
		const struct field *field = &record->fields[i];
		void *member = (char *)base + field->offset;

		switch (field->kind) {
		case FIELD_STRING:
			r = string_deepen(arena, member);
			break;
		case FIELD_STRINGS:
		case FIELD_INTS:
		case FIELD_STRUCTS:
			r = list_deepen(field, arena, member);
			break;
		case FIELD_STRUCT:
			r = deepen(field->record, arena, member);
			break;
		case FIELD_STRUCT_PTR:
			r = pointer_deepen(field->record, arena, member);
			break;
		case FIELD_INT:
		case FIELD_BOOL:
		case FIELD_TRISTATE:
		case FIELD_TIME:
			break;
		}
	}
	return r;
}

int record_copy(const struct record *record, const void *from, struct arena *arena, void *to)
{
	memcpy(to, from, record->size);
	return deepen(record, arena, to);
}

int wire_filter_copy(struct arena *arena, const struct wire_filter *from, struct wire_filter *to)
{
	return record_copy(&record_filter, from, arena, to);
}

bool wire_filter_is_empty(const struct wire_filter *filter)
{
	for (size_t i = 0; i < record_filter.n_fields; i++)
		if (!record_is_absent(&record_filter.fields[i], filter))
			return false;
	return true;
}
