/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/unwind/crt_files.h"

#include <errno.h>
#include <string.h>

#include "bpf/unwind_shared.h"
#include "daemon/elf/handle.h"

enum {
	SYMBOL_BYTES_MAX = 64 * 1024 * 1024,
	ARRAY_BYTES_MAX = 1 << 20, /* maximum size in bytes of .init_array and of .fini_array */
	SECTION_BYTES_MAX = 4096,  /* maximum bytes of .init and of .fini, which have about 30 */
	FUNCTION_BYTES_MAX = 128, /* maximum size in bytes of a function of crtbegin.o (about 60) */
	JUMP_BYTES = 5,
	MAKE_BYTES_MAX = 1024, /* maximum size in bytes of makecontext(), which has 380 */
	LEA_BYTES = 7,
	/*
	 * maximum size in bytes of the code to which the first function on a stack made by
	 * makecontext() returns; that code has 26
	 */
	START_BYTES_MAX = 32,
	HLT = 0xf4,
};

/*
 * The beginning of the code to which the first function on a stack made by makecontext() returns:
 * mov %rbx,%rsp; mov (%rsp),%rdi; test %rdi,%rdi; je
 */
#define START_CODE "\x48\x89\xdc\x48\x8b\x3c\x24\x48\x85\xff\x74"

static const struct unwind_frame outside = { .kind = UNWIND_SP, .cfa = 1 };

void crt_files_note(struct crt_sections *crt, Elf_Scn *section, const GElf_Shdr *header,
		    const char *name)
{
	if (header->sh_size <= SYMBOL_BYTES_MAX &&
	    (header->sh_type == SHT_DYNSYM || (header->sh_type == SHT_SYMTAB && !crt->symbols)))
		crt->symbols = section;
	else if (header->sh_type == SHT_INIT_ARRAY)
		crt->constructors = section;
	else if (header->sh_type == SHT_FINI_ARRAY)
		crt->destructors = section;
	else if (header->sh_type == SHT_PROGBITS && !strcmp(name, ".init"))
		crt->init = section;
	else if (header->sh_type == SHT_PROGBITS && !strcmp(name, ".fini"))
		crt->fini = section;
}

/*
 * A function or section, by its addresses. Its code from `moved` to `back` has the unwind frame
 * `inside`. Before and after this range, the code has not moved the stack pointer: the CFA is sp +
 * 8.
 */
struct piece {
	uint64_t start, moved, back, end;
	struct unwind_frame inside; /* unwind frame of the code from `moved` to `back` */
};

static int piece_add(struct unwind_compiler *compiler, const struct piece *piece)
{
	int r = unwind_compiler_begin(compiler, piece->start, piece->end);

	if (r)
		return r == -ERANGE ? 0 : r;
	r = unwind_compiler_row(compiler, piece->start, &outside);
	if (!r && piece->moved < piece->end)
		r = unwind_compiler_row(compiler, piece->moved, &piece->inside);
	if (!r && piece->back < piece->end)
		r = unwind_compiler_row(compiler, piece->back, &outside);
	unwind_compiler_end(compiler);
	return r;
}

/*
 * Returns the size of the instruction endbr64 if the code begins with it, else 0. Compilers add
 * this instruction with -fcf-protection.
 */
static size_t mark_size(const uint8_t *code, size_t size)
{
	return size >= 4 && !memcmp(code, "\xf3\x0f\x1e\xfa", 4) ? 4 : 0;
}

