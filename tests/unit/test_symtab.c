/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Looks addresses up in tables of functions without names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/symbol/symtab.h"
#include "daemon/symbol/symtab_build.h"

#define BASE UINT64_C(0x400000)

/* Functions from 0x00 to 0x40, within it from 0x10 to 0x20, and, after a hole, from 0x80 to 0x90.
 */
static const uint32_t starts[] = { 0x00, 0x10, 0x80 }, sizes[] = { 0x40, 0x10, 0x10 };
static const uint32_t outer[] = { SYMTAB_NO_OUTER, 0, SYMTAB_NO_OUTER };

static uint32_t *copy(const uint32_t *from)
{
	uint32_t *to = malloc(sizeof(starts));

	return memcpy(to, from, sizeof(starts));
}

static struct symtab *symtab_make(void)
{
	struct symtab_arrays arrays = {
		.n = ARRAY_SIZE(starts),
		.base = BASE,
		.starts = copy(starts),
		.sizes = copy(sizes),
		.outer = copy(outer),
		.names = { .blocks = calloc(1, sizeof(struct symtab_text_block)), .n_blocks = 1 },
		.signals = { { 0x100, 0x110 }, { 0x200, 0x201 } },
		.n_signals = 2,
	};
	struct symtab *symtab;

	assert_int_equal(symtab_from_arrays(&arrays, &symtab), 0);
	return symtab;
}

static void assert_start(struct symtab *symtab, uint64_t address, uint64_t expected)
{
	const char *name;
	uint64_t start;

	assert_true(symtab_lookup(symtab, BASE + address, &name, &start));
	assert_int_equal(start, BASE + expected);
	assert_null(name);
}

static void assert_none(struct symtab *symtab, uint64_t address)
{
	const char *name;
	uint64_t start;

	assert_false(symtab_lookup(symtab, address, &name, &start));
}

/* A function ends before the byte behind it; of nested ones, the innermost is found. */
static void test_functions(void **state)
{
	struct symtab *symtab = symtab_make();

	assert_start(symtab, 0x00, 0x00);
	assert_start(symtab, 0x0f, 0x00);
	assert_start(symtab, 0x10, 0x10);
	assert_start(symtab, 0x1f, 0x10);
	assert_start(symtab, 0x20, 0x00);
	assert_start(symtab, 0x3f, 0x00);
	assert_none(symtab, BASE + 0x40);
	assert_none(symtab, BASE + 0x7f);
	assert_start(symtab, 0x80, 0x80);
	assert_start(symtab, 0x8f, 0x80);
	assert_none(symtab, BASE + 0x90);
	assert_none(symtab, BASE - 1);
	assert_none(symtab, 0);
	assert_none(symtab, BASE + (UINT64_C(1) << 32));
	symtab_free(symtab);
}

static void test_returns_of_signals(void **state)
{
	struct symtab *symtab = symtab_make();

	assert_false(symtab_is_signal(symtab, 0xff));
	assert_true(symtab_is_signal(symtab, 0x100));
	assert_true(symtab_is_signal(symtab, 0x10f));
	assert_false(symtab_is_signal(symtab, 0x110));
	assert_true(symtab_is_signal(symtab, 0x200));
	assert_false(symtab_is_signal(symtab, 0x201));
	symtab_free(symtab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_returns_of_signals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
