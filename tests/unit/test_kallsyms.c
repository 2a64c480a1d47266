/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/symbol/kallsyms.h"

#define CORE UINT64_C(0xffffffff81000000)
#define MOD  UINT64_C(0xffffffffc0100000)

static const char made_up[] = "0000000000000000 A fixed_percpu_data\n"
			      "ffffffff81000000 T _text\n"
			      "ffffffff81000000 T _stext\n"
			      "ffffffff81000000 T startup_64\n"
			      "ffffffff81000100 t __do_thing\n"
			      "ffffffff81000100 T do_thing\n"
			      "ffffffff81000100 t do_it\n"
			      "ffffffff810001f0 t __pfx_weak_one\n"
			      "ffffffff81000200 W weak_one\n"
			      "ffffffff81000280 D not_code\n"
			      "ffffffff81000300 T __sched_text_start\n"
			      "ffffffff81000300 T __schedule\n"
			      "ffffffff81000400 T __sched_text_end\n"
			      "ffffffff81000500 t last_one\n"
			      "ffffffff81040000 T _etext\n"
			      "ffffffff83000000 t init_only\n"
			      "ffffffffc0100300 t mod_b\t[amodule]\n"
			      "ffffffffc0100000 t mod_a\t[amodule]\n"
			      "ffffffffc0200000 t bpf_prog_0123456789abcdef_one\t[bpf]\n"
			      "ffffffffc0200100 t bpf_prog_fedcba9876543210_two\t[bpf]\n";

static int load(const char *text, struct kallsyms **out)
{
	char path[] = "/tmp/test_kallsyms.XXXXXX";
	int fd = mkstemp(path), r;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	r = kallsyms_load(path, out);
	unlink(path);
	return r;
}

static void assert_name(struct kallsyms *symbols, uint64_t address, const char *name,
			uint64_t offset)
{
	struct symbol symbol;

	assert_true(kallsyms_lookup(symbols, address, false, &symbol));
	assert_string_equal(symbol.name, name);
	assert_int_equal(symbol.name_offset, offset);
	assert_int_equal(symbol.kind, FRAME_KERNEL);
}

static void assert_no_name(struct kallsyms *symbols, uint64_t address)
{
	struct symbol symbol;

	assert_false(kallsyms_lookup(symbols, address, false, &symbol));
	assert_null(symbol.name);
	assert_null(symbol.module);
	assert_int_equal(symbol.file_id, 0);
	assert_true(symbol.file_offset == address);
	assert_int_equal(symbol.kind, FRAME_KERNEL);
}

static void names_functions(void **state)
{
	struct kallsyms *symbols;

	assert_int_equal(load(made_up, &symbols), 0);
	assert_name(symbols, CORE, "startup_64", 0);
	assert_name(symbols, CORE + 0xff, "startup_64", 0xff);
	assert_name(symbols, CORE + 0x100, "do_thing", 0);
	assert_name(symbols, CORE + 0x1ff, "do_thing", 0xff);
	assert_name(symbols, CORE + 0x210, "weak_one", 0x10);
	assert_name(symbols, CORE + 0x290, "weak_one", 0x90);
	assert_name(symbols, CORE + 0x3ff, "__schedule", 0xff);
	assert_name(symbols, MOD + 0x2ff, "mod_a", 0x2ff);
	assert_name(symbols, MOD + 0x300, "mod_b", 0);
	kallsyms_free(symbols);
}

static void has_ends(void **state)
{
	struct kallsyms *symbols;

	assert_int_equal(load(made_up, &symbols), 0);
	assert_no_name(symbols, 0);
	assert_no_name(symbols, CORE - 1);
	assert_no_name(symbols,
		       CORE + 0x400); /* between the end of a section and the next function */
	assert_name(symbols, CORE + 0x500 + 0xffff, "last_one", 0xffff);
	assert_no_name(symbols, CORE + 0x500 + 0x10000);
	assert_no_name(symbols, CORE + 0x40000);
	assert_no_name(symbols, UINT64_C(0xffffffff83000010));
	assert_no_name(symbols, MOD - 1);
	assert_no_name(symbols, MOD + 0x20000);
	assert_no_name(symbols, UINT64_MAX);
	kallsyms_free(symbols);
}

static void return_address_names_the_caller(void **state)
{
	struct kallsyms *symbols;
	struct symbol symbol;

	assert_int_equal(load(made_up, &symbols), 0);
	/* A call that does not return may be the last instruction of a function. */
	assert_true(kallsyms_lookup(symbols, CORE + 0x100, true, &symbol));
	assert_string_equal(symbol.name, "startup_64");
	assert_int_equal(symbol.name_offset, 0x100);
	assert_int_equal(symbol.file_offset, 0x100);
	assert_false(kallsyms_lookup(symbols, CORE, true, &symbol));
	assert_false(kallsyms_lookup(symbols, 0, true, &symbol));
	kallsyms_free(symbols);
}

