/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/unwind_shared.h"
#include "common/base.h"
#include "daemon/unwind/compile_elf.h"
#include "daemon/unwind/rows.h"
#include "tests/unit/unwind_find.h"

enum { BASE = 0x1000, WORDS_MAX = 1 << 20 };

/* Builds a section byte by byte; all addresses are relative to 0. */
struct builder {
	uint8_t bytes[1024];
	size_t n, cie, entry;
};

static void put(struct builder *b, uint64_t value, size_t size)
{
	assert_true(b->n + size <= sizeof(b->bytes));
	memcpy(b->bytes + b->n, &value, size);
	b->n += size;
}

static void put_code(struct builder *b, const char *code, size_t size)
{
	assert_true(b->n + size <= sizeof(b->bytes));
	memcpy(b->bytes + b->n, code, size);
	b->n += size;
}

static void end_entry(struct builder *b)
{
	uint32_t length = (uint32_t)(b->n - b->entry - 4);

	memcpy(b->bytes + b->entry, &length, 4);
}

/*
 * Adds a CIE like GCC's: CFA = sp + 8, the caller's pc at CFA - 8; addresses are absolute, 4 bytes.
 */
static void put_cie_of(struct builder *b, const char *letters, uint8_t code_alignment)
{
	b->cie = b->entry = b->n;
	put(b, 0, 4);
	put(b, 0, 4);
	put(b, 1, 1);
	put_code(b, letters, strlen(letters) + 1);
	put(b, code_alignment, 1);
	put(b, 0x78, 1); /* data alignment: -8 */
	put(b, CFI_PC, 1);
	put(b, 1, 1);
	put(b, 0x03, 1);
	put_code(b, "\x0c\x07\x08\x90\x01", 5);
	end_entry(b);
}

static void put_cie(struct builder *b, const char *letters)
{
	put_cie_of(b, letters, 1);
}

#define PUT_FDE(b, start, size, code) put_fde(b, start, size, code, sizeof(code) - 1)

static void put_fde(struct builder *b, uint32_t start, uint32_t size, const char *code, size_t n)
{
	b->entry = b->n;
	put(b, 0, 4);
	put(b, b->n - b->cie, 4);
	put(b, start, 4);
	put(b, size, 4);
	put(b, 0, 1);
	put_code(b, code, n);
	end_entry(b);
}

static int compile(const struct builder *b, const struct unwind_extent *extent,
		   struct unwind_rows *rows)
{
	_cleanup_(unwind_compiler_freep) struct unwind_compiler *compiler = NULL;
	struct cfi_section section = { .data = b->bytes, .size = b->n };
	int r = unwind_compiler_new(extent, WORDS_MAX, &compiler);

	if (!r)
		r = unwind_compiler_add(compiler, &section);
	return r ? r : unwind_compiler_finish(compiler, rows);
}

