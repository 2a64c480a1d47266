/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/symbol/symtab.h"

/*
 * Offsets of the functions in fixture/go.S, from the start of Go's code, which is GAP bytes behind
 * the start of .text.
 */
enum { FIRST = 0, START = FIRST + 48, WORK = START + 32, WRONG = WORK + 64, GAP = 16 };
#define AT(offset) (UINT64_C(0x401000) + (offset))

static const char *said_path, *guessed_path, *strange_path;

static struct symtab *load(const char *path)
{
	struct elf_source source = { .fd = open(path, O_RDONLY | O_CLOEXEC) };
	struct symtab *symtab;

	assert_true(source.fd >= 0);
	assert_int_equal(symtab_load(&source, NULL, &symtab), 0);
	close(source.fd);
	return symtab;
}

static void assert_name(struct symtab *symtab, uint64_t address, const char *expected)
{
	const char *name = NULL;
	uint64_t start;

	if (!expected) {
		assert_false(symtab_lookup(symtab, address, &name, &start));
		return;
	}
	assert_true(symtab_lookup(symtab, address, &name, &start));
	assert_string_equal(name, expected);
}

static void assert_all(const char *path, uint64_t moved)
{
	struct symtab *symtab = load(path);

	assert_name(symtab, AT(FIRST) + moved, "internal/cpu.Initialize");
	assert_name(symtab, AT(START) + moved, "_rt0_amd64_linux");
	assert_name(symtab, AT(WORK) + moved, "main.(*ledger).work[...]");
	assert_name(symtab, AT(WRONG) - 1 + moved, "main.(*ledger).work[...]");
	assert_name(symtab, AT(WRONG) + moved, NULL);
	assert_name(symtab, AT(FIRST) - 1 + moved, NULL);
	symtab_free(symtab);
}

static void names_are_of_where_the_table_says(void **state)
{
	assert_all(said_path, GAP);
}

/* Only the start of .text is known, and the program's start confirms it. */
static void where_it_does_not_the_start_proves_it(void **state)
{
	assert_all(guessed_path, 0);
}

static void what_nothing_proves_has_no_names(void **state)
{
	struct symtab *symtab = load(strange_path);

	for (uint64_t offset = 0; offset < 256; offset++)
		assert_name(symtab, AT(offset), NULL);
	symtab_free(symtab);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_of_where_the_table_says),
		cmocka_unit_test(where_it_does_not_the_start_proves_it),
		cmocka_unit_test(what_nothing_proves_has_no_names),
	};

	if (argc != 4)
		return 2;
	said_path = argv[1];
	guessed_path = argv[2];
	strange_path = argv[3];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
