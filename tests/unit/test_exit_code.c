/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/base/exit_code.h"
#include "common/base.h"
#include "proto/varlink.h"

/* The numbers must not change: scripts compare with them. */
static void test_numbers(void **state)
{
	assert_int_equal(EXIT_CODE_OK, 0);
	assert_int_equal(EXIT_CODE_USAGE, 1);
	assert_int_equal(EXIT_CODE_NO_DAEMON, 2);
	assert_int_equal(EXIT_CODE_REFUSED, 3);
	assert_int_equal(EXIT_CODE_NO_DATA, 4);
	assert_int_equal(EXIT_CODE_PARTIAL, 5);
	assert_int_equal(EXIT_CODE_IMPOSSIBLE, 6);
	assert_int_equal(EXIT_CODE_IO, 7);
	assert_int_equal(EXIT_CODE_BUSY, 8);
}

static void test_errors(void **state)
{
	static const struct {
		const char *name;
		int code;
	} cases[] = {
		{ "io.stackd.NoData", 4 },
		{ "io.stackd.UnknownProbe", 1 },
		{ "io.stackd.UnknownSession", 1 },
		{ "io.stackd.InvalidFilter", 1 },
		{ "io.stackd.InvalidTime", 1 },
		{ "io.stackd.TooManySessions", 3 },
		{ "io.stackd.AttachFailed", 6 },
		{ "io.stackd.NotSupported", 6 },
		{ "io.stackd.Busy", 8 },
		{ "org.varlink.service.InvalidParameter", 1 },
		{ "org.varlink.service.PermissionDenied", 3 },
		{ "org.varlink.service.MethodNotFound", 7 },
		{ "com.example.Whatever", 7 },
		{ "", 7 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(exit_code_of_error(wire_error_code(cases[i].name)), cases[i].code);
}

/* An error that is added to the interface needs a row in the table, even if its code is 7. */
static void test_every_declared_error(void **state)
{
	static const char known[] = "NoData UnknownProbe UnknownSession InvalidFilter InvalidTime "
				    "TooManySessions AttachFailed NotSupported Failed Busy ";
	const char *at = interface_io_stackd;
	size_t n = 0;

	while ((at = strstr(at, "\nerror "))) {
		char name[64];

		assert_int_equal(sscanf(at, "\nerror %62[A-Za-z]", name), 1);
		strcat(name, " ");
		if (!strstr(known, name))
			fail_msg("error %snot in the table", name);
		at++;
		n++;
	}
	assert_true(n >= 8);
}

static void test_errnos(void **state)
{
	assert_int_equal(exit_code_of_errno(-ENOENT), 2);
	assert_int_equal(exit_code_of_errno(-ECONNREFUSED), 2);
	assert_int_equal(exit_code_of_errno(-EACCES), 3);
	assert_int_equal(exit_code_of_errno(-EPERM), 3);
	assert_int_equal(exit_code_of_errno(-ENAMETOOLONG), 1);
	assert_int_equal(exit_code_of_errno(-ETIMEDOUT), 7);
	assert_int_equal(exit_code_of_errno(-ENOSPC), 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_every_declared_error),
		cmocka_unit_test(test_errnos),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
