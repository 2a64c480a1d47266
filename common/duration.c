/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/duration.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/base.h"

#define NS_PER_MIN  (60 * NS_PER_S)
#define NS_PER_HOUR (60 * NS_PER_MIN)
#define NS_PER_DAY  (24 * NS_PER_HOUR)

/* systemd's: a year of 365.25 days, a month the twelfth of it. */
#define NS_PER_YEAR  (INT64_C(31557600) * NS_PER_S)
#define NS_PER_MONTH (NS_PER_YEAR / 12)

static const struct {
	const char *name;
	int64_t ns;
} units[] = {
	{ "ns", 1 },
	{ "nsec", 1 },
	{ "us", NS_PER_US },
	{ "usec", NS_PER_US },
	{ "\xc2\xb5s", NS_PER_US }, /* micro sign */
	{ "\xce\xbcs", NS_PER_US }, /* greek mu */
	{ "ms", NS_PER_MS },
	{ "msec", NS_PER_MS },
	{ "s", NS_PER_S },
	{ "sec", NS_PER_S },
	{ "second", NS_PER_S },
	{ "seconds", NS_PER_S },
	{ "m", NS_PER_MIN },
	{ "min", NS_PER_MIN },
	{ "minute", NS_PER_MIN },
	{ "minutes", NS_PER_MIN },
	{ "h", NS_PER_HOUR },
	{ "hr", NS_PER_HOUR },
	{ "hour", NS_PER_HOUR },
	{ "hours", NS_PER_HOUR },
	{ "d", NS_PER_DAY },
	{ "day", NS_PER_DAY },
	{ "days", NS_PER_DAY },
	{ "w", 7 * NS_PER_DAY },
	{ "week", 7 * NS_PER_DAY },
	{ "weeks", 7 * NS_PER_DAY },
	{ "M", NS_PER_MONTH },
	{ "month", NS_PER_MONTH },
	{ "months", NS_PER_MONTH },
	{ "y", NS_PER_YEAR },
	{ "year", NS_PER_YEAR },
	{ "years", NS_PER_YEAR },
};

/* The part of a text that has not been read yet. */
struct cursor {
	const char *at;
	const char *end;
};

static void skip_space(struct cursor *c)
{
	while (c->at < c->end && (*c->at == ' ' || *c->at == '\t'))
		c->at++;
}

static bool at_digit(const struct cursor *c)
{
	return c->at < c->end && isdigit((unsigned char)*c->at);
}

/* Whole digits into *whole, what follows a point into *billionths. */
static int read_number(struct cursor *c, int64_t *whole, int64_t *billionths)
{
	int64_t value = 0, fraction = 0, scale = 100000000;

	if (!at_digit(c))
		return -EINVAL;
	for (; at_digit(c); c->at++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, *c->at - '0', &value))
			return -ERANGE;
	if (c->at < c->end && *c->at == '.') {
		c->at++;
		if (!at_digit(c))
			return -EINVAL;
		for (; at_digit(c); c->at++, scale /= 10)
			fraction += scale * (*c->at - '0');
	}
	*whole = value;
	*billionths = fraction;
	return 0;
}

