/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/base/local_times.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "client/base/term.h"
#include "common/base.h"
#include "common/when.h"

/* How a time looks in a message: 0 stands for any digit, + for either sign. */
static const char pattern[] = "0000-00-00T00:00:00+00:00";

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* True if the text begins with a time. */
static bool is_time(const char *text)
{
	for (size_t i = 0; pattern[i]; i++) {
		if (pattern[i] == '0'	? !is_digit(text[i])
		    : pattern[i] == '+' ? text[i] != '+' && text[i] != '-'
					: text[i] != pattern[i])
			return false;
	}
	return true;
}

/* Writes the time with which the text begins in the client's zone. False if there is none. */
static bool write_time(FILE *out, const char *text, int64_t now)
{
	const struct when_context context = { .use = WHEN_AT, .now = now };
	char time[sizeof(pattern)] = "", local[64];
	struct tm tm, present;
	time_t at, today = (time_t)(now / NS_PER_S);
	int64_t ns;

	if (!is_time(text))
		return false;
	memcpy(time, text, sizeof(time) - 1);
	if (when_parse(time, &context, &ns))
		return false;
	at = (time_t)(ns / NS_PER_S);
	if (!localtime_r(&at, &tm) || !localtime_r(&today, &present))
		return false;
	strftime(local, sizeof(local),
		 tm.tm_year == present.tm_year && tm.tm_yday == present.tm_yday
			 ? "%H:%M:%S %Z"
			 : "%Y-%m-%d %H:%M:%S %Z",
		 &tm);
	fputs(local, out);
	return true;
}

char *local_times(const char *message, int64_t now)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	must(out);
	while (*message) {
		if (write_time(out, message, now))
			message += sizeof(pattern) - 1;
		else
			putc(*message++, out);
	}
	fclose(out);
	return must(text);
}
