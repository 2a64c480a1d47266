/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzes what the daemon makes of the answers of workers that a hostile file has taken over. The
 * first byte chooses the kind of the answer. Whatever passes the checks must be safe to use.
 */
#include <string.h>

#include "bpf/unwind_shared.h"
#include "daemon/parse/answers.h"
#include "daemon/symbol/symtab.h"
#include "tests/fuzz/fuzz.h"

enum { CODE_BYTES = 1 << 20 };

static void elf_use(const void *data, size_t size)
{
	struct elf_file file = { 0 };
	uint64_t address;

	if (answer_elf_decode(data, size, &file))
		return;
	REQUIRE(file.build_id_size <= ELF_BUILD_ID_MAX);
	REQUIRE(!file.debug_name || !strchr(file.debug_name, '/'));
	for (uint64_t i = 0; i < 64; i++)
		elf_file_address(&file, i * 1000, &address);
	elf_file_fini(&file);
}

static void symbols_use(const void *data, size_t size)
{
	struct symtab_arrays arrays = { 0 };
	struct symtab *symtab;
	const char *name;
	uint64_t start;

	if (answer_symbols_decode(data, size, &arrays)) {
		symtab_arrays_fini(&arrays);
		return;
	}
	for (size_t i = 0; i < arrays.n && arrays.outer; i++)
		REQUIRE(arrays.outer[i] == SYMTAB_NO_OUTER || arrays.outer[i] < i);
	REQUIRE(symtab_from_arrays(&arrays, &symtab) == 0);
	for (uint64_t i = 0; i < 256; i++) {
		if (symtab_lookup(symtab, i * 16, &name, &start) && name)
			REQUIRE(strlen(name) < ELF_NAME_BYTES_MAX);
		symtab_is_signal(symtab, i);
	}
	symtab_free(symtab);
}

static void rows_use(void **data, size_t size)
{
	struct unwind_rows rows = { 0 };
	uint64_t sum = 0;
	uint32_t n;

	if (answer_rows_decode(data, size, CODE_BYTES, &rows))
		return;
	for (uint32_t i = 0; i < rows.n_parts; i++) {
		size_t first = unwind_rows_part(&rows, i, &n);

		REQUIRE(first >= unwind_rows_head(&rows) && first + n <= rows.n_words);
		REQUIRE(n >= UNWIND_PART_PAGES / 2);
		for (uint32_t j = 0; j < n; j++)
			sum += rows.words[first + j];
	}
	REQUIRE(unwind_rows_head(&rows) <= rows.n_words && (sum || !sum));
	unwind_rows_fini(&rows);
}

static int function_use(void *context, const char *name, uint64_t offset, uint32_t counter)
{
	const bool *has_provider = context;

	REQUIRE(name[0] && offset <= INT64_MAX);
	REQUIRE(*has_provider ? strchr(name, ':') != NULL : !counter);
	return 0;
}

static void functions_use(const void *data, size_t size, bool has_provider)
{
	if (!answer_functions_check(data, size, has_provider))
		REQUIRE(answer_functions_visit(data, function_use, &has_provider) == 0);
}

static void perf_use(void **data, size_t size)
{
	struct perf_lines lines = { 0 };

	if (answer_perf_decode(data, size, &lines))
		return;
	for (size_t i = 0; i < lines.n; i++) {
		const struct perf_function *function = &lines.functions[i];
		size_t length = strlen(lines.text + function->name);

		REQUIRE(length > 0 && length < PERF_LINE_BYTES);
		REQUIRE(function->start + function->size > function->start);
	}
	REQUIRE(lines.mark.read <= PERF_MAP_BYTES_MAX);
	perf_lines_fini(&lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	void *copy;

	if (!size)
		return 0;
	copy = malloc(size);
	REQUIRE(copy);
	memcpy(copy, data + 1, size - 1);
	if (data[0] >= 0xc0)
		perf_use(&copy, size - 1);
	else if (data[0] >= 0x80)
		functions_use(copy, size - 1, data[0] % 2);
	else if (data[0] % 3 == 0)
		elf_use(copy, size - 1);
	else if (data[0] % 3 == 1)
		symbols_use(copy, size - 1);
	else
		rows_use(&copy, size - 1);
	free(copy);
	return 0;
}
