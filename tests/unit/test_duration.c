/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "common/duration.h"

static void test_parse(void **state)
{
	static const struct {
		const char *text;
		int64_t bare;
		int64_t ns;
	} cases[] = {
		{ "30", NS_PER_S, 30 * NS_PER_S },
		{ "30", NS_PER_US, 30 * NS_PER_US },
		{ "0", NS_PER_S, 0 },
		{ "1.5", NS_PER_S, 1500 * NS_PER_MS },
		{ "30s", NS_PER_US, 30 * NS_PER_S },
		{ "100us", NS_PER_S, 100 * NS_PER_US },
		{ "100 us", NS_PER_S, 100 * NS_PER_US },
		{ "100\xc2\xb5s", NS_PER_S, 100 * NS_PER_US },
		{ "7ns", NS_PER_S, 7 },
		{ "1h30min", NS_PER_S, 5400 * NS_PER_S },
		{ " 1h 30 min ", NS_PER_S, 5400 * NS_PER_S },
		{ "2m", NS_PER_S, 120 * NS_PER_S },
		{ "1d", NS_PER_S, 86400 * NS_PER_S },
		{ "1w", NS_PER_S, 7 * 86400 * NS_PER_S },
		{ "1.000000001s", NS_PER_S, NS_PER_S + 1 },
		{ "0.1234567891s", NS_PER_S, 123456789 },
		{ "9223372036.854775807s", NS_PER_S, INT64_MAX },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int64_t ns = -1;

		assert_int_equal(duration_parse(cases[i].text, cases[i].bare, &ns), 0);
		if (ns != cases[i].ns)
			fail_msg("\"%s\": %lld, not %lld", cases[i].text, (long long)ns,
				 (long long)cases[i].ns);
	}
}

static void test_refuse(void **state)
{
	static const struct {
		const char *text;
		int error;
	} cases[] = {
		{ "", -EINVAL },
		{ " ", -EINVAL },
		{ "s", -EINVAL },
		{ "-1s", -EINVAL },
		{ "+1s", -EINVAL },
		{ "1x", -EINVAL },
		{ "1s2", -EINVAL },
		{ "1 2", -EINVAL },
		{ "1h 30", -EINVAL },
		{ "1.", -EINVAL },
		{ ".5", -EINVAL },
		{ "1.5.5s", -EINVAL },
		{ "1S", -EINVAL },
		{ "0x10", -EINVAL },
		{ "1e3", -EINVAL },
		{ "nan", -EINVAL },
		{ "1s;", -EINVAL },
		{ "9223372036.854775808s", -ERANGE },
		{ "99999999999999999999", -ERANGE },
		{ "300y", -ERANGE },
		{ "200y 200y", -ERANGE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int64_t ns = 42;
		int r = duration_parse(cases[i].text, NS_PER_S, &ns);

		if (r != cases[i].error)
			fail_msg("\"%s\": %d, not %d", cases[i].text, r, cases[i].error);
		assert_int_equal(ns, 42);
	}
}

static void test_part(void **state)
{
	int64_t ns;

	assert_int_equal(duration_parse_n("3min ago", 4, NS_PER_S, &ns), 0);
	assert_int_equal(ns, 180 * NS_PER_S);
	assert_int_equal(duration_parse_n("3min ago", 0, NS_PER_S, &ns), -EINVAL);
}

static void test_format(void **state)
{
	static const struct {
		int64_t ns;
		const char *text;
	} cases[] = {
		{ 0, "0 s" },
		{ 850, "850 ns" },
		{ 1000, "1 us" },
		{ 12345, "12.34 us" },
		{ 999999, "999.9 us" },
		{ 200 * NS_PER_MS, "200 ms" },
		{ 1234567890, "1.234 s" },
		{ 125300 * NS_PER_MS, "125.3 s" },
		{ 60 * NS_PER_S, "60 s" },
		{ 240 * NS_PER_S, "4 min" },
		{ 599 * NS_PER_S, "599 s" },
		{ 600 * NS_PER_S, "10 min" },
		{ 754 * NS_PER_S, "12 min 34 s" },
		{ 11520 * NS_PER_S, "3 h 12 min" },
		{ 86400 * NS_PER_S, "1 d" },
		{ 100 * 3600 * NS_PER_S, "4 d 4 h" },
		{ -5, "-5 ns" },
	};
	char text[DURATION_TEXT_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		duration_format(cases[i].ns, text);
		assert_string_equal(text, cases[i].text);
	}
	duration_format(INT64_MAX, text);
	assert_true(strlen(text) < DURATION_TEXT_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_refuse),
		cmocka_unit_test(test_part),
		cmocka_unit_test(test_format),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