static void test_rows(void **state)
{
	struct unwind_extent extent = { .base = BASE, .size = 0x3000, .entry = BASE + 0x2100 };
	struct builder b = { .n = 0 };
	struct unwind_rows rows;

	put_cie(&b, "zR");
	/* push bp, mov sp to bp, leave */
	PUT_FDE(&b, BASE + 0x40, 0x20, "\x41\x0e\x10\x86\x02\x43\x0d\x06\x5a\x0c\x07\x08");
	PUT_FDE(&b, BASE + 0x68, 0x18, "");	     /* only the rules of the CIE */
	PUT_FDE(&b, BASE + 0x900, 0x20, "\x07\x10"); /* the caller's pc is undefined */
	PUT_FDE(&b, BASE + 0xa00, 0x40,		     /* push at byte 11 of 16 */
		"\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22");
	PUT_FDE(&b, BASE + 0xb00, 0x40,
		"\x0f\x03\x76\x78\x06\x10\x06\x02\x76\x00"); /* a realigned stack */
	PUT_FDE(&b, BASE + 0xc00, 0x40,
		"\x0e\xff\xff\x7f"); /* a frame too large for struct unwind_frame */
	PUT_FDE(&b, BASE + 0xd00, 0x40, "\x0f\x01\x9c"); /* an expression that no compiler writes */
	PUT_FDE(&b, BASE + 0xd80, 0x20, "\x48\x09\x07\x08"); /* then the caller's sp is in r8 */
	put_cie(&b, "zRS");
	PUT_FDE(&b, BASE + 0xe00, 0x10, "\x0f\x04\x77\xa0\x01\x06"); /* the trampoline */
	PUT_FDE(&b, BASE + 0xe80, 0x10, "\x0e\x20"); /* called a signal frame, and has none */
	assert_int_equal(compile(&b, &extent, &rows), 0);
	check_row(&rows, 0x0, UNWIND_INVALID, 0, 0);
	check_row(&rows, 0x3f, UNWIND_INVALID, 0, 0);
	check_row(&rows, 0x40, UNWIND_SP, 1, 0);
	check_row(&rows, 0x41, UNWIND_SP, 2, -2);
	check_row(&rows, 0x44, UNWIND_BP, 2, -2);
	check_row(&rows, 0x5d, UNWIND_BP, 2, -2);
	check_row(&rows, 0x5e, UNWIND_SP, 1, -2);
	check_row(&rows, 0x62, UNWIND_SP, 1, -2); /* padding: the row before still holds */
	check_row(&rows, 0x68, UNWIND_SP, 1, 0);
	check_row(&rows, 0x7f, UNWIND_SP, 1, 0);
	check_row(&rows, 0x80, UNWIND_INVALID, 0, 0);
	check_row(&rows, 0x800, UNWIND_INVALID, 0, 0);
	check_row(&rows, 0x910, UNWIND_END, 0, 0);
	check_row(&rows, 0xa20, UNWIND_PLT, 11, 0);
	check_row(&rows, 0xb20, UNWIND_RULE, 0, 0);
	check_row(&rows, 0xc20, UNWIND_RULE, 1, 0);
	check_row(&rows, 0xd20, UNWIND_INVALID, 0, 0);
	check_row(&rows, 0xd87, UNWIND_SP, 1, 0);
	check_row(&rows, 0xd88, UNWIND_INVALID, 0, 0);
	check_row(&rows, 0xe08, UNWIND_SIGNAL, 0, 0);
	check_row(&rows, 0xe88, UNWIND_SP, 4, 0);
	check_row(&rows, 0x20ff, UNWIND_INVALID, 0, 0);
	check_row(&rows, 0x2100, UNWIND_END, 0,
		  0); /* walks end at the entry, which needs no information */
	check_row(&rows, 0x211f, UNWIND_END, 0, 0);
	check_row(&rows, 0x2120, UNWIND_INVALID, 0, 0);
	check_row(&rows, 0x2fff, UNWIND_INVALID, 0, 0);
	unwind_rows_fini(&rows);
}

/* Distances in code are given in units of the code alignment factor. */
static void test_code_alignment(void **state)
{
	struct unwind_extent extent = { .base = BASE, .size = 0x1000 };
	struct builder b = { .n = 0 };
	struct unwind_rows rows;

	put_cie_of(&b, "zR", 4);
	/* advance by 2 in 6 bits, by 3 in a byte, by 4 in two bytes; the CFA moves each time */
	PUT_FDE(&b, BASE + 0x40, 0x80, "\x42\x0e\x10\x02\x03\x0e\x18\x03\x04\x00\x0e\x20");
	assert_int_equal(compile(&b, &extent, &rows), 0);
	check_row(&rows, 0x47, UNWIND_SP, 1, 0);
	check_row(&rows, 0x48, UNWIND_SP, 2, 0);
	check_row(&rows, 0x53, UNWIND_SP, 2, 0);
	check_row(&rows, 0x54, UNWIND_SP, 3, 0);
	check_row(&rows, 0x63, UNWIND_SP, 3, 0);
	check_row(&rows, 0x64, UNWIND_SP, 4, 0);
	unwind_rows_fini(&rows);
}

/* Checks start code like that of ld.so, which calls the constructors of all libraries. */
static void test_a_longer_start_with_nothing_behind(void **state)
{
	struct unwind_extent extent = { .base = BASE, .size = 0x3000, .entry = BASE + 0x2100 };
	struct builder b = { .n = 0 };
	struct unwind_rows rows;

	put_cie(&b, "zR");
	PUT_FDE(&b, BASE + 0x2140, 0x20, "");
	assert_int_equal(compile(&b, &extent, &rows), 0);
	check_row(&rows, 0x20ff, UNWIND_INVALID, 0, 0);
	check_row(&rows, 0x2100, UNWIND_END, 0, 0);
	check_row(&rows, 0x213f, UNWIND_END, 0, 0);
	check_row(&rows, 0x2140, UNWIND_SP, 1, 0);
	unwind_rows_fini(&rows);
}

static const struct unwind_rule *only_rule(const struct unwind_rows *rows)
{
	assert_int_equal(rows->n_rules, 1);
	return (const struct unwind_rule *)(rows->words + unwind_rows_frames(rows) +
					    rows->n_frames);
}

