/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/arena.h"
#include "common/base.h"

static void test_memory_is_zeroed_and_aligned(void **state)
{
	_cleanup_(arena_freep) struct arena *arena = arena_new();

	for (size_t n = 0; n < 3000; n += 7) {
		unsigned char *p = arena_alloc(arena, n);

		assert_non_null(p);
		assert_int_equal((uintptr_t)p % alignof(max_align_t), 0);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(p[i], 0);
		memset(p, 0xff, n);
	}
}

static void test_allocations_do_not_overlap(void **state)
{
	_cleanup_(arena_freep) struct arena *arena = arena_new();
	static char *blocks[500];
	/* Some are larger than a chunk, between small ones. */
	const size_t sizes[] = { 1, 100, 5000, 3, 40000, 17, 3000000, 2 };

	for (size_t i = 0; i < ARRAY_SIZE(blocks); i++) {
		size_t n = sizes[i % (i < 16 ? 8 : 4)];

		blocks[i] = arena_alloc(arena, n);
		assert_non_null(blocks[i]);
		memset(blocks[i], (int)(i % 251), n);
	}
	for (size_t i = 0; i < ARRAY_SIZE(blocks); i++) {
		size_t n = sizes[i % (i < 16 ? 8 : 4)];

		assert_int_equal((unsigned char)blocks[i][0], i % 251);
		assert_int_equal((unsigned char)blocks[i][n - 1], i % 251);
	}
}

static void test_too_much_is_refused(void **state)
{
	_cleanup_(arena_freep) struct arena *arena = arena_new();

	assert_null(arena_array(arena, SIZE_MAX / 2, 4));
	assert_null(arena_alloc(arena, SIZE_MAX));
	assert_null(arena_alloc(arena, SIZE_MAX - 4));
	assert_non_null(arena_array(arena, 10, 10));
}

static void test_strings(void **state)
{
	_cleanup_(arena_freep) struct arena *arena = arena_new();

	assert_string_equal(arena_strdup(arena, "stack"), "stack");
	assert_string_equal(arena_strndup(arena, "stack", 3), "sta");
	assert_string_equal(arena_strndup(arena, "stack", 100), "stack");
	assert_string_equal(arena_printf(arena, "%s+0x%x", "f", 16), "f+0x10");
	assert_null(arena_free(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_is_zeroed_and_aligned),
		cmocka_unit_test(test_allocations_do_not_overlap),
		cmocka_unit_test(test_too_much_is_refused),
		cmocka_unit_test(test_strings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