/* Adds rows for .init or .fini if its code is: sub $8,%rsp; calls; add $8,%rsp; ret */
static int section_add(struct unwind_compiler *compiler, Elf_Scn *section)
{
	Elf_Data *data = elf_handle_bytes(section, SECTION_BYTES_MAX);
	struct piece piece = { .inside = { .kind = UNWIND_SP, .cfa = 2 } };
	const uint8_t *code;
	GElf_Shdr header;
	size_t size, mark;

	if (!data || !data->d_buf || !gelf_getshdr(section, &header))
		return 0;
	code = data->d_buf;
	size = data->d_size;
	mark = mark_size(code, size);
	if (size < mark + 9 || memcmp(code + mark, "\x48\x83\xec\x08", 4) ||
	    memcmp(code + size - 5, "\x48\x83\xc4\x08\xc3", 5))
		return 0;
	piece.start = header.sh_addr;
	piece.moved = piece.start + mark + 4;
	piece.end = piece.start + size;
	piece.back = piece.end - 1;
	return piece_add(compiler, &piece);
}

/*
 * Returns the first address in a section of function addresses. Returns 0 if the dynamic linker
 * writes that address only when it loads the file.
 */
static uint64_t first_of(Elf_Scn *section)
{
	Elf_Data *data = elf_handle_bytes(section, ARRAY_BYTES_MAX);
	uint64_t first = 0;

	if (data && data->d_buf && data->d_size >= sizeof(first))
		memcpy(&first, data->d_buf, sizeof(first));
	return first;
}

/*
 * Returns the code at an address; NULL if there is none. *size is the number of bytes that the
 * caller wants; it is reduced if the segment has fewer.
 */
static const uint8_t *code_at(Elf *elf, const struct elf_file *file, uint64_t address, size_t *size)
{
	for (size_t i = 0; address && i < file->n_segments; i++) {
		const struct elf_segment *segment = &file->segments[i];
		uint64_t from = address - segment->address;
		Elf_Data *data;

		if (!segment->is_exec || address < segment->address || from >= segment->size ||
		    segment->offset + from > INT64_MAX)
			continue;
		if (*size > segment->size - from)
			*size = (size_t)(segment->size - from);
		data = elf_getdata_rawchunk(elf, (int64_t)(segment->offset + from), *size,
					    ELF_T_BYTE);
		return data ? data->d_buf : NULL;
	}
	return NULL;
}

/*
 * Adds rows for __do_global_dtors_aux() if its code is: cmpb $0,done; jne; push %rbp;
 * mov %rsp,%rbp and calls; movb $1,done; pop %rbp; ret
 */
static int destructor_add(struct unwind_compiler *compiler, Elf *elf, const struct elf_file *file,
			  uint64_t address)
{
	struct piece piece = { .start = address,
			       .inside = { .kind = UNWIND_SP, .cfa = 2, .bp = -2 } };
	size_t size = FUNCTION_BYTES_MAX, at;
	const uint8_t *code = code_at(elf, file, address, &size);

	if (!code)
		return 0;
	at = mark_size(code, size);
	if (size < at + 10 || memcmp(code + at, "\x80\x3d", 2) || code[at + 6] ||
	    code[at + 7] != 0x75 || code[at + 9] != 0x55)
		return 0;
	at += 10;
	piece.moved = address + at;
	for (; at + 9 <= size; at++) {
		if (memcmp(code + at, "\xc6\x05", 2) || memcmp(code + at + 6, "\x01\x5d\xc3", 3))
			continue;
		piece.back = address + at + 8;
		piece.end = piece.back + 1;
		return piece_add(compiler, &piece);
	}
	return 0;
}

/*
 * Adds rows for frame_dummy() and for register_tm_clones(). frame_dummy() jumps to
 * register_tm_clones(), which ends where the destructor begins. Neither function moves sp.
 */
static int constructor_add(struct unwind_compiler *compiler, Elf *elf, const struct elf_file *file,
			   uint64_t address, uint64_t destructor)
{
	struct piece piece = { .start = address };
	size_t size = 4 + JUMP_BYTES, at;
	const uint8_t *code = code_at(elf, file, address, &size);
	int32_t distance;
	int r;

	if (!code)
		return 0;
	at = mark_size(code, size);
	if (size < at + JUMP_BYTES || code[at] != 0xe9)
		return 0;
	memcpy(&distance, code + at + 1, sizeof(distance));
	piece.end = piece.moved = piece.back = address + at + JUMP_BYTES;
	r = piece_add(compiler, &piece);
	piece.start = piece.end + (uint64_t)(int64_t)distance;
	if (r || piece.start >= destructor || destructor - piece.start > FUNCTION_BYTES_MAX)
		return r;
	piece.end = piece.moved = piece.back = destructor;
	return piece_add(compiler, &piece);
}