/* As assembly in libgcrypt does: all registers are relative to a saved sp. */
static void test_rule_of_sp(void **state)
{
	struct unwind_extent extent = { .base = BASE, .size = 0x1000 };
	const struct unwind_rule *rule;
	struct builder b = { .n = 0 };
	struct unwind_rows rows;

	put_cie(&b, "zR");
	PUT_FDE(&b, BASE, 0x40, "\x0f\x06\x77\x98\x01\x06\x23\x08\x10\x06\x03\x77\xa0\x01");
	assert_int_equal(compile(&b, &extent, &rows), 0);
	rule = only_rule(&rows);
	assert_int_equal(rule->cfa_kind, UNWIND_CFA_MEMORY);
	assert_int_equal(rule->cfa_register, CFI_SP);
	assert_int_equal(rule->cfa_offset, 152);
	assert_int_equal(rule->cfa_add, 8);
	assert_int_equal(rule->bp_kind, UNWIND_SAVED_SP);
	assert_int_equal(rule->bp_offset, 160);
	unwind_rows_fini(&rows);
}

/* Only pieces that are long enough keep frame pointers; nothing is known of shorter ones. */
static void test_long_pieces_keep_frame_pointers(void **state)
{
	struct unwind_extent extent = {
		.base = BASE, .size = 0x8000, .keeps_frame_pointers = true, .kept_bytes_min = 0x4000
	};
	struct builder b = { .n = 0 };
	struct unwind_rows rows;

	put_cie(&b, "zR");
	PUT_FDE(&b, BASE + 0x1000, 0x40, "");
	PUT_FDE(&b, BASE + 0x5040, 0x40, "");
	assert_int_equal(compile(&b, &extent, &rows), 0);
	check_row(&rows, 0, UNWIND_INVALID, 0, 0);
	check_row(&rows, 0x1000, UNWIND_SP, 1, 0);
	check_row(&rows, 0x1040, UNWIND_FRAME, 0, 0);
	check_row(&rows, 0x503f, UNWIND_FRAME, 0, 0);
	check_row(&rows, 0x5040, UNWIND_SP, 1, 0);
	check_row(&rows, 0x5080, UNWIND_INVALID, 0, 0);
	unwind_rows_fini(&rows);
}

enum { FRAMED_AT = 0x8000, PARTS = 1500 };

/*
 * Code whose part at FRAMED_AT, and each third part behind it, has a function with a frame pointer;
 * the other parts have functions without one.
 */
static bool code_of(void *userdata, uint64_t address, void *out, size_t n)
{
	static const char framed[] = "\x55\x48\x89\xe5\x5d\xc3", bare[] = "\x41\x54\x41\x5c\xc3";
	uint64_t part = (address - BASE) >> UNWIND_PART_SHIFT;
	size_t *n_read = userdata;

	assert_true(n && ((address + n - 1 - BASE) >> UNWIND_PART_SHIFT) == part);
	*n_read += n;
	memset(out, 0x90, n);
	if (n < 64)
		return true;
	if (part % 3 == 1)
		memcpy((char *)out + 32, framed, sizeof(framed) - 1);
	else
		memcpy((char *)out + 32, bare, sizeof(bare) - 1);
	return true;
}

/*
 * Code with frame pointers, but for part 5, where no function begins, part 6, where one function
 * has none, and part 7, where five functions have none.
 */
static bool mostly_framed(void *userdata, uint64_t address, void *out, size_t n)
{
	static const char framed[] = "\x55\x48\x89\xe5\x5d\xc3", bare[] = "\x41\x54\x41\x5c\xc3";
	uint64_t part = (address - BASE) >> UNWIND_PART_SHIFT;
	size_t *n_read = userdata;

	*n_read += n;
	memset(out, 0x90, n);
	for (size_t i = 0; i < 5 && i * 64 + 38 < n && part != 5; i++) {
		if (part == 7 || (part == 6 && !i))
			memcpy((char *)out + i * 64 + 32, bare, sizeof(bare) - 1);
		else if (part != 6)
			memcpy((char *)out + i * 64 + 32, framed, sizeof(framed) - 1);
	}
	return true;
}

static unwind_code_reader *code_reader = code_of;

