/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "common/base.h"
#include "common/when.h"

struct when_case {
	const char *zone;
	const char *now; /* UTC, like 2026-03-09T14:00:00Z */
	const char *after;
	enum when_use use;
	const char *text;
	const char *want; /* UTC */
};

static void zone_set(const char *zone)
{
	setenv("TZ", zone, 1);
	tzset();
}

/* Converts expected times with strptime() and timegm(), not with the code under test. */
static int64_t utc_ns(const char *text)
{
	struct tm tm = { 0 };
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm);

	assert_non_null(end);
	assert_int_equal(*end, '\0');
	return (int64_t)timegm(&tm) * NS_PER_S;
}

static void check(const struct when_case *c)
{
	struct when_context context = {
		.use = c->use,
		.now = utc_ns(c->now),
		.after = c->after ? utc_ns(c->after) : INT64_MIN,
	};
	int64_t ns = 0, want = utc_ns(c->want);
	int r;

	zone_set(c->zone);
	r = when_parse(c->text, &context, &ns);
	if (r < 0 || ns != want)
		fail_msg("\"%s\" at %s in %s: r %d, %lld s from %s", c->text, c->now, c->zone, r,
			 (long long)((ns - want) / NS_PER_S), c->want);
}

#define NOW "2026-07-15T12:30:00Z" /* 14:30 in Berlin */

