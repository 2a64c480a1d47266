/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base.h"
#include "common/utf8.h"

enum { FIRST_CAPACITY = 1024 };

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

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

/* What stands for a byte that JSON does not allow in a string; "" for one that it does. */
static const char *json_escape(unsigned char c, char buffer[8])
{
	switch (c) {
	case '"':
		return "\\\"";
	case '\\':
		return "\\\\";
	case '\n':
		return "\\n";
	case '\r':
		return "\\r";
	case '\t':
		return "\\t";
	default:
		if (c >= 0x20)
			return "";
		snprintf(buffer, 8, "\\u%04x", c);
		return buffer;
	}
}

void text_put_json_string(struct text *text, const char *s)
{
	const char *p = s;
	const char *plain = s; /* what is not yet copied, and needs no change */

	text_put(text, "\"", 1);
	while (*p) {
		char buffer[8];
		size_t n = utf8_length(p);
		const char *instead = n == 0 ? replacement : json_escape((unsigned char)*p, buffer);

		if (*instead) {
			text_put(text, plain, (size_t)(p - plain));
			text_put_str(text, instead);
			plain = p + 1;
		}
		p += n > 0 ? n : 1;
	}
	text_put(text, plain, (size_t)(p - plain));
	text_put(text, "\"", 1);
}

void text_put_json_time(struct text *text, int64_t epoch_ns)
{
	int64_t ns = epoch_ns % NS_PER_S;
	time_t seconds = (time_t)(epoch_ns / NS_PER_S);
	char date[32], fraction[16] = "", line[80];
	long zone;
	struct tm tm;
	int n;

	if (ns < 0) {
		ns += NS_PER_S;
		seconds--;
	}
	if (!localtime_r(&seconds, &tm)) {
		text->error = text->error ? text->error : -EINVAL;
		return;
	}
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	if (ns % NS_PER_US != 0)
		snprintf(fraction, sizeof(fraction), ".%09" PRId64, ns);
	else if (ns % NS_PER_MS != 0)
		snprintf(fraction, sizeof(fraction), ".%06" PRId64, ns / NS_PER_US);
	else if (ns != 0)
		snprintf(fraction, sizeof(fraction), ".%03" PRId64, ns / NS_PER_MS);
	zone = labs(tm.tm_gmtoff) / 60;
	n = snprintf(line, sizeof(line), "\"%s%s%c%02ld:%02ld\"", date, fraction,
		     tm.tm_gmtoff < 0 ? '-' : '+', zone / 60, zone % 60);
	text_put(text, line, (size_t)n);
}

void text_put_break(struct text *text)
{
	if (text->indent < 0)
		return;
	text_put(text, "\n", 1);
	for (int i = 0; i < text->indent; i++)
		text_put(text, "\t", 1);
}

char *text_take(struct text *text)
{
	char *s;

	if (text->limit < SIZE_MAX)
		text->limit++; /* the NUL is not part of the text */
	text_put(text, "", 1);
	s = text->error < 0 ? NULL : TAKE(text->data);
	text_fini(text);
	return s;
}