/* *unit is 0 where there is none. */
static int read_unit(struct cursor *c, int64_t *unit)
{
	const char *start = c->at;
	size_t n;

	while (c->at < c->end && (isalpha((unsigned char)*c->at) || (unsigned char)*c->at >= 0x80))
		c->at++;
	n = (size_t)(c->at - start);
	if (n == 0) {
		*unit = 0;
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (strlen(units[i].name) == n && memcmp(units[i].name, start, n) == 0) {
			*unit = units[i].ns;
			return 0;
		}
	return -EINVAL;
}

static int add_term(int64_t whole, int64_t billionths, int64_t unit, int64_t *sum)
{
	int64_t term;

	if (__builtin_mul_overflow(whole, unit, &term) || __builtin_add_overflow(*sum, term, sum))
		return -ERANGE;
	/* unit * billionths would overflow from a few seconds on; 128 bits hold it. */
	term = (int64_t)((__int128)unit * billionths / NS_PER_S);
	return __builtin_add_overflow(*sum, term, sum) ? -ERANGE : 0;
}

int duration_parse_n(const char *text, size_t n, int64_t bare_unit_ns, int64_t *ns_out)
{
	struct cursor c = { text, text + n };
	int64_t whole, billionths, unit, sum = 0;
	size_t terms = 0;
	int r;

	skip_space(&c);
	do {
		r = read_number(&c, &whole, &billionths);
		if (r < 0)
			return r;
		skip_space(&c);
		r = read_unit(&c, &unit);
		if (r < 0)
			return r;
		if (unit == 0) {
			/* "5 30" or "1h 30" could mean anything: a bare number stands alone. */
			if (terms > 0 || c.at < c.end)
				return -EINVAL;
			unit = bare_unit_ns;
		}
		terms++;
		r = add_term(whole, billionths, unit, &sum);
		if (r < 0)
			return r;
		skip_space(&c);
	} while (c.at < c.end);
	*ns_out = sum;
	return 0;
}

int duration_parse(const char *text, int64_t bare_unit_ns, int64_t *ns_out)
{
	return duration_parse_n(text, strlen(text), bare_unit_ns, ns_out);
}

/* value / unit with as many decimals as leave at least three digits; cut, not rounded up. */
static void format_decimal(int64_t ns, int64_t unit, const char *name, char *text)
{
	int64_t whole = ns / unit, thousandths = ns % unit * 1000 / unit;

	if (thousandths == 0)
		snprintf(text, DURATION_TEXT_MAX, "%" PRId64 " %s", whole, name);
	else if (whole >= 100)
		snprintf(text, DURATION_TEXT_MAX, "%" PRId64 ".%" PRId64 " %s", whole,
			 thousandths / 100, name);
	else if (whole >= 10)
		snprintf(text, DURATION_TEXT_MAX, "%" PRId64 ".%02" PRId64 " %s", whole,
			 thousandths / 10, name);
	else
		snprintf(text, DURATION_TEXT_MAX, "%" PRId64 ".%03" PRId64 " %s", whole,
			 thousandths, name);
}

static void format_pair(int64_t ns, int64_t big, const char *big_name, int64_t small,
			const char *small_name, char *text)
{
	int64_t rest = ns % big / small;

	if (rest == 0)
		snprintf(text, DURATION_TEXT_MAX, "%" PRId64 " %s", ns / big, big_name);
	else
		snprintf(text, DURATION_TEXT_MAX, "%" PRId64 " %s %" PRId64 " %s", ns / big,
			 big_name, rest, small_name);
}

void duration_format(int64_t ns, char text[static DURATION_TEXT_MAX])
{
	if (ns < 0)
		snprintf(text, DURATION_TEXT_MAX, "%" PRId64 " ns", ns);
	else if (ns == 0)
		snprintf(text, DURATION_TEXT_MAX, "0 s");
	else if (ns < NS_PER_US)
		snprintf(text, DURATION_TEXT_MAX, "%" PRId64 " ns", ns);
	else if (ns < NS_PER_MS)
		format_decimal(ns, NS_PER_US, "us", text);
	else if (ns < NS_PER_S)
		format_decimal(ns, NS_PER_MS, "ms", text);
	else if (ns < 10 * NS_PER_MIN && (ns < 2 * NS_PER_MIN || ns % NS_PER_MIN != 0))
		format_decimal(ns, NS_PER_S, "s", text);
	else if (ns < NS_PER_HOUR)
		format_pair(ns, NS_PER_MIN, "min", NS_PER_S, "s", text);
	else if (ns < NS_PER_DAY)
		format_pair(ns, NS_PER_HOUR, "h", NS_PER_MIN, "min", text);
	else
		format_pair(ns, NS_PER_DAY, "d", NS_PER_HOUR, "h", text);
}
