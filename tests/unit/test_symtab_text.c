/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/symbol/symtab_builder.h"

enum { FUNCTIONS = 1000 };

/* The functions of a made-up file: every fifth has no name. The strings are in texts. */
struct functions {
	struct symtab_candidate items[FUNCTIONS];
	char texts[FUNCTIONS][128];
};

static bool is_named(size_t i)
{
	return i % 5 != 3;
}

/* Names without a NUL behind them, as a symbol with a version has in a file. */
static struct functions *functions_new(void)
{
	struct functions *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	for (size_t i = 0; i < FUNCTIONS; i++) {
		int n = snprintf(f->texts[i], sizeof(f->texts[i]),
				 "_ZN4llvm12DenseMapBaseINS_8DenseMapIPKNS_5Value%zuEjEE4growEv@V",
				 i * i);

		f->items[i] = (struct symtab_candidate){
			.name = is_named(i) ? f->texts[i] : NULL,
			.name_size = is_named(i) ? (uint16_t)(n - 2) : 0,
		};
	}
	return f;
}

/* Each function has its own name, or none, whichever block it is in, and the names are small. */
static void each_name_is_found(void **state)
{
	struct functions *f = functions_new();
	struct symtab_text text;
	char name[ELF_NAME_BYTES_MAX];
	size_t total = 0;

	(void)state;
	assert_int_equal(symtab_text_make(f->items, FUNCTIONS, &text), 0);
	for (size_t i = 0; i < FUNCTIONS; i++) {
		assert_int_equal(symtab_text_has(&text, i), is_named(i));
		if (!is_named(i))
			continue;
		assert_true(symtab_text_get(&text, i, name));
		assert_int_equal(strlen(name), f->items[i].name_size);
		assert_memory_equal(name, f->items[i].name, f->items[i].name_size);
		total += f->items[i].name_size + 1U;
	}
	assert_true(symtab_text_bytes(&text) < total / 3);
	symtab_text_fini(&text);
	free(f);
}

/* Tables are equal if and only if all names are, those of nameless functions included. */
static void one_letter_makes_a_difference(void **state)
{
	struct functions *f = functions_new();
	struct symtab_text a, b, c;

	(void)state;
	assert_int_equal(symtab_text_make(f->items, FUNCTIONS, &a), 0);
	assert_int_equal(symtab_text_make(f->items, FUNCTIONS, &b), 0);
	assert_true(symtab_text_equal(&a, &b));
	f->texts[700][8] = 'X';
	assert_int_equal(symtab_text_make(f->items, FUNCTIONS, &c), 0);
	assert_false(symtab_text_equal(&a, &c));
	symtab_text_fini(&c);
	f->texts[700][8] = f->texts[701][8];
	f->items[703].name = f->texts[703];
	f->items[703].name_size = 4;
	assert_int_equal(symtab_text_make(f->items, FUNCTIONS, &c), 0);
	assert_false(symtab_text_equal(&a, &c));
	symtab_text_fini(&a);
	symtab_text_fini(&b);
	symtab_text_fini(&c);
	free(f);
}

/* A name may be as long as the limit of the reader, and a file may have no functions. */
static void sizes_at_the_ends(void **state)
{
	char longest[ELF_NAME_BYTES_MAX], name[ELF_NAME_BYTES_MAX];
	struct symtab_candidate item = { .name = longest, .name_size = sizeof(longest) - 1 };
	struct symtab_text text;

	(void)state;
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(symtab_text_make(&item, 1, &text), 0);
	assert_true(symtab_text_get(&text, 0, name));
	assert_string_equal(name, longest);
	symtab_text_fini(&text);
	assert_int_equal(symtab_text_make(NULL, 0, &text), 0);
	assert_int_equal(symtab_text_bytes(&text), 0);
	symtab_text_fini(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_name_is_found),
		cmocka_unit_test(one_letter_makes_a_difference),
		cmocka_unit_test(sizes_at_the_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
