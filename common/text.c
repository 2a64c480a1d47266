/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 1024 };

void text_init(struct text *text, size_t limit)
{
	*text = (struct text){ .limit = limit, .indent = -1 };
}

void text_fini(struct text *text)
{
	free(text->data);
	text_init(text, text->limit);
}

void text_reset(struct text *text)
{
	text->len = 0;
	text->error = 0;
}

static bool text_reserve(struct text *text, size_t n)
{
	size_t capacity = text->capacity ? text->capacity : FIRST_CAPACITY;
	char *data;

	if (text->error < 0)
		return false;
	if (text->len > text->limit || n > text->limit - text->len) {
		text->error = -EMSGSIZE;
		return false;
	}
	if (n <= text->capacity - text->len)
		return true;
	while (capacity - text->len < n)
		if (__builtin_mul_overflow(capacity, (size_t)2, &capacity)) {
			text->error = -ENOMEM;
			return false;
		}
	data = realloc(text->data, capacity);
	if (!data) {
		text->error = -ENOMEM;
		return false;
	}
	text->data = data;
	text->capacity = capacity;
	return true;
}

void text_put(struct text *text, const char *data, size_t n)
{
	if (n == 0 || !text_reserve(text, n))
		return;
	memcpy(text->data + text->len, data, n);
	text->len += n;
}

void text_put_str(struct text *text, const char *s)
{
	text_put(text, s, strlen(s));
}

void text_put_int(struct text *text, int64_t value)
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%" PRId64, value);

	text_put(text, digits, (size_t)n);
}
