/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/symbol/own_bpf.h"

static void test_functions_are_found_while_loaded(void **state)
{
	const struct own_bpf_function one[] = { { 0x1000, 0x1100 }, { 0x3000, 0x3010 } };
	const struct own_bpf_function two[] = { { 0x1100, 0x1200 } };
	const struct own_bpf_function above_one = { 0x10f0, 0x10f8 };
	uint64_t before = own_bpf_generation();

	assert_false(own_bpf_has(0x1000));
	assert_int_equal(own_bpf_add(7, one, ARRAY_SIZE(one)), 0);
	assert_int_equal(own_bpf_add(8, two, ARRAY_SIZE(two)), 0);
	assert_int_not_equal(own_bpf_generation(), before);
	assert_true(own_bpf_has(0x1000));
	assert_true(own_bpf_has(0x10ff));
	assert_true(own_bpf_has(0x300f));
	assert_false(own_bpf_has(0xfff));
	assert_false(own_bpf_has(0x3010));

	/* Stacks that were taken before the program went are named after it has gone. */
	own_bpf_remove(7);
	assert_true(own_bpf_has(0x1000));
	assert_true(own_bpf_has(0x1100));
	/* The kernel put another program there: only this one is there now. */
	assert_int_equal(own_bpf_add(9, &above_one, 1), 0);
	assert_false(own_bpf_has(0x1000));
	assert_true(own_bpf_has(0x10f4));
	assert_true(own_bpf_has(0x3000));
	assert_true(own_bpf_has(0x1100));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions_are_found_while_loaded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
