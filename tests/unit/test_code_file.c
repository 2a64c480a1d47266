/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/base/code_file.h"

static const uint8_t build_id[CODE_BUILD_ID_MAX + 1] = { 7, 8, 9 };

static struct code_file *make(const struct code_segment *segments, size_t n)
{
	struct code_file *file = code_file_new(build_id, 20, segments, n);

	assert_non_null(file);
	return file;
}

static void check_offset(const struct code_file *file, uint64_t address, uint64_t expected)
{
	uint64_t offset;

	assert_true(code_file_offset(file, address, &offset));
	assert_int_equal(offset, expected);
}

static void finds_offsets(void **state)
{
	/* As lld makes them, whose addresses are not the offsets; and one at an address of its own.
	 */
	const struct code_segment segments[] = {
		{ .address = 0x201680, .offset = 0x680, .size = 0x1000 },
		{ .address = 0x400000, .offset = 0x3000, .size = 0x20 },
	};
	struct code_file *file = make(segments, ARRAY_SIZE(segments));
	uint64_t offset;

	(void)state;
	check_offset(file, 0x201680, 0x680);
	check_offset(file, 0x20267f, 0x167f);
	check_offset(file, 0x400010, 0x3010);
	/* The page that the segment begins in is mapped whole. */
	check_offset(file, 0x201000, 0);
	assert_false(code_file_offset(file, 0x200fff, &offset));
	assert_false(code_file_offset(file, 0x202680, &offset));
	assert_false(code_file_offset(file, 0x3fffff, &offset));
	assert_false(code_file_offset(file, 0x400020, &offset));
	assert_false(code_file_offset(file, 0, &offset));
	assert_false(code_file_offset(file, UINT64_MAX, &offset));
	code_file_unref(file);
}

/* Segments as only a hostile file has them. */
static void survives_any_segment(void **state)
{
	const struct code_segment segments[] = {
		{ .address = 0, .offset = UINT64_MAX, .size = UINT64_MAX },
		{ .address = UINT64_MAX, .offset = 1, .size = UINT64_MAX },
	};
	struct code_file *file = make(segments, ARRAY_SIZE(segments));
	uint64_t offset;

	(void)state;
	code_file_offset(file, 0, &offset);
	code_file_offset(file, UINT64_MAX, &offset);
	code_file_unref(file);
}

static void differs_by_what_it_has(void **state)
{
	const struct code_segment one = { 0x1000, 0x1000, 8 }, other = { 0x1000, 0x2000, 8 };
	struct code_file *a = make(&one, 1), *b = make(&one, 1), *c = make(&other, 1),
			 *d = make(NULL, 0);

	(void)state;
	assert_true(a->hash == b->hash);
	assert_true(a->hash != c->hash);
	assert_true(a->hash != d->hash);
	code_file_unref(a);
	code_file_unref(b);
	code_file_unref(c);
	code_file_unref(d);
}

static void has_limits(void **state)
{
	struct code_segment segments[CODE_SEGMENTS_MAX + 1] = {};

	(void)state;
	assert_null(code_file_new(build_id, 0, NULL, 0));
	assert_null(code_file_new(build_id, CODE_BUILD_ID_MAX + 1, NULL, 0));
	assert_null(code_file_new(build_id, 20, segments, CODE_SEGMENTS_MAX + 1));
	assert_null(code_file_ref(NULL));
	assert_null(code_file_unref(NULL));
}

static void lives_as_long_as_a_reference(void **state)
{
	struct code_file *file = make(NULL, 0);

	(void)state;
	assert_ptr_equal(code_file_ref(file), file);
	code_file_unref(file);
	assert_int_equal(file->build_id[2], 9);
	code_file_unref(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_offsets),
		cmocka_unit_test(survives_any_segment),
		cmocka_unit_test(differs_by_what_it_has),
		cmocka_unit_test(has_limits),
		cmocka_unit_test(lives_as_long_as_a_reference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
