/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bpf/shared.h"
#include "common/base.h"
#include "daemon/window/generated.h"
#include "daemon/window/stack_id.h"

enum { FILE_ID = 7, START = 0x1000 };

/* A frame in a function that begins at `start`, `offset` bytes after that. */
static struct frame in_function(uint64_t start, uint64_t offset)
{
	return (struct frame){
		.kind = FRAME_NATIVE,
		.file_id = FILE_ID,
		.file_offset = start + offset,
		.name_offset = offset,
		.name = "function",
	};
}

static struct frame pseudo(char *name)
{
	return (struct frame){ .kind = FRAME_PSEUDO, .name = name };
}

/* Checks whether a stack of x and one of y, with the same caller, have equal ids. */
static void check(struct frame x, struct frame y, bool is_one_place, bool is_one_function)
{
	struct frame caller = in_function(0x9000, 16);
	struct frame *a[] = { &x, &caller }, *b[] = { &y, &caller };

	assert_int_equal(stack_id_of(a, ARRAY_SIZE(a)) == stack_id_of(b, ARRAY_SIZE(b)),
			 is_one_place);
	assert_int_equal(stack_functions_id_of(a, ARRAY_SIZE(a)) ==
				 stack_functions_id_of(b, ARRAY_SIZE(b)),
			 is_one_function);
	assert_true(stack_functions_id_of(a, ARRAY_SIZE(a)) >= STACK_ID_FIRST);
}

static void test_places_of_a_function(void **state)
{
	struct frame other_file = in_function(START, 5);
	struct frame kernel = in_function(START, 5);

	other_file.file_id++;
	kernel.kind = FRAME_KERNEL;
	check(in_function(START, 5), in_function(START, 5), true, true);
	check(in_function(START, 5), in_function(START, 99), false, true);
	/* two static functions of one name */
	check(in_function(START, 5), in_function(2 * START, 5), false, false);
	check(in_function(START, 5), other_file, false, false);
	check(in_function(START, 5), kernel, false, false);
}

static void test_code_without_a_name(void **state)
{
	struct frame x = in_function(START, 5), y = in_function(START, 99);

	x.name = y.name = NULL;
	x.name_offset = y.name_offset = 0;
	check(x, y, false, false);
}

static void test_what_is_no_code(void **state)
{
	struct frame *a[] = { &(struct frame){} }, *b[] = { &(struct frame){} };

	*a[0] = pseudo("[stack unreadable]");
	*b[0] = pseudo("[stack unreadable]");
	assert_true(stack_functions_id_of(a, 1) == stack_functions_id_of(b, 1));
	*b[0] = pseudo("[new thread]");
	assert_true(stack_functions_id_of(a, 1) != stack_functions_id_of(b, 1));
}

static void test_callers_and_depth(void **state)
{
	struct frame x = in_function(START, 5), y = in_function(2 * START, 5);
	struct frame *a[] = { &x, &y }, *b[] = { &y, &x };

	assert_true(stack_functions_id_of(a, 2) != stack_functions_id_of(b, 2));
	assert_true(stack_functions_id_of(a, 1) != stack_functions_id_of(a, 2));
}

/* Code without a name and without a file is one frame, at whatever addresses it is. */
static void test_generated_code(void **state)
{
	struct symbol symbols[] = {
		{ .kind = FRAME_JIT, .module = "[anon]", .file_id = 7, .file_offset = 0x1000 },
		{ .kind = FRAME_JIT, .module = "[heap]", .file_id = 7, .file_offset = 0x2000 },
		{ .kind = FRAME_JIT, .module = "[anon]", .file_id = 8, .name = "js:main" },
		{ .kind = FRAME_JIT, .module = "[anon]", .file_id = 7, .file_offset = 0x1004 },
		{ .kind = FRAME_JIT, .module = "/app/cache", .file_id = 9, .file_offset = 0x10 },
		{ .kind = FRAME_NATIVE, .file_offset = 0x30 },
		{ .kind = FRAME_NATIVE, .file_offset = 0x34 },
	};
	const struct symbol *first = &symbols[0], *again = &symbols[2];

	assert_int_equal(generated_merge(symbols, ARRAY_SIZE(symbols)), 6);
	assert_string_equal(first->name, "[generated code]");
	assert_int_equal(first->kind, FRAME_JIT);
	assert_int_equal(first->file_id, again->file_id);
	assert_int_equal(first->file_offset, again->file_offset);
	assert_string_equal(again->name, first->name);
	assert_string_equal(again->module, first->module);
	assert_string_equal(symbols[1].name, "js:main");
	assert_null(symbols[3].name);
	assert_int_equal(symbols[4].file_offset, 0x30);
	assert_int_equal(symbols[5].file_offset, 0x34);
	assert_int_equal(generated_merge(symbols, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places_of_a_function),
		cmocka_unit_test(test_code_without_a_name),
		cmocka_unit_test(test_what_is_no_code),
		cmocka_unit_test(test_callers_and_depth),
		cmocka_unit_test(test_generated_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