static int compile_surveyed(const struct builder *b, const struct unwind_extent *extent,
			    const struct unwind_wanted *wanted, struct unwind_rows *rows)
{
	_cleanup_(unwind_compiler_freep) struct unwind_compiler *compiler = NULL;
	struct cfi_section section = { .data = b->bytes, .size = b->n };
	size_t n_read = 0;
	int r = unwind_compiler_new(extent, WORDS_MAX, &compiler);

	if (!r && wanted)
		r = unwind_compiler_limit(compiler, wanted);
	if (!r)
		r = unwind_compiler_survey(compiler, code_reader, &n_read);
	if (!r && b->n)
		r = unwind_compiler_add(compiler, &section);
	if (!r)
		r = unwind_compiler_finish(compiler, rows);
	assert_true(n_read <= 512 * 8192);
	return r;
}

/* Code that no function covers keeps frame pointers where a survey of it says so. */
static void test_surveyed_code_keeps_frame_pointers(void **state)
{
	struct unwind_extent extent = { .base = BASE, .size = 0x18000, .entry = BASE + 0xc000 };
	struct builder b = { .n = 0 };
	struct unwind_rows rows;

	put_cie(&b, "zR");
	PUT_FDE(&b, BASE + 0x9000, 0x40, "");
	assert_int_equal(compile_surveyed(&b, &extent, NULL, &rows), 0);
	check_row(&rows, 0, UNWIND_INVALID, 0, 0);
	check_row(&rows, FRAMED_AT - 1, UNWIND_INVALID, 0, 0);
	check_row(&rows, FRAMED_AT, UNWIND_FRAME_PROVED, 0, 0);
	check_row(&rows, 0x8fff, UNWIND_FRAME_PROVED, 0, 0);
	check_row(&rows, 0x9000, UNWIND_SP, 1, 0);
	check_row(&rows, 0x9040, UNWIND_FRAME_PROVED, 0, 0);
	check_row(&rows, 0xc000, UNWIND_END, 0, 0);
	check_row(&rows, 0xc020, UNWIND_FRAME_PROVED, 0, 0);
	check_row(&rows, 0xffff, UNWIND_FRAME_PROVED, 0, 0);
	check_row(&rows, 0x10000, UNWIND_INVALID, 0, 0);
	unwind_rows_fini(&rows);

	/* Without any call frame information, the survey alone makes the table. */
	b.n = 0;
	assert_int_equal(compile_surveyed(&b, &extent, NULL, &rows), 0);
	check_row(&rows, 0x9000, UNWIND_FRAME_PROVED, 0, 0);
	unwind_rows_fini(&rows);
	extent.size = FRAMED_AT;
	extent.entry = 0;
	assert_int_equal(compile_surveyed(&b, &extent, NULL, &rows), -ENODATA);
}

/* Checks that a part that is compiled alone is the same as that of the whole table. */
static void check_alone(const struct builder *b, const struct unwind_extent *extent,
			const struct unwind_rows *rows, uint32_t part)
{
	struct unwind_wanted wanted = {
		.parts = &part,
		.n = 1,
		.frames = rows->words + unwind_rows_frames(rows),
		.n_frames = rows->n_frames,
		.n_rules = rows->n_rules,
	};
	struct unwind_rows some;
	uint32_t n, n_some;
	size_t first = unwind_rows_part(rows, part, &n), first_some;

	assert_int_equal(compile_surveyed(b, extent, &wanted, &some), 0);
	first_some = unwind_rows_part(&some, part, &n_some);
	assert_int_equal(n_some, n);
	assert_memory_equal(some.words + first_some, rows->words + first, 8 * (size_t)n);
	unwind_rows_fini(&some);
}

/* In a large file one survey stands for several parts. */
static void test_surveys_stand_for_parts(void **state)
{
	struct unwind_extent extent = { .base = BASE,
					.size = (uint64_t)PARTS << UNWIND_PART_SHIFT };
	static const uint32_t parts[] = { 0, 1, 2, 3, 4, 5, 8, 999 };
	struct builder b = { .n = 0 };
	struct unwind_rows rows;

	put_cie(&b, "zR");
	PUT_FDE(&b, BASE + 0x9000, 0x40, "");
	/* One survey stands for 3 parts: parts 0, 3, 6, ... are surveyed, all of which are bare. */
	assert_int_equal(compile_surveyed(&b, &extent, NULL, &rows), 0);
	check_row(&rows, FRAMED_AT, UNWIND_INVALID, 0, 0);
	unwind_rows_fini(&rows);

	extent.size = (uint64_t)1000 << UNWIND_PART_SHIFT; /* one survey stands for 2 parts */
	assert_int_equal(compile_surveyed(&b, &extent, NULL, &rows), 0);
	check_row(&rows, FRAMED_AT, UNWIND_INVALID, 0, 0);
	check_row(&rows, 4 << UNWIND_PART_SHIFT, UNWIND_FRAME_PROVED, 0, 0);
	check_row(&rows, 5 << UNWIND_PART_SHIFT, UNWIND_FRAME_PROVED, 0, 0);
	check_row(&rows, 6 << UNWIND_PART_SHIFT, UNWIND_INVALID, 0, 0);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		check_alone(&b, &extent, &rows, parts[i]);
	unwind_rows_fini(&rows);
}