int crt_files_add(struct unwind_compiler *compiler, Elf *elf, const struct elf_file *file,
		  const struct crt_sections *crt)
{
	uint64_t destructor = first_of(crt->destructors);
	int r = section_add(compiler, crt->init);

	if (r)
		return r;
	r = section_add(compiler, crt->fini);
	if (r)
		return r;
	r = destructor_add(compiler, elf, file, destructor);
	if (r)
		return r;
	return constructor_add(compiler, elf, file, first_of(crt->constructors), destructor);
}

static bool function_find(Elf *elf, Elf_Scn *symbols, const char *wanted, GElf_Sym *out)
{
	Elf_Data *data = elf_handle_entries(symbols, SYMBOL_BYTES_MAX);
	GElf_Shdr header;
	const char *name;

	if (!data || !data->d_buf || !gelf_getshdr(symbols, &header))
		return false;
	for (int i = 0; gelf_getsym(data, i, out); i++) {
		if (GELF_ST_TYPE(out->st_info) != STT_FUNC || out->st_shndx == SHN_UNDEF)
			continue;
		name = elf_handle_string(elf, header.sh_link, out->st_name);
		if (name && !strcmp(name, wanted))
			return true;
	}
	return false;
}

static int end_add(struct unwind_compiler *compiler, uint64_t start, uint64_t end)
{
	static const struct unwind_frame last = { .kind = UNWIND_END };
	int r = unwind_compiler_begin(compiler, start, end);

	if (r)
		return r == -ERANGE ? 0 : r;
	r = unwind_compiler_row(compiler, start, &last);
	unwind_compiler_end(compiler);
	return r;
}

/*
 * Adds rows that end stack walks in the code to which the first function on a stack made by
 * makecontext() returns. The byte before this code gets a row, too, because walks look up the byte
 * before a return address. libc's own call frame information cannot be used: it says that this code
 * has a caller, and has nothing for that byte.
 */
static int start_add(struct unwind_compiler *compiler, Elf *elf, const struct elf_file *file,
		     uint64_t address)
{
	size_t size = START_BYTES_MAX;
	const uint8_t *code = code_at(elf, file, address, &size), *hlt;
	int r;

	if (!code || size < sizeof(START_CODE) || memcmp(code, START_CODE, sizeof(START_CODE) - 1))
		return 0;
	hlt = memchr(code, HLT, size);
	if (!hlt)
		return 0;
	r = end_add(compiler, address - 1, address);
	return r ? r : end_add(compiler, address, address + (uint64_t)(hlt - code) + 1);
}

int crt_files_add_context(struct unwind_compiler *compiler, Elf *elf, const struct elf_file *file,
			  const struct crt_sections *crt)
{
	const uint8_t *code;
	GElf_Sym make;
	int32_t distance;
	size_t size;
	int r = 0;

	if (!function_find(elf, crt->symbols, "makecontext", &make))
		return 0;
	size = make.st_size < MAKE_BYTES_MAX ? make.st_size : MAKE_BYTES_MAX;
	code = code_at(elf, file, make.st_value, &size);
	for (size_t at = 0; code && at + LEA_BYTES <= size && !r; at++) {
		/* Skip all instructions other than lea address(%rip),%register. */
		if ((code[at] & 0xf8) != 0x48 || code[at + 1] != 0x8d ||
		    (code[at + 2] & 0xc7) != 0x05)
			continue;
		memcpy(&distance, code + at + 3, sizeof(distance));
		r = start_add(compiler, elf, file,
			      make.st_value + at + LEA_BYTES + (uint64_t)(int64_t)distance);
	}
	return r;
}
