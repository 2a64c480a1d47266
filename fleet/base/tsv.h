/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_FLEET_BASE_TSV_H
#define STACKD_FLEET_BASE_TSV_H

/*
 * Writes and reads ClickHouse's format TabSeparated, and writes literals of its SQL. Text of users
 * gets into SQL only as hexadecimal digits. Any thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "common/int_list.h"
#include "common/text.h"
#include "proto/wire.h"

struct arena;

/* Append one field of a row. NULL counts as an empty text. The caller writes tabs and newlines. */
void tsv_put(struct text *out, const char *text);
void tsv_put_uint(struct text *out, uint64_t value);

/* Append one field that is an array. A negative number becomes 0. */
void tsv_put_strings(struct text *out, const struct wire_strs *list);
void tsv_put_ints(struct text *out, const struct int_list *list);

/* Appends one member, a text, of an array whose brackets and commas the caller writes. */
void tsv_put_quoted(struct text *out, const char *text);

/* Appends a text to SQL, as unhex('...'). NULL counts as an empty text. */
void sql_put_text(struct text *out, const char *text);

/*
 * Splits a line, without its newline, into fields, in place. At most `max` fields are stored; they
 * still have their escapes. Returns the number of fields of the line, which may be greater.
 */
size_t tsv_split(char *line, char **fields, size_t max);

/* Undoes the escapes of a field that is a text, in place. Returns the field. */
char *tsv_text(char *field);

/*
 * Read a field that is an array of texts, or of numbers, into the arena. Return 0; -EINVAL for
 * another text; or -ENOMEM.
 */
int tsv_strings(const char *field, struct arena *arena, struct wire_strs *out);
int tsv_ints(const char *field, struct arena *arena, struct int_list *out);

/* Reads a number of at most 64 bits. Returns 0 or -EINVAL. */
int tsv_uint(const char *field, uint64_t *out);

#endif