/* Where the code of a part tells too little, it is taken for what most code of its file is. */
static void test_most_code_decides(void **state)
{
	struct unwind_extent extent = { .base = BASE, .size = 16 << UNWIND_PART_SHIFT };
	struct builder b = { .n = 0 };
	struct unwind_rows rows;

	put_cie(&b, "zR");
	PUT_FDE(&b, BASE + 0x9000, 0x40, "");
	code_reader = mostly_framed;
	assert_int_equal(compile_surveyed(&b, &extent, NULL, &rows), 0);
	check_row(&rows, 0, UNWIND_FRAME_PROVED, true, 0);
	check_row(&rows, 5 << UNWIND_PART_SHIFT, UNWIND_FRAME_PROVED, true, 0);
	check_row(&rows, 6 << UNWIND_PART_SHIFT, UNWIND_FRAME_PROVED, true, 0);
	check_row(&rows, 7 << UNWIND_PART_SHIFT, UNWIND_INVALID, 0, 0);
	check_row(&rows, 8 << UNWIND_PART_SHIFT, UNWIND_FRAME_PROVED, true, 0);
	for (uint32_t i = 0; i < 16; i++)
		check_alone(&b, &extent, &rows, i);
	unwind_rows_fini(&rows);
	code_reader = code_of;
}

static void test_rule(void **state)
{
	struct unwind_extent extent = { .base = BASE, .size = 0x1000 };
	const struct unwind_rule *rule;
	struct builder b = { .n = 0 };
	struct unwind_rows rows;

	put_cie(&b, "zR");
	PUT_FDE(&b, BASE, 0x40, "\x0f\x03\x76\x78\x06\x10\x06\x02\x76\x00");
	assert_int_equal(compile(&b, &extent, &rows), 0);
	rule = only_rule(&rows);
	assert_int_equal(rule->cfa_kind, UNWIND_CFA_MEMORY);
	assert_int_equal(rule->cfa_register, CFI_BP);
	assert_int_equal(rule->cfa_offset, -8);
	assert_int_equal(rule->cfa_add, 0);
	assert_int_equal(rule->bp_kind, UNWIND_SAVED_BP);
	assert_int_equal(rule->bp_offset, 0);
	assert_int_equal(rule->pc_kind, UNWIND_SAVED_CFA);
	assert_int_equal(rule->pc_offset, -8);
	unwind_rows_fini(&rows);
}

/* A function with nonsense has no rows, and the functions behind it are still read. */
static void test_nonsense(void **state)
{
	struct unwind_extent extent = { .base = BASE, .size = 0x1000 };
	struct builder b = { .n = 0 };
	struct unwind_rows rows;

	put_cie(&b, "zR");
	PUT_FDE(&b, BASE + 0x100, 0x40,
		"\x0e\x10\x3f\x3f"); /* an instruction that does not exist */
	PUT_FDE(&b, BASE + 0x200, 0x40, "\x41\x0e\x10\x02");	 /* truncated in an operand */
	PUT_FDE(&b, BASE + 0x300, 0x40, "\x04\x00\x00\x00\xff"); /* advances far beyond its end */
	PUT_FDE(&b, BASE + 0x400, 0x40, "\x0b"); /* restores a state that was not remembered */
	PUT_FDE(&b, 0x10, 0x40, "");		 /* an address outside the code */
	PUT_FDE(&b, BASE + 0xff0, 0x40, "");	 /* ends beyond the code */
	PUT_FDE(&b, BASE + 0x500, 0x40, "\x44\x0e\x10");
	PUT_FDE(&b, BASE + 0x520, 0x80, "\x0e\x20"); /* begins before the function before it ends */
	PUT_FDE(&b, BASE + 0x520, 0x10, "\x0e\x30"); /* the same function a second time */
	assert_int_equal(compile(&b, &extent, &rows), 0);
	check_row(&rows, 0x120, UNWIND_INVALID, 0, 0);
	check_row(&rows, 0x220, UNWIND_INVALID, 0, 0);
	check_row(&rows, 0x320, UNWIND_INVALID, 0, 0);
	check_row(&rows, 0x420, UNWIND_INVALID, 0, 0);
	check_row(&rows, 0x51f, UNWIND_SP, 2, 0);
	check_row(&rows, 0x520, UNWIND_SP, 4, 0);
	check_row(&rows, 0x540, UNWIND_SP, 4, 0);
	check_row(&rows, 0xfff, UNWIND_INVALID, 0, 0);
	unwind_rows_fini(&rows);
}

