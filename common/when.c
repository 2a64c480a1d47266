/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/when.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "common/base.h"
#include "common/duration.h"

/* A date and a time of day as a user wrote them, and what the user wrote about the time zone. */
struct civil {
	int year, month, day;
	int hour, minute, second;
	int64_t ns;
	bool has_zone;
	int zone_seconds; /* if has_zone: offset of the time zone in seconds east of Greenwich */
	/*
	 * 1 if the user wrote a zone with daylight saving time, such as CEST; 0 for one without,
	 * such as CET; else -1
	 */
	int isdst;
};

const char *when_grammar(void)
{
	return "14:00, \"today 14:00\", yesterday, -3min, \"3min ago\", "
	       "2026-03-09T14:00:00+01:00 or @1773061200";
}

static void skip_space(const char **p)
{
	while (**p == ' ' || **p == '\t')
		(*p)++;
}

/* Reads a number of exactly `digits` digits. */
static bool read_digits(const char **p, int digits, int *value)
{
	int v = 0;

	for (int i = 0; i < digits; i++) {
		if (!isdigit((unsigned char)(*p)[i]))
			return false;
		v = v * 10 + ((*p)[i] - '0');
	}
	*p += digits;
	*value = v;
	return true;
}

static bool read_char(const char **p, char c)
{
	if (**p != c)
		return false;
	(*p)++;
	return true;
}

/*
 * Reads the given word, in small or capital letters. Returns false if the text has another word
 * there, or if a letter or a digit follows the word.
 */
static bool read_word(const char **p, const char *word)
{
	size_t n = strlen(word);

	if (strncasecmp(*p, word, n) != 0 || isalnum((unsigned char)(*p)[n]))
		return false;
	*p += n;
	return true;
}

/* Reads a time of day: 14:00, 14:00:30 or 14:00:30.123456789. The hour may have one digit. */
static bool read_clock(const char **p, struct civil *c)
{
	const char *at = *p;
	int64_t scale = 100000000;

	if (!read_digits(&at, 2, &c->hour) && !read_digits(&at, 1, &c->hour))
		return false;
	if (!read_char(&at, ':') || !read_digits(&at, 2, &c->minute))
		return false;
	c->second = 0;
	c->ns = 0;
	if (read_char(&at, ':')) {
		if (!read_digits(&at, 2, &c->second))
			return false;
		if (read_char(&at, '.')) {
			if (!isdigit((unsigned char)*at))
				return false;
			for (; isdigit((unsigned char)*at); at++, scale /= 10)
				c->ns += scale * (*at - '0');
		}
	}
	if (c->hour > 23 || c->minute > 59 || c->second > 59)
		return false;
	*p = at;
	return true;
}

/* Reads the abbreviation of the local zone that systemd and date(1) print, such as CET or CEST. */
static bool read_local_zone(const char **p, struct civil *c)
{
	tzset();
	for (int isdst = 0; isdst <= 1; isdst++)
		if (isalpha((unsigned char)tzname[isdst][0]) && read_word(p, tzname[isdst])) {
			c->isdst = isdst;
			return true;
		}
	return false;
}

/* Reads a time zone: +01, +0100 or +01:00, Z, UTC, GMT, or an abbreviation of the local zone. */
static bool read_zone(const char **p, struct civil *c)
{
	const char *at = *p;
	int sign, hours, minutes = 0;

	if (read_local_zone(p, c))
		return true;
	c->has_zone = true;
	c->zone_seconds = 0;
	if (read_word(p, "Z") || read_word(p, "UTC") || read_word(p, "GMT"))
		return true;
	if (*at != '+' && *at != '-')
		return false;
	sign = *at++ == '-' ? -1 : 1;
	if (!read_digits(&at, 2, &hours))
		return false;
	if (*at != '\0') {
		(void)read_char(&at, ':');
		if (!read_digits(&at, 2, &minutes))
			return false;
	}
	if (hours > 15 || minutes > 59)
		return false;
	c->zone_seconds = sign * (hours * 3600 + minutes * 60);
	*p = at;
	return true;
}

static bool read_date(const char **p, struct civil *c)
{
	const char *at = *p;

	if (!read_digits(&at, 4, &c->year) || !read_char(&at, '-') ||
	    !read_digits(&at, 2, &c->month) || !read_char(&at, '-') ||
	    !read_digits(&at, 2, &c->day))
		return false;
	*p = at;
	return true;
}

static int days_in_month(int year, int month)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return month == 2 && leap ? 29 : days[month - 1];
}