static void test_clock(void **state)
{
	static const struct when_case cases[] = {
		{ "Europe/Berlin", NOW, NULL, WHEN_SINCE, "14:00", "2026-07-15T12:00:00Z" },
		{ "Europe/Berlin", NOW, NULL, WHEN_SINCE, "14:30", "2026-07-15T12:30:00Z" },
		{ "Europe/Berlin", NOW, NULL, WHEN_SINCE, "14:30:01", "2026-07-14T12:30:01Z" },
		{ "Europe/Berlin", NOW, NULL, WHEN_SINCE, "23:50", "2026-07-14T21:50:00Z" },
		{ "Europe/Berlin", NOW, NULL, WHEN_SINCE, "0:10", "2026-07-14T22:10:00Z" },
		{ "Europe/Berlin", NOW, NULL, WHEN_AT, "14:00:05", "2026-07-15T12:00:05Z" },
		{ "UTC", NOW, NULL, WHEN_SINCE, "14:00", "2026-07-14T14:00:00Z" },
		{ "America/New_York", "2026-07-15T03:00:00Z", NULL, WHEN_SINCE, "22:00",
		  "2026-07-15T02:00:00Z" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check(&cases[i]);
}

static void test_until(void **state)
{
	static const struct when_case cases[] = {
		{ "UTC", NOW, "2026-07-14T23:50:00Z", WHEN_UNTIL, "00:10", "2026-07-15T00:10:00Z" },
		{ "UTC", NOW, "2026-07-14T10:00:00Z", WHEN_UNTIL, "10:30", "2026-07-14T10:30:00Z" },
		{ "UTC", NOW, "2026-07-14T10:00:00Z", WHEN_UNTIL, "10:00", "2026-07-15T10:00:00Z" },
		{ "UTC", NOW, "2026-07-14T10:00:00Z", WHEN_UNTIL, "09:00", "2026-07-15T09:00:00Z" },
		{ "UTC", NOW, NULL, WHEN_UNTIL, "14:00", "2026-07-14T14:00:00Z" },
		{ "Europe/Berlin", NOW, "2026-03-28T23:00:00Z", WHEN_UNTIL, "03:10",
		  "2026-03-29T01:10:00Z" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check(&cases[i]);
}

/* In Berlin the clocks skip 2:00-3:00 on 2026-03-29 and pass it twice on 2026-10-25. */
static void test_daylight_saving(void **state)
{
	static const struct when_case cases[] = {
		/* The offset of the zone is that of the date, not of today. */
		{ "Europe/Berlin", NOW, NULL, WHEN_SINCE, "2026-01-10 14:00",
		  "2026-01-10T13:00:00Z" },
		{ "Europe/Berlin", "2026-01-10T12:00:00Z", NULL, WHEN_SINCE, "2025-07-10 14:00",
		  "2025-07-10T12:00:00Z" },
		{ "Europe/Berlin", "2026-03-29T10:00:00Z", NULL, WHEN_SINCE, "01:59",
		  "2026-03-29T00:59:00Z" },
		{ "Europe/Berlin", "2026-03-29T10:00:00Z", NULL, WHEN_SINCE, "03:00",
		  "2026-03-29T01:00:00Z" },
		{ "Europe/Berlin", "2026-03-29T10:00:00Z", NULL, WHEN_SINCE, "yesterday 14:00",
		  "2026-03-28T13:00:00Z" },
		/* A time that the clocks skip: the last day that had it; with a date, shifted. */
		{ "Europe/Berlin", "2026-03-29T10:00:00Z", NULL, WHEN_SINCE, "02:30",
		  "2026-03-28T01:30:00Z" },
		{ "Europe/Berlin", "2026-03-29T10:00:00Z", NULL, WHEN_SINCE, "2026-03-29 02:30",
		  "2026-03-29T01:30:00Z" },
		/* The hour that the clocks pass twice. */
		{ "Europe/Berlin", "2026-10-25T00:45:00Z", NULL, WHEN_SINCE, "02:30",
		  "2026-10-25T00:30:00Z" },
		{ "Europe/Berlin", "2026-10-25T10:00:00Z", NULL, WHEN_SINCE, "02:30",
		  "2026-10-25T01:30:00Z" },
		{ "Europe/Berlin", "2026-10-25T10:00:00Z", "2026-10-25T00:00:00Z", WHEN_UNTIL,
		  "02:30", "2026-10-25T00:30:00Z" },
		{ "Europe/Berlin", "2026-10-25T10:00:00Z", NULL, WHEN_SINCE, "2026-10-25 02:30",
		  "2026-10-25T00:30:00Z" },
		{ "Europe/Berlin", "2026-10-25T10:00:00Z", "2026-10-25T00:00:00Z", WHEN_UNTIL,
		  "2026-10-25 02:30", "2026-10-25T01:30:00Z" },
		{ "Europe/Berlin", "2026-10-25T10:00:00Z", NULL, WHEN_SINCE, "2026-10-25 02:30 CET",
		  "2026-10-25T01:30:00Z" },
		{ "Europe/Berlin", "2026-10-25T10:00:00Z", NULL, WHEN_SINCE,
		  "2026-10-25 02:30 CEST", "2026-10-25T00:30:00Z" },
		{ "Europe/Berlin", "2026-10-26T10:00:00Z", NULL, WHEN_SINCE, "yesterday",
		  "2026-10-24T22:00:00Z" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check(&cases[i]);
}

static void test_dates(void **state)
{
	static const struct when_case cases[] = {
		{ "Europe/Berlin", NOW, NULL, WHEN_SINCE, "now", NOW },
		{ "Europe/Berlin", NOW, NULL, WHEN_SINCE, "today", "2026-07-14T22:00:00Z" },
		{ "Europe/Berlin", NOW, NULL, WHEN_SINCE, "yesterday", "2026-07-13T22:00:00Z" },
		{ "Europe/Berlin", NOW, NULL, WHEN_SINCE, "tomorrow", "2026-07-15T22:00:00Z" },
		{ "Europe/Berlin", NOW, NULL, WHEN_SINCE, "today 14:00", "2026-07-15T12:00:00Z" },
		{ "Europe/Berlin", NOW, NULL, WHEN_SINCE, "Today 16:00:30",
		  "2026-07-15T14:00:30Z" },
		{ "Europe/Berlin", NOW, NULL, WHEN_SINCE, "2026-07-01", "2026-06-30T22:00:00Z" },
		{ "Europe/Berlin", NOW, NULL, WHEN_SINCE, "2026-07-01T14:00:00",
		  "2026-07-01T12:00:00Z" },
		{ "Europe/Berlin", NOW, NULL, WHEN_SINCE, "2026-07-01T14:00:00Z",
		  "2026-07-01T14:00:00Z" },
		{ "Europe/Berlin", NOW, NULL, WHEN_SINCE, "2026-07-01 14:00 UTC",
		  "2026-07-01T14:00:00Z" },
		{ "Europe/Berlin", NOW, NULL, WHEN_SINCE, "2026-07-01T14:00:00-05:30",
		  "2026-07-01T19:30:00Z" },
		{ "Europe/Berlin", NOW, NULL, WHEN_SINCE, "2026-07-01T14:00:00+0200",
		  "2026-07-01T12:00:00Z" },
		{ "Europe/Berlin", NOW, NULL, WHEN_SINCE, "2026-07-01T14:00+02",
		  "2026-07-01T12:00:00Z" },
		{ "Europe/Berlin", NOW, NULL, WHEN_SINCE, "Wed 2026-07-01 14:00:00 CEST",
		  "2026-07-01T12:00:00Z" },
		{ "UTC", NOW, NULL, WHEN_SINCE, "2024-02-29", "2024-02-29T00:00:00Z" },
		{ "UTC", NOW, NULL, WHEN_SINCE, "-3min", "2026-07-15T12:27:00Z" },
		{ "UTC", NOW, NULL, WHEN_SINCE, "-90", "2026-07-15T12:28:30Z" },
		{ "UTC", NOW, NULL, WHEN_SINCE, "3min ago", "2026-07-15T12:27:00Z" },
		{ "UTC", NOW, NULL, WHEN_SINCE, "1h 30min ago", "2026-07-15T11:00:00Z" },
		{ "UTC", NOW, NULL, WHEN_SINCE, "+1h", "2026-07-15T13:30:00Z" },
		{ "UTC", NOW, NULL, WHEN_SINCE, "3min left", "2026-07-15T12:33:00Z" },
		{ "UTC", NOW, NULL, WHEN_SINCE, "@1772000000", "2026-02-25T06:13:20Z" },
		{ "UTC", NOW, NULL, WHEN_SINCE, " today", "2026-07-15T00:00:00Z" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check(&cases[i]);
}

static void test_fraction(void **state)
{
	struct when_context context = { WHEN_SINCE, utc_ns(NOW), INT64_MIN };
	int64_t ns;

	zone_set("UTC");
	assert_int_equal(when_parse("@1.25", &context, &ns), 0);
	assert_int_equal(ns, 1250 * NS_PER_MS);
	assert_int_equal(when_parse("12:00:00.000000001", &context, &ns), 0);
	assert_int_equal(ns, utc_ns("2026-07-15T12:00:00Z") + 1);
}

static void test_refuse(void **state)
{
	static const char *const texts[] = {
		"",
		" ",
		"300",
		"14",
		"25:00",
		"24:00",
		"14:60",
		"14:00:60",
		"14:00:",
		"14:00:00.",
		"14:00x",
		"14:00 Z",
		"nowish",
		"todays",
		"today14:00",
		"today 25:00",
		"2026-13-01",
		"2026-00-01",
		"2026-02-29",
		"2026-04-31",
		"2026-07-01T",
		"2026-07-01 14:00 PST8",
		"2026-07-01 14:00+1",
		"2026-07-01T14:00:00+16:00",
		"Thu 2026-07-01",
		"Wed",
		"26-07-01",
		"@",
		"@-5",
		"@5s",
		"@1.2.3",
		"ago",
		" ago",
		"min ago",
		"-",
		"-3minutes ago",
		"--3min",
		"-3parsec",
		"last tuesday",
	};
	struct when_context context = { WHEN_SINCE, utc_ns(NOW), INT64_MIN };

	zone_set("Europe/Berlin");
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		int64_t ns = 42;
		int r = when_parse(texts[i], &context, &ns);

		if (r != -EINVAL || ns != 42)
			fail_msg("\"%s\": %d, %lld", texts[i], r, (long long)ns);
	}
}

static void test_range(void **state)
{
	struct when_context context = { WHEN_SINCE, utc_ns(NOW), INT64_MIN };
	int64_t ns = 42;

	zone_set("UTC");
	assert_int_equal(when_parse("@99999999999", &context, &ns), -ERANGE);
	assert_int_equal(when_parse("9999-01-01", &context, &ns), -ERANGE);
	assert_int_equal(when_parse("+290y", &context, &ns), -ERANGE);
	assert_int_equal(ns, 42);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clock),	 cmocka_unit_test(test_until),
		cmocka_unit_test(test_dates),	 cmocka_unit_test(test_daylight_saving),
		cmocka_unit_test(test_fraction), cmocka_unit_test(test_refuse),
		cmocka_unit_test(test_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