static void test_limits(void **state)
{
	struct unwind_extent extent = { .base = BASE, .size = UINT32_MAX };
	struct unwind_compiler *compiler;
	struct builder b = { .n = 0 };
	struct unwind_rows rows;

	assert_int_equal(unwind_compiler_new(&extent, 1024, &compiler), -E2BIG);
	extent.size = 0;
	assert_int_equal(unwind_compiler_new(&extent, 1024, &compiler), -E2BIG);
	extent.size = 0x1000;
	assert_int_equal(compile(&b, &extent, &rows), -ENODATA);
	extent.keeps_frame_pointers = true;
	extent.entry = BASE + 0x200;
	assert_int_equal(compile(&b, &extent, &rows), 0);
	check_row(&rows, 0x123, UNWIND_FRAME, 0, 0);
	check_row(&rows, 0x200, UNWIND_END, 0, 0);
	check_row(&rows, 0x220, UNWIND_FRAME, 0, 0); /* only the byte behind the entry */
	check_row(&rows, 0xfff, UNWIND_FRAME, 0, 0);
	unwind_rows_fini(&rows);
}

extern const char __executable_start[];
extern void (*const __fini_array_start[])(void), (*const __init_array_start[])(void);
void _init(void);
void _fini(void);

static uint32_t place_of(const struct unwind_extent *extent, void (*function)(void))
{
	return (uint32_t)((uintptr_t)function - (uintptr_t)__executable_start - extent->base);
}

/* Returns the size of its endbr64, 0 if it has none. */
static uint32_t mark_of(void (*function)(void))
{
	return *(const uint8_t *)(uintptr_t)function == 0xf3 ? 4 : 0;
}

/*
 * Checks the rows of the code that the start files have brought into this program, which has no
 * information.
 */
static void test_start_files(void **state)
{
	struct elf_source source = { .fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC) };
	struct unwind_extent extent;
	struct unwind_rows rows;
	struct elf_file file;
	uint32_t at;

	assert_int_equal(elf_file_read(&source, &file), 0);
	assert_int_equal(compile_elf(&source, &file, -1, WORDS_MAX, NULL, &rows), 0);
	assert_true(compile_elf_extent(&file, &extent));
	at = place_of(&extent, _init);
	check_row(&rows, at, UNWIND_SP, 1, 0);
	check_row(&rows, at + mark_of(_init) + 4, UNWIND_SP, 2, 0);
	at = place_of(&extent, _fini);
	check_row(&rows, at, UNWIND_SP, 1, 0);
	check_row(&rows, at + mark_of(_fini) + 4, UNWIND_SP, 2, 0);
	check_row(&rows, at + mark_of(_fini) + 8, UNWIND_SP, 1, 0);
#ifndef __SANITIZE_ADDRESS__ /* its own functions come first there */
	at = place_of(&extent, __fini_array_start[0]);
	check_row(&rows, at, UNWIND_SP, 1, 0);
	check_row(&rows, at + mark_of(__fini_array_start[0]) + 10, UNWIND_SP, 2, -2);
	check_row(&rows, at - 1, UNWIND_SP, 1, 0); /* register_tm_clones */
	check_row(&rows, place_of(&extent, __init_array_start[0]), UNWIND_SP, 1, 0);
#endif
	unwind_rows_fini(&rows);
	elf_file_fini(&file);
	close(source.fd);
}

/* Sets *wanted to one part of a table that was compiled before. */
static void want(const struct unwind_rows *rows, uint32_t *part, struct unwind_wanted *wanted)
{
	*wanted = (struct unwind_wanted){
		.parts = part,
		.n = 1,
		.frames = rows->words + unwind_rows_frames(rows),
		.n_frames = rows->n_frames,
		.n_rules = rows->n_rules,
	};
}