static struct tm civil_tm(const struct civil *c)
{
	return (struct tm){
		.tm_year = c->year - 1900,
		.tm_mon = c->month - 1,
		.tm_mday = c->day,
		.tm_hour = c->hour,
		.tm_min = c->minute,
		.tm_sec = c->second,
	};
}

static int instant_ns(time_t seconds, int64_t ns, int64_t *ns_out)
{
	int64_t sum;

	if (__builtin_mul_overflow((int64_t)seconds, NS_PER_S, &sum) ||
	    __builtin_add_overflow(sum, ns, &sum))
		return -ERANGE;
	*ns_out = sum;
	return 0;
}

/*
 * Computes the instant of a local time. If isdst is 1, daylight saving time is taken to be on; if
 * it is 0, off; if it is -1, mktime() decides. Returns false if the local time does not exist then.
 */
static bool local_instant(const struct civil *c, int isdst, time_t *seconds)
{
	struct tm tm = civil_tm(c), back;
	time_t t;

	tm.tm_isdst = isdst;
	t = mktime(&tm);
	if (!localtime_r(&t, &back))
		return false;
	*seconds = t;
	return back.tm_mday == c->day && back.tm_hour == c->hour && back.tm_min == c->minute;
}

/*
 * Finds all instants at which the local clock shows this time, the earlier one first. There are two
 * in the hour that the clock passes twice when daylight saving time ends, and none in the hour that
 * the clock skips when daylight saving time begins. Tries isdst 1, 0 and at last -1, because there
 * are times at which mktime() accepts neither 1 nor 0.
 */
static size_t local_instants(const struct civil *c, time_t found[static 2])
{
	size_t n = 0;
	time_t t;

	for (int isdst = 1; isdst >= -1; isdst--) {
		if (c->isdst >= 0 && isdst != c->isdst)
			continue;
		if (!local_instant(c, isdst, &t))
			continue;
		if ((n > 0 && found[0] == t) || n == 2)
			continue;
		found[n++] = t;
	}
	if (n == 2 && found[1] < found[0]) {
		t = found[0];
		found[0] = found[1];
		found[1] = t;
	}
	return n;
}

/* Computes the instant of a date and time of day. -EINVAL if that date does not exist. */
static int civil_instant(const struct civil *c, enum when_use use, int64_t *ns_out)
{
	struct tm tm = civil_tm(c);
	time_t found[2], t;
	size_t n;

	if (c->month < 1 || c->month > 12 || c->day < 1 ||
	    c->day > days_in_month(c->year, c->month))
		return -EINVAL;
	if (c->has_zone)
		return instant_ns(timegm(&tm) - c->zone_seconds, c->ns, ns_out);

	n = local_instants(c, found);
	if (n > 0)
		return instant_ns(found[use == WHEN_UNTIL ? n - 1 : 0], c->ns, ns_out);
	/* The clocks skip this hour: use the offset from before the change, as RFC 5545 does. */
	tm.tm_isdst = 0;
	t = mktime(&tm);
	return instant_ns(t, c->ns, ns_out);
}

/*
 * Sets the date in *c to the local date at the instant ns, plus a number of days. Keeps the time of
 * day in *c.
 */
static void civil_set_date(struct civil *c, int64_t ns, int days)
{
	time_t t = (time_t)(ns / NS_PER_S - (ns % NS_PER_S < 0));
	struct tm tm;

	localtime_r(&t, &tm);
	/* Counts the days from noon, since clocks are changed at night and every day has a noon. */
	tm.tm_hour = 12;
	tm.tm_min = 0;
	tm.tm_sec = 0;
	tm.tm_mday += days;
	tm.tm_isdst = -1;
	mktime(&tm);
	c->year = tm.tm_year + 1900;
	c->month = tm.tm_mon + 1;
	c->day = tm.tm_mday;
}

/*
 * Finds the instant of a time of day without a date: the last one up to now or, for WHEN_UNTIL, the
 * first one after context->after.
 */
static int nearest_instant(struct civil *c, const struct when_context *context, int64_t *ns_out)
{
	bool forward = context->use == WHEN_UNTIL && context->after != INT64_MIN;
	int64_t reference = forward ? context->after : context->now, ns, best = 0;
	bool any = false;
	time_t found[2];

	for (int days = -2; days <= 2; days++) {
		size_t n;

		civil_set_date(c, reference, days);
		n = local_instants(c, found);
		for (size_t i = 0; i < n; i++) {
			if (instant_ns(found[i], c->ns, &ns) < 0)
				return -ERANGE;
			if (forward ? ns <= reference : ns > reference)
				continue;
			if (!any || (forward ? ns < best : ns > best))
				best = ns;
			any = true;
		}
	}
	if (!any)
		return -ERANGE;
	*ns_out = best;
	return 0;
}

