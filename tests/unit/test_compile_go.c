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
#include "daemon/unwind/compile_elf.h"
#include "tests/unit/unwind_find.h"

/* Offsets of the functions in fixture/go_rows.S. */
enum {
	SIZE = 64,
	OLD = 0,
	NEW = OLD + SIZE,
	BIG = NEW + SIZE,
	BARE = BIG + SIZE,
	FRAMED = BARE + SIZE,
	NONE = FRAMED + SIZE,
	MCALL = NONE + SIZE,
	MORE = MCALL + SIZE,
	EXIT = MORE + SIZE,
	SIG = EXIT + SIZE,
	TRAMP = SIG + SIZE,
	C = TRAMP + SIZE,
	WRONG = C + SIZE,
	SHORT = WRONG + SIZE,
	START = SHORT + SIZE,
	WORDS_MAX = 1 << 16,
};

static const char *paths[3];

static void load(const char *path, struct unwind_rows *rows)
{
	struct elf_source source = { .fd = open(path, O_RDONLY | O_CLOEXEC) };
	_cleanup_(elf_file_fini) struct elf_file file = { 0 };

	assert_true(source.fd >= 0);
	assert_int_equal(elf_file_read(&source, &file), 0);
	assert_int_equal(compile_elf(&source, &file, -1, WORDS_MAX, NULL, rows), 0);
	close(source.fd);
}

static void check_frames(const struct unwind_rows *rows)
{
	check_row(rows, OLD, UNWIND_SP, 1, 0);
	check_row(rows, OLD + 4, UNWIND_SP, 4, 0); /* bp is still the caller's */
	check_row(rows, OLD + 8, UNWIND_SP, 4, 0);
	check_row(rows, OLD + 9, UNWIND_SP, 4, -2);
	check_row(rows, OLD + 38, UNWIND_SP, 4, -2);
	check_row(rows, OLD + 39, UNWIND_SP, 1, 0);
	check_row(rows, NEW, UNWIND_SP, 1, 0);
	check_row(rows, NEW + 1, UNWIND_SP, 2, -2);
	check_row(rows, NEW + 8, UNWIND_SP, 4, -2);
	check_row(rows, NEW + 28, UNWIND_SP, 2, -2);
	check_row(rows, NEW + 29, UNWIND_SP, 1, 0);
	check_row(rows, BIG + 7, UNWIND_SP, 513, 0);
	check_row(rows, BIG + 15, UNWIND_SP, 513, -2);
	check_row(rows, BARE + 1, UNWIND_SP, 2, 0);
	check_row(rows, BARE + 10, UNWIND_SP, 1, 0);
}

/*
 * A function that switches stacks is left by bp; a walk ends at a function that never returns to
 * its caller.
 */
static void check_switches(const struct unwind_rows *rows)
{
	check_row(rows, FRAMED, UNWIND_SP, 1, 0);
	check_row(rows, FRAMED + 4, UNWIND_SP, 4, 0);
	check_row(rows, FRAMED + 9, UNWIND_SWITCH, 2, -2);
	check_row(rows, FRAMED + 63, UNWIND_SWITCH, 2, -2);
	check_row(rows, NONE, UNWIND_SWITCH, 2, -2);
	check_row(rows, MCALL, UNWIND_SP, 1, 0);
	check_row(rows, MCALL + 4, UNWIND_END, 0, 0);
	check_row(rows, MORE, UNWIND_INVALID, 0, 0);
}

static void check_ends(const struct unwind_rows *rows)
{
	check_row(rows, EXIT, UNWIND_END, 0, 0);
	check_row(rows, EXIT + 62, UNWIND_END, 0, 0);
	check_row(rows, SIG - 1, UNWIND_SIGNAL, 0,
		  0); /* the byte at which its return address is looked up */
	check_row(rows, SIG, UNWIND_SIGNAL, 0, 0);
	check_row(rows, TRAMP, UNWIND_SP, 1, 0);
	check_row(rows, TRAMP + 1, UNWIND_SP, 2, 0);
	check_row(rows, START, UNWIND_END, 0, 0);
}

static void rows_are_what_the_table_says(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		_cleanup_(unwind_rows_fini) struct unwind_rows rows = { 0 };

		load(paths[i], &rows);
		check_frames(&rows);
		check_switches(&rows);
		check_ends(&rows);
	}
}

static void what_is_not_known_has_none(void **state)
{
	_cleanup_(unwind_rows_fini) struct unwind_rows rows = { 0 };

	load(paths[0], &rows);
	check_row(&rows, C, UNWIND_INVALID, 0, 0);
	check_row(&rows, WRONG, UNWIND_INVALID, 0, 0);
	check_row(&rows, WRONG + 1, UNWIND_INVALID, 0, 0);
	check_row(&rows, SHORT, UNWIND_SP, 1, 0);
	check_row(&rows, SHORT + 63, UNWIND_SP, 1, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_what_the_table_says),
		cmocka_unit_test(what_is_not_known_has_none),
	};

	if (argc != 1 + ARRAY_SIZE(paths))
		return 2;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		paths[i] = argv[1 + i];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
