/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

#include "common/base.h"
#include "common/utf8.h"

/* Encodes any number below 2^21 in n bytes, allowed or not. */
static void encode(uint32_t c, size_t n, char *out)
{
	static const unsigned char marks[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	for (size_t i = n; i-- > 1; c >>= 6)
		out[i] = (char)(0x80 | (c & 0x3f));
	out[0] = (char)(n == 1 ? c : marks[n] | c);
	out[n] = '\0';
}

static size_t length_of(uint32_t c)
{
	return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
}

static void test_every_character_is_decoded(void **state)
{
	for (uint32_t c = 1; c < 0x200000; c++) {
		bool is_allowed = c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
		uint32_t out = 0;
		char s[5];

		encode(c, length_of(c), s);
		if (utf8_decode(s, &out) != (is_allowed ? length_of(c) : 0) ||
		    out != (is_allowed ? c : 0))
			fail_msg("U+%04x is decoded as U+%04x", c, out);
	}
}

static void test_overlong_forms_are_refused(void **state)
{
	for (uint32_t c = 0; c < 0x10000; c++)
		for (size_t n = length_of(c) + 1; n <= 4; n++) {
			uint32_t out = 7;
			char s[5];

			encode(c, n, s);
			assert_int_equal(utf8_decode(s, &out), 0);
			assert_int_equal(out, 7);
		}
}

static void test_a_character_that_ends_early_is_none(void **state)
{
	assert_int_equal(utf8_length("\xe2\x82"), 0);
	assert_int_equal(utf8_length("\xf0\x9f\x98"), 0);
	assert_int_equal(utf8_length("\x80"), 0);
	assert_int_equal(utf8_length("\xff"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_character_is_decoded),
		cmocka_unit_test(test_overlong_forms_are_refused),
		cmocka_unit_test(test_a_character_that_ends_early_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