/* Reads the name of a weekday, Mon or Monday, which systemd prints before a date. */
static bool read_weekday(const char **p, int *weekday)
{
	static const char *const names[] = { "Sunday",	 "Monday", "Tuesday", "Wednesday",
					     "Thursday", "Friday", "Saturday" };

	for (int i = 0; i < (int)ARRAY_SIZE(names); i++) {
		char abbreviation[4] = { names[i][0], names[i][1], names[i][2], '\0' };

		if (read_word(p, names[i]) || read_word(p, abbreviation)) {
			*weekday = i;
			return true;
		}
	}
	return false;
}

static int civil_weekday(const struct civil *c)
{
	struct tm tm = civil_tm(c);

	timegm(&tm);
	return tm.tm_wday;
}

static bool read_day_name(const char **p, int *days)
{
	if (read_word(p, "today"))
		*days = 0;
	else if (read_word(p, "yesterday"))
		*days = -1;
	else if (read_word(p, "tomorrow"))
		*days = 1;
	else
		return false;
	return true;
}

/* Reads the time of day and the zone that may follow a date, and computes the instant. */
static int parse_dated(const char *p, struct civil *c, enum when_use use, int64_t *ns_out)
{
	if (*p != '\0') {
		bool space = *p == ' ';

		if (*p != 'T' && *p != 't' && !space)
			return -EINVAL;
		p++;
		skip_space(&p);
		if (read_clock(&p, c))
			skip_space(&p);
		else if (!space)
			return -EINVAL;
		if (*p != '\0' && !read_zone(&p, c))
			return -EINVAL;
		if (*p != '\0')
			return -EINVAL;
	}
	return civil_instant(c, use, ns_out);
}

/* Reads the number after the @ of a time like @1772000000.5: seconds since the epoch. */
static int parse_epoch(const char *text, int64_t *ns_out)
{
	if (!isdigit((unsigned char)text[0]) || text[strspn(text, "0123456789.")] != '\0')
		return -EINVAL;
	return duration_parse(text, NS_PER_S, ns_out);
}

static int parse_offset(const char *text, size_t n, bool back, int64_t now, int64_t *ns_out)
{
	int64_t offset, ns;
	int r;

	r = duration_parse_n(text, n, NS_PER_S, &offset);
	if (r < 0)
		return r;
	if (back ? __builtin_sub_overflow(now, offset, &ns)
		 : __builtin_add_overflow(now, offset, &ns))
		return -ERANGE;
	*ns_out = ns;
	return 0;
}

static bool ends_with_word(const char *text, size_t n, const char *word, size_t *rest)
{
	size_t w = strlen(word);

	if (n <= w || strncasecmp(text + n - w, word, w) != 0 || text[n - w - 1] != ' ')
		return false;
	*rest = n - w - 1;
	return true;
}

bool when_is_clock(const char *text)
{
	struct civil c = { .isdst = -1 };

	skip_space(&text);
	return read_clock(&text, &c) && *text == '\0';
}

int when_parse(const char *text, const struct when_context *context, int64_t *ns_out)
{
	struct civil c = { .isdst = -1 };
	int days, weekday = -1;
	size_t n, rest;

	skip_space(&text);
	n = strlen(text);
	if (strcasecmp(text, "now") == 0) {
		*ns_out = context->now;
		return 0;
	}
	if (text[0] == '@')
		return parse_epoch(text + 1, ns_out);
	if (text[0] == '-' || text[0] == '+')
		return parse_offset(text + 1, n - 1, text[0] == '-', context->now, ns_out);
	if (ends_with_word(text, n, "ago", &rest) || ends_with_word(text, n, "left", &rest))
		return parse_offset(text, rest, tolower((unsigned char)text[n - 1]) == 'o',
				    context->now, ns_out);
	if (read_weekday(&text, &weekday))
		skip_space(&text);
	if (read_date(&text, &c)) {
		if (weekday >= 0 && weekday != civil_weekday(&c))
			return -EINVAL;
		return parse_dated(text, &c, context->use, ns_out);
	}
	if (weekday >= 0)
		return -EINVAL;
	if (read_day_name(&text, &days)) {
		civil_set_date(&c, context->now, days);
		return parse_dated(text, &c, context->use, ns_out);
	}
	if (!read_clock(&text, &c) || *text != '\0')
		return -EINVAL;
	return nearest_instant(&c, context, ns_out);
}