static void check_parts(const char *path)
{
	struct elf_source source = { .fd = open(path, O_RDONLY | O_CLOEXEC) };
	struct unwind_rows rows, some;
	struct unwind_wanted wanted;
	struct elf_file file;
	uint32_t n, n_some;

	assert_int_equal(elf_file_read(&source, &file), 0);
	assert_int_equal(compile_elf(&source, &file, -1, WORDS_MAX, NULL, &rows), 0);
	for (uint32_t i = 0; i < rows.n_parts; i++) {
		size_t first = unwind_rows_part(&rows, i, &n), first_some;

		want(&rows, &i, &wanted);
		assert_int_equal(compile_elf(&source, &file, -1, WORDS_MAX, &wanted, &some), 0);
		assert_int_equal(some.n_parts, rows.n_parts);
		/* Functions far away are left out. */
		assert_true(rows.n_parts < 20 || some.n_rows < rows.n_rows / 2);
		first_some = unwind_rows_part(&some, i, &n_some);
		assert_int_equal(n_some, n);
		assert_memory_equal(some.words + first_some, rows.words + first, 8 * (size_t)n);
		unwind_rows_fini(&some);
	}
	unwind_rows_fini(&rows);
	elf_file_fini(&file);
	close(source.fd);
}

/* A part that is compiled alone is the same as the part of the whole table, in any file. */
static void test_wanted_parts(void **state)
{
	Dl_info libc;

	assert_true(dladdr(&stdin, &libc));
	check_parts("/proc/self/exe");
	check_parts(libc.dli_fname);
}

/* Frames that are not those of the file's table are refused, or found to be others. */
static void test_wanted_errors(void **state)
{
	struct unwind_extent extent = { .base = BASE, .size = 0x20000 };
	_cleanup_(unwind_compiler_freep) struct unwind_compiler *compiler = NULL;
	struct unwind_wanted wanted;
	struct builder b = { .n = 0 };
	struct cfi_section section;
	struct unwind_rows rows, some;
	uint32_t part = 0;

	put_cie(&b, "zR");
	PUT_FDE(&b, BASE + 0x40, 0x20, "\x41\x0e\x10");
	PUT_FDE(&b, BASE + 0xb00, 0x40, "\x0f\x03\x76\x78\x06\x10\x06\x02\x76\x00");
	assert_int_equal(compile(&b, &extent, &rows), 0);
	section = (struct cfi_section){ .data = b.bytes, .size = b.n };

	want(&rows, &part, &wanted);
	wanted.n_frames = 0;
	assert_int_equal(unwind_compiler_new(&extent, WORDS_MAX, &compiler), 0);
	assert_int_equal(unwind_compiler_limit(compiler, &wanted), -EBADMSG);
	compiler = unwind_compiler_free(compiler);

	want(&rows, &part, &wanted);
	wanted.n_rules = 0; /* a frame refers to the rule */
	assert_int_equal(unwind_compiler_new(&extent, WORDS_MAX, &compiler), 0);
	assert_int_equal(unwind_compiler_limit(compiler, &wanted), -EBADMSG);
	compiler = unwind_compiler_free(compiler);

	want(&rows, &part, &wanted);
	part = 4; /* the file has parts 0 to 3 */
	assert_int_equal(unwind_compiler_new(&extent, WORDS_MAX, &compiler), 0);
	assert_int_equal(unwind_compiler_limit(compiler, &wanted), -EBADMSG);
	compiler = unwind_compiler_free(compiler);

	part = 0;
	wanted.n_frames = 1; /* an earlier table of a file with other functions */
	wanted.n_rules = 0;
	assert_int_equal(unwind_compiler_new(&extent, WORDS_MAX, &compiler), 0);
	assert_int_equal(unwind_compiler_limit(compiler, &wanted), 0);
	assert_int_equal(unwind_compiler_add(compiler, &section), 0);
	assert_int_equal(unwind_compiler_finish(compiler, &some), -ESTALE);
	unwind_rows_fini(&rows);
}

/*
 * Compiles this program's own information with bytes changed and truncated: no crash, and all stays
 * in bounds.
 */
static void test_changed(void **state)
{
	struct elf_source source = { .fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC) };
	size_t size = (size_t)lseek(source.fd, 0, SEEK_END);
	char *image = malloc(size), *copy = malloc(size);
	uint32_t seed = 1, i, j, at, tables = 0;
	struct unwind_extent extent;
	struct unwind_rows rows;
	struct elf_file file;

	assert_int_equal(pread(source.fd, image, size, 0), size);
	close(source.fd);
	for (i = 0; i < 3000; i++) {
		struct elf_source changed = { .fd = -1, .image = copy, .image_size = size };

		memcpy(copy, image, size);
		for (j = 0; j < 1 + i % 64; j++) {
			seed = seed * 1664525 + 1013904223;
			copy[seed % (i % 2 ? size : 4096)] = (char)(seed >> 24);
		}
		if (i % 5 == 0)
			changed.image_size = seed % size;
		if (elf_file_read(&changed, &file))
			continue;
		if (!compile_elf(&changed, &file, -1, WORDS_MAX, NULL, &rows)) {
			tables++;
			assert_true(compile_elf_extent(&file, &extent));
			assert_true(rows.n_words <= WORDS_MAX);
			for (at = 0; at < extent.size; at += 1 + (uint32_t)extent.size / 100)
				find(&rows, at);
			unwind_rows_fini(&rows);
		}
		elf_file_fini(&file);
	}
	assert_true(tables > 100);
	free(image);
	free(copy);
}

