/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzes the making of unwind tables with an ELF file that a process may have mapped. Whatever is
 * in the file, the BPF programs must be able to search the table.
 */
#include <errno.h>

#include "bpf/unwind_shared.h"
#include "daemon/unwind/compile_elf.h"
#include "tests/fuzz/fuzz.h"

enum { WORDS_MAX = 1 << 16 };

static void page_check(const struct unwind_rows *rows, const struct unwind_row *row, uint32_t n)
{
	REQUIRE(n <= 1U << UNWIND_PAGE_SHIFT);
	REQUIRE(!row->pc);
	for (uint32_t i = 0; i < n; i++) {
		REQUIRE(row[i].frame < rows->n_frames);
		REQUIRE(row[i].pc < 1 << UNWIND_PAGE_SHIFT);
		REQUIRE(!i || row[i].pc > row[i - 1].pc);
	}
}

/* Checks one part of a table. Returns its rows. Only the last part may have empty pages. */
static uint32_t part_check(const struct unwind_rows *rows, uint32_t part)
{
	const struct unwind_row *row;
	uint32_t n_words, n_rows = 0, n;
	size_t first = unwind_rows_part(rows, part, &n_words);
	const uint32_t *pages = (const uint32_t *)(rows->words + first);

	REQUIRE(first >= unwind_rows_head(rows) && first + n_words <= rows->n_words);
	REQUIRE(n_words > UNWIND_PART_PAGES / 2);
	row = (const struct unwind_row *)(pages + UNWIND_PART_PAGES);
	for (uint32_t i = 0; i < UNWIND_PART_PAGES; i++) {
		n = pages[i] & ((1U << UNWIND_ROWS_BITS) - 1);
		REQUIRE(n || (i && part + 1 == rows->n_parts));
		if (!n)
			continue;
		REQUIRE(pages[i] >> UNWIND_ROWS_BITS == n_rows);
		n_rows += n;
		REQUIRE(UNWIND_PART_PAGES + n_rows <= 2 * n_words);
		page_check(rows, row + n_rows - n, n);
	}
	return n_rows;
}

static void rows_check(const struct unwind_rows *rows)
{
	const struct unwind_frame *frames =
		(const struct unwind_frame *)(rows->words + unwind_rows_frames(rows));
	uint32_t n_rows = 0;

	REQUIRE(rows->n_words <= WORDS_MAX);
	for (uint32_t i = 0; i < rows->n_parts; i++)
		n_rows += part_check(rows, i);
	REQUIRE(n_rows == rows->n_rows);
	for (uint32_t i = 0; i < rows->n_frames; i++) {
		REQUIRE(frames[i].kind < UNWIND_KINDS);
		REQUIRE(frames[i].kind != UNWIND_RULE ||
			((uint32_t)frames[i].cfa >= rows->n_frames &&
			 (uint32_t)frames[i].cfa + 1 < rows->n_frames + 2 * rows->n_rules));
	}
}

/* Compiles one part of the file again, as the daemon does when the part was evicted. */
static void part_compile(const struct elf_source *source, const struct elf_file *file,
			 const struct unwind_rows *rows)
{
	uint32_t part = rows->n_rows % rows->n_parts;
	struct unwind_wanted wanted = {
		.parts = &part,
		.n = 1,
		.frames = rows->words + unwind_rows_frames(rows),
		.n_frames = rows->n_frames,
		.n_rules = rows->n_rules,
	};
	struct unwind_rows some;

	if (compile_elf(source, file, -1, WORDS_MAX, &wanted, &some))
		return;
	REQUIRE(some.n_parts == rows->n_parts);
	REQUIRE(some.n_frames == rows->n_frames && some.n_rules == rows->n_rules);
	rows_check(&some);
	unwind_rows_fini(&some);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_source source = { .fd = -1, .image = data, .image_size = size };
	struct elf_file file = { 0 };
	struct unwind_rows rows = { 0 };
	int r = elf_file_read(&source, &file);

	if (r == 0) {
		r = compile_elf(&source, &file, -1, WORDS_MAX, NULL, &rows);
		REQUIRE(r == 0 || r == -ENODATA || r == -ENOEXEC || r == -EBADMSG || r == -E2BIG ||
			r == -ENOMEM);
		if (r == 0) {
			rows_check(&rows);
			part_compile(&source, &file, &rows);
		}
		unwind_rows_fini(&rows);
	}
	elf_file_fini(&file);
	return 0;
}
