/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/unwind/compile_elf.h"

#include <errno.h>
#include <string.h>

#include <gelf.h>
#include <libelf.h>

#include "common/base.h"
#include "daemon/elf/go_pclntab.h"
#include "daemon/elf/handle.h"
#include "daemon/unwind/compile_go.h"
#include "daemon/unwind/crt_files.h"

/* Sections of call frame information larger than this are not read; that of libLLVM has 5 MiB. */
#define SECTION_BYTES_MAX (128 * 1024 * 1024)
#define PAGE_BYTES	  4096

/*
 * V8, the JavaScript engine of Node.js, calls all JavaScript through its builtins: some 1.5 MiB of
 * code that has no call frame information but keeps frame pointers. So in a file with V8, code
 * without call frame information is walked by frame pointers if it is at least this large.
 */
#define V8_CODE_BYTES_MIN (256 * 1024)
#define V8_PREFIX	  "v8dbg_"

bool compile_elf_extent(const struct elf_file *file, struct unwind_extent *out)
{
	uint64_t start = UINT64_MAX, end = 0;

	for (size_t i = 0; i < file->n_segments; i++) {
		const struct elf_segment *segment = &file->segments[i];

		if (!segment->is_exec || segment->address > UINT64_MAX - segment->size)
			continue;
		if (segment->address < start)
			start = segment->address;
		if (segment->address + segment->size > end)
			end = segment->address + segment->size;
	}
	if (end <= start)
		return false;
	start -= start % PAGE_BYTES;
	*out = (struct unwind_extent){ .base = start, .size = end - start };
	return out->size <= UINT32_MAX;
}

struct sections {
	Elf_Scn *eh, *debug;
	struct crt_sections crt;
	uint64_t eh_address;
	size_t debug_stored; /* size of `debug` in the file, where it is compressed; else 0 */
};

/*
 * Decompresses a section. False if that fails, or if the size in the section's header is above
 * SECTION_BYTES_MAX.
 */
static bool section_inflate(Elf_Scn *section)
{
	GElf_Chdr header;

	return gelf_getchdr(section, &header) && header.ch_size <= SECTION_BYTES_MAX &&
	       elf_compress(section, 0, 0) >= 0;
}

static int sections_find(Elf *elf, struct sections *out)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	const char *name;
	size_t names;

	*out = (struct sections){ 0 };
	if (elf_getshdrstrndx(elf, &names) < 0)
		return -EBADMSG;
	while ((section = elf_nextscn(elf, section))) {
		if (!gelf_getshdr(section, &header))
			return -EBADMSG;
		name = elf_handle_string(elf, names, header.sh_name);
		if (!name)
			continue;
		if (header.sh_type == SHT_NOBITS || header.sh_size > SECTION_BYTES_MAX)
			continue;
		crt_files_note(&out->crt, section, &header, name);
		if (strcmp(name, ".eh_frame") == 0) {
			out->eh = section;
			out->eh_address = header.sh_addr;
		} else if (strcmp(name, ".debug_frame") == 0 &&
			   (!(header.sh_flags & SHF_COMPRESSED) || section_inflate(section))) {
			out->debug = section;
			out->debug_stored = header.sh_flags & SHF_COMPRESSED ? header.sh_size : 0;
		}
	}
	return 0;
}

/*
 * True if the file contains V8: it then exports constants (v8dbg_*), which tell debuggers the
 * layout of V8's objects.
 */
static bool is_v8(Elf *elf, Elf_Scn *dynsym)
{
	Elf_Data *data = elf_handle_entries(dynsym, SECTION_BYTES_MAX);
	GElf_Shdr header;
	GElf_Sym symbol;
	const char *name;

	if (!data || !data->d_buf || !gelf_getshdr(dynsym, &header))
		return false;
	for (int i = 0; gelf_getsym(data, i, &symbol); i++) {
		if (GELF_ST_TYPE(symbol.st_info) != STT_OBJECT)
			continue;
		name = elf_handle_string(elf, header.sh_link, symbol.st_name);
		if (name && !strncmp(name, V8_PREFIX, strlen(V8_PREFIX)))
			return true;
	}
	return false;
}

static int section_add(struct unwind_compiler *compiler, Elf_Scn *section, uint64_t address,
		       size_t stored, bool is_debug)
{
	Elf_Data *data = elf_handle_bytes(section, SECTION_BYTES_MAX);
	struct cfi_section cfi = {
		.address = address,
		.stored = stored,
		.is_debug = is_debug,
	};

	/*
	 * .debug_frame may have been decompressed: elf_handle_bytes() would return the bytes in the
	 * file.
	 */
	if (is_debug)
		data = elf_handle_entries(section, SECTION_BYTES_MAX);
	if (!data || !data->d_buf || data->d_size > SECTION_BYTES_MAX)
		return 0;
	cfi.data = data->d_buf;
	cfi.size = data->d_size;
	return unwind_compiler_add(compiler, &cfi);
}

