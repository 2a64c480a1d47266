/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proto/json_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/base.h"
#include "common/text.h"
#include "common/utf8.h"

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD, the replacement character */

/*
 * Returns the escape sequence for a byte that a JSON string may not contain as it is, "" for any
 * other byte.
 */
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

void json_put_string(struct text *text, const char *s)
{
	const char *p = s;
	const char *plain = s; /* the first byte that has not been copied to the text yet */

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

void json_put_time(struct text *text, int64_t epoch_ns)
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

void json_put_break(struct text *text)
{
	if (text->indent < 0)
		return;
	text_put(text, "\n", 1);
	for (int i = 0; i < text->indent; i++)
		text_put(text, "\t", 1);
}
