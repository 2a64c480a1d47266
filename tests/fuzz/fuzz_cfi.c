/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzes call frame information: the input is the content of a section, after a byte that says
 * whether it is .debug_frame and was compressed to a tenth. The number of calls per byte is
 * limited.
 */
#include "daemon/elf/cfi.h"
#include "daemon/unwind/rows.h"
#include "tests/fuzz/fuzz.h"

enum { BASE = 0x1000, CODE_BYTES = 0x8000, WORDS_MAX = 1 << 14, STEPS_MAX = 32, SPARE = 1 << 18 };

static uint64_t n_rows;

static int on_registers(void *userdata, uint64_t address, const struct cfi_registers *registers)
{
	const struct cfi_function *function = userdata;

	REQUIRE(address >= function->start && address < function->end);
	n_rows++;
	return 0;
}

struct run {
	const struct cfi_section *section;
	uint64_t budget;
};

static int on_function(void *userdata, const struct cfi_function *function)
{
	struct run *run = userdata;
	uint64_t before = run->budget;

	REQUIRE(function->end > function->start);
	cfi_execute(run->section, function, &run->budget, on_registers,
		    (void *)(uintptr_t)function);
	REQUIRE(run->budget <= before);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct unwind_extent extent = { .base = BASE, .size = CODE_BYTES, .entry = BASE };
	struct cfi_section section = { .address = BASE };
	struct unwind_compiler *compiler;
	struct unwind_rows rows;
	struct run run = { &section, 0 };

	if (size < 1)
		return 0;
	section.is_debug = data[0] & 1;
	section.stored = data[0] & 2 ? size / 10 + 1 : 0;
	section.data = data + 1;
	section.size = size - 1;
	run.budget = size * STEPS_MAX;
	n_rows = 0;
	cfi_for_each(&section, on_function, &run);
	REQUIRE(n_rows <= size * STEPS_MAX + SPARE);
	if (unwind_compiler_new(&extent, WORDS_MAX, &compiler))
		return 0;
	if (!unwind_compiler_add(compiler, &section) && !unwind_compiler_finish(compiler, &rows)) {
		REQUIRE(rows.n_words <= WORDS_MAX);
		unwind_rows_fini(&rows);
	}
	unwind_compiler_free(compiler);
	return 0;
}