/*
 * Adds a function of one rule: the offset of its CFA is no multiple of 8, which struct unwind_frame
 * cannot express.
 */
static void put_ruled(struct builder *b, uint32_t start, unsigned int number)
{
	unsigned int offset = 8 * number + 1;
	char code[] = { 0x0e, (char)(0x80 | (offset & 0x7f)), (char)(0x80 | offset >> 7), 0x01 };

	put_fde(b, start, 0x10, code, sizeof(code));
}

/* Rules are counted once each, and those beyond the limit make invalid rows. */
static void test_many_rules(void **state)
{
	enum { RULES = 260, LIMIT = 256, EACH = 0x10, BYTES = 64 * 1024 };
	struct unwind_extent extent = { .base = BASE, .size = 4 * RULES * EACH };
	struct cfi_section section = { 0 };
	struct unwind_compiler *compiler;
	struct unwind_rows rows;
	struct builder b;
	uint8_t *bytes = malloc(BYTES);
	uint32_t i;

	assert_non_null(bytes);
	for (i = 0; i < 2 * RULES; i++) { /* each rule twice, each with a CIE of its own */
		b = (struct builder){ .n = 0 };
		put_cie(&b, "zR");
		put_ruled(&b, BASE + i * EACH, i % RULES);
		assert_true(section.size + b.n <= BYTES);
		memcpy(bytes + section.size, b.bytes, b.n);
		section.size += b.n;
	}
	section.data = bytes;
	assert_int_equal(unwind_compiler_new(&extent, WORDS_MAX, &compiler), 0);
	assert_int_equal(unwind_compiler_add(compiler, &section), 0);
	assert_int_equal(unwind_compiler_finish(compiler, &rows), 0);
	assert_int_equal(rows.n_rules, LIMIT);
	for (i = 0; i < 2 * RULES; i++)
		check_row(&rows, i * EACH, i % RULES < LIMIT ? UNWIND_RULE : UNWIND_INVALID,
			  i % RULES < LIMIT ? (int)(i % RULES) : 0, 0);
	unwind_rows_fini(&rows);
	unwind_compiler_free(compiler);
	free(bytes);
}

/* The steps are limited by the size that a section has in the file, where it is compressed. */
static void test_steps(void **state)
{
	enum { CODE = 128 * 1024, STORED = 1024 };
	struct unwind_extent extent = { .base = BASE, .size = 0x3000 };
	struct cfi_section section = { 0 };
	struct unwind_compiler *compiler;
	struct builder b = { .n = 0 };
	uint8_t *bytes = calloc(1, CODE + sizeof(b.bytes)); /* the zeros are instructions, too */
	uint32_t length;

	assert_non_null(bytes);
	put_cie(&b, "zR");
	put_fde(&b, BASE, 0x10, "", 0);
	memcpy(bytes, b.bytes, b.n);
	length = (uint32_t)(b.n - b.entry - 4 + CODE);
	memcpy(bytes + b.entry, &length, sizeof(length));
	section.data = bytes;
	section.size = b.n + CODE;
	assert_int_equal(unwind_compiler_new(&extent, WORDS_MAX, &compiler), 0);
	assert_int_equal(unwind_compiler_add(compiler, &section), 0);
	section.stored = STORED;
	assert_int_equal(unwind_compiler_add(compiler, &section), -E2BIG);
	unwind_compiler_free(compiler);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_rules),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_code_alignment),
		cmocka_unit_test(test_a_longer_start_with_nothing_behind),
		cmocka_unit_test(test_rule),
		cmocka_unit_test(test_rule_of_sp),
		cmocka_unit_test(test_long_pieces_keep_frame_pointers),
		cmocka_unit_test(test_surveyed_code_keeps_frame_pointers),
		cmocka_unit_test(test_surveys_stand_for_parts),
		cmocka_unit_test(test_most_code_decides),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_start_files),
		cmocka_unit_test(test_wanted_parts),
		cmocka_unit_test(test_wanted_errors),
		cmocka_unit_test(test_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
