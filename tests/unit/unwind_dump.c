/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_dump FILE: prints the rows of an ELF file as walks read them, one on each line: ADDRESS
 * KIND CFA BP BX. The CFA and the caller's bp are printed as readelf prints them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "bpf/unwind_shared.h"
#include "common/base.h"
#include "daemon/unwind/compile_elf.h"

static void rule_print(uint64_t address, const struct unwind_rule *rule, unsigned int bx)
{
	printf("%llx rule %s r%u%+d%+d bp %u%+d pc %u%+d bx%u\n", (unsigned long long)address,
	       rule->cfa_kind == UNWIND_CFA_MEMORY ? "exp" : "reg", rule->cfa_register,
	       rule->cfa_offset, rule->cfa_add, rule->bp_kind, rule->bp_offset, rule->pc_kind,
	       rule->pc_offset, bx);
}

static void frame_print(uint64_t address, const struct unwind_frame *frames, uint32_t number)
{
	const struct unwind_frame *frame = &frames[number];
	static const char *const names[] = {
		[UNWIND_INVALID] = "invalid",	  [UNWIND_END] = "end",
		[UNWIND_SIGNAL] = "signal",	  [UNWIND_FRAME] = "frame",
		[UNWIND_FRAME_PROVED] = "proved",
	};

	switch (frame->kind) {
	case UNWIND_SP:
	case UNWIND_BP:
		printf("%llx plain %s%+d c%+d bx%u\n", (unsigned long long)address,
		       frame->kind == UNWIND_SP ? "rsp" : "rbp", 8 * frame->cfa, 8 * frame->bp,
		       frame->bx);
		break;
	case UNWIND_SWITCH:
		printf("%llx switch rbp%+d c%+d bx%u\n", (unsigned long long)address,
		       8 * frame->cfa, 8 * frame->bp, frame->bx);
		break;
	case UNWIND_PLT:
		printf("%llx plt %d\n", (unsigned long long)address, frame->cfa);
		break;
	case UNWIND_RULE:
		rule_print(address, (const struct unwind_rule *)(frames + frame->cfa), frame->bx);
		break;
	default:
		printf("%llx %s\n", (unsigned long long)address, names[frame->kind]);
	}
}

static void part_print(uint64_t address, const uint32_t *pages, const struct unwind_frame *frames)
{
	const struct unwind_row *rows = (const struct unwind_row *)(pages + UNWIND_PART_PAGES);

	for (uint32_t i = 0; i < UNWIND_PART_PAGES; i++) {
		const struct unwind_row *row = &rows[pages[i] >> UNWIND_ROWS_BITS];
		uint32_t n = pages[i] & ((1 << UNWIND_ROWS_BITS) - 1);

		for (; n--; row++)
			frame_print(address + ((uint64_t)i << UNWIND_PAGE_SHIFT) + row->pc, frames,
				    row->frame);
	}
}

int main(int argc, char *argv[])
{
	struct unwind_extent extent;
	struct elf_source source = { .fd = -1 };
	_cleanup_(elf_file_fini) struct elf_file file = {};
	_cleanup_(unwind_rows_fini) struct unwind_rows rows = {};
	const struct unwind_frame *frames;
	const struct unwind_part *parts;
	int64_t begin;
	int r;

	if (argc != 2)
		return 2;
	source.fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (source.fd < 0)
		return 2;
	r = elf_file_read(&source, &file);
	begin = clock_ns(CLOCK_MONOTONIC);
	if (!r)
		r = compile_elf(&source, &file, -1, UINT32_MAX / 8, NULL, &rows);
	begin = clock_ns(CLOCK_MONOTONIC) - begin;
	if (r) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-r));
		return r == -ENODATA || r == -ENOEXEC ? 3 : 1;
	}
	compile_elf_extent(&file, &extent);
	parts = (const struct unwind_part *)rows.words;
	frames = (const struct unwind_frame *)(rows.words + unwind_rows_frames(&rows));
	for (uint32_t i = 0; i < rows.n_parts; i++)
		part_print(extent.base + ((uint64_t)i << UNWIND_PART_SHIFT),
			   (const uint32_t *)rows.words + parts[i].at, frames);
	fprintf(stderr, "%u rows, %u parts, %u frames, %u rules, %zu bytes, %lld us\n", rows.n_rows,
		rows.n_parts, rows.n_frames, rows.n_rules, 8 * rows.n_words,
		(long long)begin / 1000);
	return 0;
}