static int file_add(struct unwind_compiler *compiler, Elf *elf, const struct sections *sections)
{
	int r = section_add(compiler, sections->eh, sections->eh_address, 0, false);

	return r ? r : section_add(compiler, sections->debug, 0, sections->debug_stored, true);
}

/*
 * Adds the unwind rows of the separate debug file of a stripped file. Returns 0 if there is no
 * debug file.
 */
static int debug_file_add(struct unwind_compiler *compiler, int debug_fd)
{
	_cleanup_(elf_handle_endp) Elf *elf = NULL;
	struct elf_source source = { .fd = debug_fd };
	struct sections sections;
	int r;

	if (debug_fd < 0)
		return 0;
	elf = elf_handle_open(&source);
	if (!elf)
		return 0;
	r = sections_find(elf, &sections);
	return r ? r : file_add(compiler, elf, &sections);
}

/*
 * Completes the extent (the range of the file's code): stores the address at which the program
 * starts, and whether code without call frame information keeps frame pointers.
 */
static void extent_complete(struct unwind_extent *extent, Elf *elf, const struct sections *sections,
			    bool keeps_frame_pointers, uint64_t entry)
{
	extent->entry = entry;
	extent->keeps_frame_pointers = keeps_frame_pointers;
	if (extent->size > V8_CODE_BYTES_MIN && is_v8(elf, sections->crt.symbols)) {
		extent->keeps_frame_pointers = true;
		extent->kept_bytes_min = V8_CODE_BYTES_MIN;
	}
}

struct code_source {
	const struct elf_source *source;
	const struct elf_file *file;
};

/* Copies n bytes of a file's code at an ELF virtual address. False if the file lacks them. */
static bool code_read(void *userdata, uint64_t address, void *out, size_t n)
{
	const struct code_source *code = userdata;

	for (size_t i = 0; i < code->file->n_segments; i++) {
		const struct elf_segment *segment = &code->file->segments[i];
		uint64_t at = address - segment->address;

		if (!segment->is_exec || address < segment->address || at >= segment->size ||
		    n > segment->size - at)
			continue;
		return elf_handle_read(code->source, segment->offset + at, out, n);
	}
	return false;
}

int compile_elf(const struct elf_source *source, const struct elf_file *file, int debug_fd,
		size_t max_words, const struct unwind_wanted *wanted, struct unwind_rows *out)
{
	_cleanup_(unwind_compiler_freep) struct unwind_compiler *compiler = NULL;
	_cleanup_(elf_handle_endp) Elf *elf = elf_handle_open(source);
	struct code_source code = { source, file };
	struct unwind_extent extent;
	struct sections sections;
	struct go_pclntab go;
	GElf_Ehdr header;
	bool is_go, has_go;
	int r;

	if (!elf || !gelf_getehdr(elf, &header) || header.e_machine != EM_X86_64 ||
	    header.e_ident[EI_CLASS] != ELFCLASS64)
		return -ENOEXEC;
	if (!compile_elf_extent(file, &extent))
		return -ENODATA;
	r = sections_find(elf, &sections);
	if (r)
		return r;
	has_go = go_pclntab_open(elf, &go, &is_go);
	extent_complete(&extent, elf, &sections, is_go && !has_go, header.e_entry);
	r = unwind_compiler_new(&extent, max_words, &compiler);
	if (r)
		return r;
	if (wanted) {
		r = unwind_compiler_limit(compiler, wanted);
		if (r)
			return r;
	}
	if (!is_go) {
		r = unwind_compiler_survey(compiler, code_read, &code);
		if (r)
			return r;
	}
	/*
	 * Add the rows from Go's table of functions first, because the first rows for an address
	 * win: .debug_frame of a Go program has no rules for bp.
	 */
	if (has_go) {
		r = compile_go(compiler, source, file, &go, header.e_entry);
		if (r)
			return r;
	}
	r = crt_files_add_context(compiler, elf, file, &sections.crt);
	if (r)
		return r;
	r = file_add(compiler, elf, &sections);
	if (r)
		return r;
	if (!sections.debug && !has_go) {
		r = debug_file_add(compiler, debug_fd);
		if (r)
			return r;
	}
	r = crt_files_add(compiler, elf, file, &sections.crt);
	if (r)
		return r;
	return unwind_compiler_finish(compiler, out);
}
