/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <time.h>

#include "client/base/local_times.h"
#include "common/base.h"

/* 2026-03-09 14:00:30 UTC */
static const int64_t now = INT64_C(1773064830) * NS_PER_S;

static void check(const char *zone, const char *message, const char *expected)
{
	char *text;

	setenv("TZ", zone, 1);
	tzset();
	text = local_times(message, now);
	assert_string_equal(text, expected);
	free(text);
}

/* Times are those of the client's zone, and the date is there where it is another day's. */
static void test_zones(void **state)
{
	static const char message[] = "ended 2026-03-09T13:59:00+00:00; on disk are "
				      "2026-03-08T20:00:00+00:00 to 2026-03-09T08:59:00-05:00";

	check("UTC", message,
	      "ended 13:59:00 UTC; on disk are 2026-03-08 20:00:00 UTC to 13:59:00 UTC");
	check("Asia/Tokyo", message,
	      "ended 22:59:00 JST; on disk are 05:00:00 JST to 22:59:00 JST");
	check("America/New_York", message,
	      "ended 09:59:00 EDT; on disk are 2026-03-08 16:00:00 EDT to 09:59:00 EDT");
}

/* Whatever is not quite a time stays as it is. */
static void test_others(void **state)
{
	static const char *const texts[] = {
		"",
		"no time at all",
		"2026-03-09T13:59:00",
		"2026-03-09T13:59:00+00:0",
		"2026-03-09 13:59:00+00:00",
		"2026-13-09T13:59:00+00:00",
		"/srv/2026-03-09T13-59-00+00:00.log",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		check("Asia/Tokyo", texts[i], texts[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_zones),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
