/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/probe_kind.h"

static void test_every_kind_has_a_row(void **state)
{
	enum probe_kind kind, found;

	(void)state;
	for (kind = 0; kind < PROBE_KIND_N; kind++) {
		assert_non_null(probe_kind_name(kind));
		assert_non_null(probe_kind_events(kind));
		assert_non_null(probe_kind_absent(kind));
		assert_non_null(probe_kind_unrecorded(kind));
		assert_true(probe_kind_find(probe_kind_name(kind), &found));
		assert_int_equal(found, kind);
	}
	assert_false(probe_kind_find("offcp", &found));
	assert_false(probe_kind_find("", &found));
}

static void test_all_of_several_traits_are_needed(void **state)
{
	(void)state;
	assert_true(probe_kind_has(PROBE_OFFCPU, PROBE_WAITS | PROBE_OPEN_WAITS));
	assert_false(probe_kind_has(PROBE_OFFWAKE, PROBE_WAITS | PROBE_OPEN_WAITS));
	assert_true(probe_kind_has(PROBE_OFFWAKE, PROBE_WAITS));
	assert_true(probe_kind_has(PROBE_OFFWAKE, 0));
}

/* Code that shows rows asks for one of these traits after the other and takes the first. */
static void test_a_row_is_of_one_sort(void **state)
{
	static const unsigned int sorts[] = { PROBE_WAITS, PROBE_SAMPLES, PROBE_COUNTS, PROBE_IO };
	enum probe_kind kind;
	size_t i, n;

	(void)state;
	for (kind = 0; kind < PROBE_KIND_N; kind++) {
		for (n = 0, i = 0; i < sizeof(sorts) / sizeof(sorts[0]); i++)
			n += probe_kind_has(kind, sorts[i]);
		assert_int_equal(n, 1);
	}
}

static void test_names_are_listed(void **state)
{
	char text[128], small[16];

	(void)state;
	probe_kinds_with(0, " and ", text, sizeof(text));
	for (enum probe_kind kind = 0; kind < PROBE_KIND_N; kind++)
		assert_non_null(strstr(text, probe_kind_name(kind)));
	assert_memory_equal(text, "offcpu, oncpu, ", 15);
	assert_string_equal(strstr(text, " and ") + 5, probe_kind_name(PROBE_KIND_N - 1));
	probe_kinds_with(PROBE_FUNCTIONS, " or ", text, sizeof(text));
	assert_string_equal(text, "stackcount or stacksnoop");
	probe_kinds_with(PROBE_IO, " or ", text, sizeof(text));
	assert_string_equal(text, "iolat");
	probe_kinds_with(PROBE_IO | PROBE_WAITS, " or ", text, sizeof(text));
	assert_string_equal(text, "");
	probe_kinds_with(0, " and ", small, sizeof(small));
	assert_string_equal(small, "offcpu, oncpu, ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_kind_has_a_row),
		cmocka_unit_test(test_all_of_several_traits_are_needed),
		cmocka_unit_test(test_a_row_is_of_one_sort),
		cmocka_unit_test(test_names_are_listed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
