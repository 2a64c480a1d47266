/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An ELF file as somebody's process may have mapped it, for the rows that walks go by: what comes
 * out must be a table that the programs can search, whatever is in the file.
 */
#include <errno.h>

#include "bpf/unwind_shared.h"
#include "daemon/unwind_elf.h"
#include "tests/fuzz/fuzz.h"

enum { WORDS_MAX = 1 << 16 };

static void page_check(const struct unwind_rows *rows, const struct unwind_row *row, uint32_t first,
		       uint32_t end)
{
	REQUIRE(first < end && end <= rows->n_rows && end - first <= 1U << UNWIND_ROW_STEPS);
	REQUIRE(!row[first].pc);
	for (uint32_t i = first; i < end; i++) {
		REQUIRE(row[i].frame < rows->n_frames);
		REQUIRE(row[i].pc < 1 << UNWIND_PAGE_SHIFT);
		REQUIRE(i == first || row[i].pc > row[i - 1].pc);
	}
}

static void rows_check(const struct unwind_rows *rows)
{
	const uint32_t *pages = (const uint32_t *)rows->words;
	const struct unwind_row *row = (const struct unwind_row *)(pages + rows->n_pages + 1);
	const struct unwind_frame *frames =
		(const struct unwind_frame *)(rows->words + unwind_rows_frames(rows));

	REQUIRE(rows->n_words <= WORDS_MAX);
	REQUIRE(unwind_rows_frames(rows) + rows->n_frames + 2 * (size_t)rows->n_rules ==
		rows->n_words);
	for (uint32_t i = 0; i < rows->n_pages; i++)
		page_check(rows, row, pages[i], pages[i + 1]);
	for (uint32_t i = 0; i < rows->n_frames; i++) {
		REQUIRE(frames[i].kind <= UNWIND_SWITCH);
		REQUIRE(frames[i].kind != UNWIND_RULE ||
			((uint32_t)frames[i].cfa >= rows->n_frames &&
			 (uint32_t)frames[i].cfa + 1 < rows->n_frames + 2 * rows->n_rules));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_source source = { .fd = -1, .image = data, .image_size = size };
	struct elf_file file = { 0 };
	struct unwind_rows rows = { 0 };
	int r = elf_file_read(&source, &file);

	if (r == 0) {
		r = unwind_elf_read(&source, &file, NULL, WORDS_MAX, &rows);
		REQUIRE(r == 0 || r == -ENODATA || r == -ENOEXEC || r == -EBADMSG || r == -E2BIG ||
			r == -ENOMEM);
		if (r == 0)
			rows_check(&rows);
		unwind_rows_fini(&rows);
	}
	elf_file_fini(&file);
	return 0;
}
