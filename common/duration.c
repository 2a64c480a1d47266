/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/duration.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base.h"
#include "common/quantity.h"

#define NS_PER_MIN  (60 * NS_PER_S)
#define NS_PER_HOUR (60 * NS_PER_MIN)
#define NS_PER_DAY  (24 * NS_PER_HOUR)

/* A year has 365.25 days and a month is a twelfth of it, as in systemd. */
#define NS_PER_YEAR  (INT64_C(31557600) * NS_PER_S)
#define NS_PER_MONTH (NS_PER_YEAR / 12)

static const struct quantity_unit units[] = {
	{ "ns", 1 },
	{ "nsec", 1 },
	{ "us", NS_PER_US },
	{ "usec", NS_PER_US },
	{ "\xc2\xb5s", NS_PER_US }, /* U+00B5, the micro sign */
	{ "\xce\xbcs", NS_PER_US }, /* U+03BC, the Greek letter mu */
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

int duration_parse_n(const char *text, size_t n, int64_t bare_unit_ns, int64_t *ns_out)
{
	const struct quantity_syntax syntax = {
		.units = units,
		.n_units = ARRAY_SIZE(units),
		.bare_factor = bare_unit_ns,
		.has_fractions = true,
		.has_spaces = true,
	};

	return quantity_parse(text, n, &syntax, ns_out);
}

int duration_parse(const char *text, int64_t bare_unit_ns, int64_t *ns_out)
{
	return duration_parse_n(text, strlen(text), bare_unit_ns, ns_out);
}

/*
 * Writes ns in the given unit, with four significant digits ("12.34 us") or, if the first three
 * decimals are 0, as a whole number. Further digits are dropped, not rounded.
 */
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
