/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fleet/base/tsv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"

/* The letter that stands for a byte after a backslash; 0: the byte is written as it is. */
static char escape_of(char c)
{
	switch (c) {
	case '\t':
		return 't';
	case '\n':
		return 'n';
	case '\r':
		return 'r';
	case '\\':
	case '\'':
		return c;
	default:
		return 0;
	}
}

/* The byte that a letter after a backslash stands for. */
static char escaped(char letter)
{
	switch (letter) {
	case 't':
		return '\t';
	case 'n':
		return '\n';
	case 'r':
		return '\r';
	case 'b':
		return '\b';
	case 'f':
		return '\f';
	case 'a':
		return '\a';
	case 'v':
		return '\v';
	default:
		return letter;
	}
}

void tsv_put(struct text *out, const char *text)
{
	const char *from = text ? text : "", *at;

	for (at = from; *at; at++) {
		const char letter[2] = { '\\', escape_of(*at) };

		if (!letter[1])
			continue;
		text_put(out, from, (size_t)(at - from));
		text_put(out, letter, sizeof(letter));
		from = at + 1;
	}
	text_put(out, from, (size_t)(at - from));
}

void tsv_put_uint(struct text *out, uint64_t value)
{
	char digits[24];
	char *at = digits + sizeof(digits);

	do
		*--at = (char)('0' + value % 10);
	while (value /= 10);
	text_put(out, at, (size_t)(digits + sizeof(digits) - at));
}

void tsv_put_quoted(struct text *out, const char *text)
{
	text_put(out, "'", 1);
	tsv_put(out, text);
	text_put(out, "'", 1);
}

void tsv_put_strings(struct text *out, const struct wire_strs *list)
{
	text_put(out, "[", 1);
	for (size_t i = 0; i < list->n; i++) {
		if (i > 0)
			text_put(out, ",", 1);
		tsv_put_quoted(out, list->v[i]);
	}
	text_put(out, "]", 1);
}

void tsv_put_ints(struct text *out, const struct int_list *list)
{
	text_put(out, "[", 1);
	for (size_t i = 0; i < list->n; i++) {
		if (i > 0)
			text_put(out, ",", 1);
		tsv_put_uint(out, list->v[i] > 0 ? (uint64_t)list->v[i] : 0);
	}
	text_put(out, "]", 1);
}

void sql_put_text(struct text *out, const char *text)
{
	static const char digits[] = "0123456789abcdef";

	text_put_str(out, "unhex('");
	for (const char *at = text ? text : ""; *at; at++) {
		const char hex[2] = { digits[(unsigned char)*at >> 4],
				      digits[(unsigned char)*at & 15] };

		text_put(out, hex, sizeof(hex));
	}
	text_put_str(out, "')");
}

size_t tsv_split(char *line, char **fields, size_t max)
{
	size_t n = 0;
	char *tab;

	for (;;) {
		if (n < max)
			fields[n] = line;
		n++;
		tab = strchr(line, '\t');
		if (!tab)
			return n;
		*tab = '\0';
		line = tab + 1;
	}
}

char *tsv_text(char *field)
{
	char *to = field;

	for (const char *at = field; *at; at++) {
		if (*at == '\\' && at[1])
			*to++ = escaped(*++at);
		else
			*to++ = *at;
	}
	*to = '\0';
	return field;
}

int tsv_uint(const char *field, uint64_t *out)
{
	uint64_t value = 0;

	if (!*field)
		return -EINVAL;
	for (; *field; field++) {
		if (*field < '0' || *field > '9' || __builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*field - '0'), &value))
			return -EINVAL;
	}
	*out = value;
	return 0;
}

/* Reads a quoted text at *at into the arena, and moves *at behind it. */
static int read_quoted(const char **at, struct arena *arena, const char **out)
{
	const char *from = *at;
	char *text;
	size_t n;

	if (*from++ != '\'')
		return -EINVAL;
	for (n = 0; from[n] && from[n] != '\''; n++)
		if (from[n] == '\\' && !from[++n])
			return -EINVAL;
	if (!from[n])
		return -EINVAL;
	text = arena_strndup(arena, from, n);
	if (!text)
		return -ENOMEM;
	*out = tsv_text(text);
	*at = from + n + 1;
	return 0;
}

/* Reads a whole number at *at, and moves *at behind it. */
static int read_int(const char **at, int64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoll(*at, &end, 10);
	if (end == *at || errno)
		return -EINVAL;
	*at = end;
	return 0;
}

/* An upper bound for the number of members of an array. */
static size_t most_members(const char *field)
{
	size_t n = 1;

	for (; *field; field++)
		n += *field == ',';
	return n;
}

/* Reads the members of an array of texts or, if `ints` is not NULL, of numbers. */
static int read_array(const char *field, struct arena *arena, const char **texts, int64_t *ints,
		      size_t *n_out)
{
	size_t n = 0;
	int r;

	if (*field++ != '[')
		return -EINVAL;
	while (*field && *field != ']') {
		r = ints ? read_int(&field, &ints[n]) : read_quoted(&field, arena, &texts[n]);
		if (r < 0)
			return r;
		n++;
		if (*field == ',' && field[1] != ']')
			field++;
		else if (*field != ']')
			return -EINVAL;
	}
	if (strcmp(field, "]") != 0)
		return -EINVAL;
	*n_out = n;
	return 0;
}

int tsv_strings(const char *field, struct arena *arena, struct wire_strs *out)
{
	const char **texts = arena_array(arena, most_members(field), sizeof(*texts));
	size_t n;
	int r;

	if (!texts)
		return -ENOMEM;
	r = read_array(field, arena, texts, NULL, &n);
	if (r < 0)
		return r;
	*out = (struct wire_strs){ .v = texts, .n = n };
	return 0;
}

int tsv_ints(const char *field, struct arena *arena, struct int_list *out)
{
	int64_t *ints = arena_array(arena, most_members(field), sizeof(*ints));
	size_t n;
	int r;

	if (!ints)
		return -ENOMEM;
	r = read_array(field, arena, NULL, ints, &n);
	if (r < 0)
		return r;
	*out = (struct int_list){ .v = ints, .n = n };
	return 0;
}
