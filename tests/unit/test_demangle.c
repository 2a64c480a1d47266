/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "common/demangle.h"

static void assert_readable(const char *name, const char *expected)
{
	char buffer[DEMANGLE_OUTPUT_MAX];

	assert_string_equal(demangle(name, buffer, sizeof(buffer)), expected);
}

static void plain_names_stay(void **state)
{
	static const char *const names[] = { "main", "_start", "__libc_start_main", "_",
					     "",     "_Z",     "_Znot_a_name",	    "_R",
					     "Z" };
	char buffer[DEMANGLE_OUTPUT_MAX];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_ptr_equal(demangle(names[i], buffer, sizeof(buffer)), names[i]);
}

static void cpp_names_are_full(void **state)
{
	assert_readable("_ZN5clang4Sema15ActOnIdentifierEPKcj",
			"clang::Sema::ActOnIdentifier(char const*, unsigned int)");
	assert_readable("_ZNSt6vectorIiSaIiEE9push_backERKi",
			"std::vector<int, std::allocator<int> >::push_back(int const&)");
	assert_readable("_Z3foov.cold", "foo() [clone .cold]");
	assert_readable("_ZnwmSt11align_val_t", "operator new(unsigned long, std::align_val_t)");
}

static void rust_names_lose_their_hash(void **state)
{
	assert_readable("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE",
			"core::fmt::Formatter::pad");
	assert_readable("_RNvCskwGfYPst2Cb_3foo16example_function", "foo::example_function");
	assert_readable("_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar");
}

static void long_input_stays(void **state)
{
	char name[DEMANGLE_INPUT_MAX + 100], buffer[DEMANGLE_OUTPUT_MAX];
	size_t n;

	/* A nested name, just above the limit of length. */
	strcpy(name, "_ZN");
	n = 3;
	while (n < DEMANGLE_INPUT_MAX + 10)
		n += (size_t)sprintf(name + n, "1a");
	strcpy(name + n, "Ev");
	assert_ptr_equal(demangle(name, buffer, sizeof(buffer)), name);
	strcpy(name + 21, "Ev");
	assert_string_equal(demangle(name, buffer, sizeof(buffer)), "a::a::a::a::a::a::a::a::a()");
}

/* Each parameter is a pair of the one before, so the text doubles with every few bytes. */
static void exploding_output_stays(void **state)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char name[DEMANGLE_INPUT_MAX], buffer[DEMANGLE_OUTPUT_MAX];
	size_t n = (size_t)sprintf(name, "_Z1fPFvccE");
	struct timespec before, after;

	for (size_t i = 0; i < 18; i++) {
		if (i == 2) /* a short name of this kind is demangled */
			assert_int_equal(strncmp(demangle(name, buffer, sizeof(buffer)), "f(", 2),
					 0);
		n += (size_t)sprintf(name + n, "PFvS%c_S%c_E", digits[2 * i], digits[2 * i]);
	}
	clock_gettime(CLOCK_MONOTONIC, &before);
	assert_ptr_equal(demangle(name, buffer, sizeof(buffer)), name);
	clock_gettime(CLOCK_MONOTONIC, &after);
	assert_true(after.tv_sec - before.tv_sec < 2);
}

static void small_buffer_gives_the_mangled_name(void **state)
{
	static const char name[] = "_ZN3abc3defEv";
	char buffer[11];

	assert_ptr_equal(demangle(name, buffer, 0), name);
	assert_ptr_equal(demangle(name, buffer, 10), name);
	assert_string_equal(demangle(name, buffer, 11), "abc::def()");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_names_stay),
		cmocka_unit_test(cpp_names_are_full),
		cmocka_unit_test(rust_names_lose_their_hash),
		cmocka_unit_test(long_input_stays),
		cmocka_unit_test(exploding_output_stays),
		cmocka_unit_test(small_buffer_gives_the_mangled_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
