/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/store/bytes.h"

static bool is_out_of_memory;

char *__real_strndup(const char *string, size_t n);
char *__wrap_strndup(const char *string, size_t n);

char *__wrap_strndup(const char *string, size_t n)
{
	return is_out_of_memory ? NULL : __real_strndup(string, n);
}

static struct bytes_reader reader_of(const struct bytes *bytes)
{
	return (struct bytes_reader){ .at = bytes->data, .end = bytes->data + bytes->n };
}

static void test_values_come_back(void **state)
{
	struct bytes bytes = {};
	struct bytes_reader in;
	char *text;

	bytes_put_u64(&bytes, UINT64_MAX);
	bytes_put_i64(&bytes, INT64_MIN);
	bytes_put_string(&bytes, NULL);
	bytes_put_string(&bytes, "text");
	in = reader_of(&bytes);
	assert_true(bytes_get_u64(&in) == UINT64_MAX);
	assert_true(bytes_get_i64(&in) == INT64_MIN);
	assert_null(bytes_get_string(&in));
	text = bytes_get_string(&in);
	assert_string_equal(text, "text");
	assert_int_equal(bytes_error(&in), 0);
	assert_int_equal(bytes_left(&in), 0);
	free(text);
	bytes_fini(&bytes);
}

/* Bytes that end early are damage; a lack of memory is not. */
static void test_errors_are_told_apart(void **state)
{
	struct bytes bytes = {};
	struct bytes_reader in;

	bytes_put_string(&bytes, "text");
	in = reader_of(&bytes);
	in.end--;
	assert_null(bytes_get_string(&in));
	assert_int_equal(bytes_error(&in), -EBADMSG);
	in = reader_of(&bytes);
	is_out_of_memory = true;
	assert_null(bytes_get_string(&in));
	is_out_of_memory = false;
	assert_true(in.is_failed);
	assert_int_equal(bytes_error(&in), -ENOMEM);
	bytes_fini(&bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_come_back),
		cmocka_unit_test(test_errors_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