/* The same kernel at another address, with the same identities: they are stored. */
static void identity_does_not_depend_on_addresses(void **state)
{
	static const char moved[] = "ffffffffa5000000 T _stext\n"
				    "ffffffffa5000100 T do_thing\n"
				    "ffffffffa6000000 T _etext\n"
				    "ffffffffc0900000 t mod_a\t[amodule]\n"
				    "ffffffffc0900300 t mod_b\t[amodule]\n"
				    "ffffffffc0a00000 t bpf_prog_fedcba9876543210_two\t[bpf]\n";
	struct kallsyms *here, *there;
	struct symbol a, b, kernel;

	assert_int_equal(load(made_up, &here), 0);
	assert_int_equal(load(moved, &there), 0);
	assert_true(kallsyms_lookup(here, CORE + 0x123, false, &kernel));
	assert_true(kallsyms_lookup(there, UINT64_C(0xffffffffa5000123), false, &b));
	assert_string_equal(kernel.module, "kernel");
	assert_true(kernel.file_id && kernel.file_id == b.file_id);
	assert_int_equal(kernel.file_offset, 0x123);
	assert_int_equal(b.file_offset, 0x123);

	assert_true(kallsyms_lookup(here, MOD + 0x310, false, &a));
	assert_true(kallsyms_lookup(there, UINT64_C(0xffffffffc0900310), false, &b));
	assert_string_equal(a.module, "amodule");
	assert_true(a.file_id == b.file_id && a.file_id != kernel.file_id);
	assert_int_equal(a.file_offset, 0x310);
	assert_int_equal(b.file_offset, 0x310);

	/* BPF programs are loaded in any order, so each is a file of its own. */
	assert_true(kallsyms_lookup(here, UINT64_C(0xffffffffc0200120), false, &a));
	assert_true(kallsyms_lookup(there, UINT64_C(0xffffffffc0a00020), false, &b));
	assert_string_equal(a.module, "bpf");
	assert_string_equal(a.name, "bpf_prog_fedcba9876543210_two");
	assert_true(a.file_id == b.file_id);
	assert_int_equal(a.file_offset, 0x20);
	assert_int_equal(b.file_offset, 0x20);
	assert_true(kallsyms_lookup(here, UINT64_C(0xffffffffc0200020), false, &b));
	assert_true(a.file_id != b.file_id);
	kallsyms_free(here);
	kallsyms_free(there);
}

static void refuses_what_is_no_list(void **state)
{
	char *long_name = malloc(2000);
	struct kallsyms *symbols;

	assert_int_equal(load("0000000000000000 T _text\n0000000000000000 t a\n", &symbols),
			 -EPERM);
	assert_int_equal(load("", &symbols), -ENODATA);
	assert_int_equal(load("ffffffff81000000 D data_only\n", &symbols), -ENODATA);
	assert_int_equal(load("hello\n", &symbols), -EBADMSG);
	assert_int_equal(load("ffffffff81000000 T\n", &symbols), -EBADMSG);
	assert_int_equal(load("ffffffff81000000 T \n", &symbols), -EBADMSG);
	assert_int_equal(load("ffffffff810000000 T a\n", &symbols), -EBADMSG);
	assert_int_equal(load("ffffffff81000000 T a\t[m\n", &symbols), -EBADMSG);
	assert_int_equal(kallsyms_load("/nonexistent", &symbols), -ENOENT);
	assert_non_null(long_name);
	memset(long_name, 'a', 2000);
	memcpy(long_name, "ffffffff81000000 T ", 19);
	long_name[1999] = '\0';
	assert_int_equal(load(long_name, &symbols), -EBADMSG);
	free(long_name);
}

/* Copies kallsyms, because programs and modules may change between two readings. */
static FILE *list_copy(char *path)
{
	FILE *in = fopen("/proc/kallsyms", "re"), *out;
	char *line = NULL;
	size_t size = 0;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	out = fdopen(fd, "w+");
	assert_non_null(in);
	assert_non_null(out);
	while (getline(&line, &size, in) > 0)
		fputs(line, out);
	free(line);
	fclose(in);
	rewind(out);
	return out;
}

/* Looks up every function of the running kernel and compares it with the list. */
static void agrees_with_the_real_list(void **state)
{
	char path[] = "/tmp/test_kallsyms.XXXXXX";
	struct kallsyms *symbols;
	size_t functions, bytes, checked = 0, same = 0, size = 0;
	char *line = NULL;
	FILE *in;
	int r;

	r = kallsyms_load(NULL, &symbols);
	if (r == -EPERM || r == -ENOENT || r == -EACCES) {
		print_message("the kernel hides its addresses\n");
		skip();
	}
	assert_int_equal(r, 0);
	kallsyms_free(symbols);
	in = list_copy(path);
	assert_int_equal(kallsyms_load(path, &symbols), 0);
	unlink(path);
	while (getline(&line, &size, in) > 0) {
		unsigned long long address;
		struct symbol symbol;
		char type, name[600];

		assert_int_equal(sscanf(line, "%llx %c %599s", &address, &type, name), 3);
		if ((type != 't' && type != 'T') ||
		    !kallsyms_lookup(symbols, address, false, &symbol))
			continue;
		checked++;
		if (strncmp(name, "__pfx_", 6) && strncmp(name, "__cfi_", 6))
			assert_int_equal(symbol.name_offset, 0);
		same += !strcmp(symbol.name, name);
	}
	free(line);
	fclose(in);
	kallsyms_size(symbols, &functions, &bytes);
	assert_true(functions > 10000 && bytes > functions * 14 && bytes < functions * 100);
	assert_true(checked >= functions - 100);
	assert_true(same > functions * 9 / 10);
	kallsyms_free(symbols);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_functions),
		cmocka_unit_test(has_ends),
		cmocka_unit_test(return_address_names_the_caller),
		cmocka_unit_test(identity_does_not_depend_on_addresses),
		cmocka_unit_test(refuses_what_is_no_list),
		cmocka_unit_test(agrees_with_the_real_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
