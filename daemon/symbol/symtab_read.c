/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <gelf.h>
#include <libelf.h>

#include "daemon/elf/cfi.h"
#include "daemon/elf/debug_file.h"
#include "daemon/elf/go_pclntab.h"
#include "daemon/symbol/symtab_builder.h"

#define SYMBOL_BYTES_MAX (64 * 1024 * 1024)  /* maximum bytes of a symbol or string table */
#define FRAME_BYTES_MAX	 (128 * 1024 * 1024) /* maximum bytes of the section .eh_frame */
#define NAMELESS_MAX	 (1024 * 1024) /* maximum number of functions that are read from .eh_frame */

/* The sections of one ELF file from which symbols are read. */
struct sections {
	Elf *elf;
	Elf_Scn *symtab, *dynsym, *frames;
	uint64_t frames_address;
};

static int range_compare(const void *a, const void *b)
{
	const struct symtab_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void section_note(struct symtab_builder *builder, struct sections *sections,
			 Elf_Scn *section, const GElf_Shdr *header, const char *name)
{
	if (header->sh_type == SHT_SYMTAB && !sections->symtab)
		sections->symtab = section;
	if (header->sh_type == SHT_DYNSYM && !sections->dynsym)
		sections->dynsym = section;
	if (header->sh_type != SHT_NOBITS && name && !strcmp(name, ".eh_frame")) {
		sections->frames = section;
		sections->frames_address = header->sh_addr;
	}
	/* Take the executable sections only from the first file: a debug file lists the same
	 * sections. */
	if (builder->n_files > 1 ||
	    (header->sh_flags & (SHF_ALLOC | SHF_EXECINSTR)) != (SHF_ALLOC | SHF_EXECINSTR) ||
	    !header->sh_size || header->sh_addr > UINT64_MAX - header->sh_size)
		return;
	builder->code[builder->n_code++] =
		(struct symtab_range){ header->sh_addr, header->sh_addr + header->sh_size };
}

static int sections_read(struct symtab_builder *builder, Elf *elf, struct sections *out)
{
	struct sections sections = { .elf = elf };
	size_t n_sections, names = 0, n = 0;
	Elf_Scn *section = NULL;

	if (elf_getshdrnum(elf, &n_sections) < 0)
		return -EBADMSG;
	if (elf_getshdrstrndx(elf, &names) < 0)
		names = 0;
	if (!builder->code)
		builder->code = calloc(n_sections + 1, sizeof(*builder->code));
	if (!builder->code)
		return -ENOMEM;
	while ((section = elf_nextscn(elf, section)) && n++ < n_sections) {
		GElf_Shdr header;

		if (!gelf_getshdr(section, &header))
			return -EBADMSG;
		section_note(builder, &sections, section, &header,
			     names ? elf_handle_string(elf, names, header.sh_name) : NULL);
	}
	if (builder->n_files == 1)
		qsort(builder->code, builder->n_code, sizeof(struct symtab_range), range_compare);
	*out = sections;
	return 0;
}

/* Adds a file to the builder, which then owns the handle `elf`, and finds the file's sections. */
static int file_add(struct symtab_builder *builder, Elf *elf, struct sections *out)
{
	if (!elf)
		return -ENOEXEC;
	builder->files[builder->n_files++] = elf;
	return sections_read(builder, elf, out);
}

static bool is_function(const GElf_Sym *symbol)
{
	int type = GELF_ST_TYPE(symbol->st_info);

	if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS)
		return false;
	return type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE;
}

static int symbol_add(struct symtab_builder *builder, const GElf_Sym *symbol,
		      const Elf_Data *strings)
{
	const struct symtab_range *code = symtab_builder_code(builder, symbol->st_value);
	struct symtab_candidate item = { .start = symbol->st_value };
	size_t n_left, n;

	if (!code || symbol->st_name >= strings->d_size)
		return 0;
	item.name = (const char *)strings->d_buf + symbol->st_name;
	n_left = strings->d_size - symbol->st_name;
	n = strnlen(item.name, n_left < ELF_NAME_BYTES_MAX ? n_left : ELF_NAME_BYTES_MAX);
	/* Skip symbols such as '$x': on some machines they only tell disassemblers what is code and
	 * what is data. */
	if (!n || n == n_left || n == ELF_NAME_BYTES_MAX || item.name[0] == '$')
		return 0;
	for (size_t i = 1; i < n; i++) {
		if (item.name[i] == '@')
			n = i;
	}
	item.name_size = (uint16_t)n;
	item.end =
		symbol->st_size > code->end - item.start ? code->end : item.start + symbol->st_size;
	item.is_global = GELF_ST_BIND(symbol->st_info) != STB_LOCAL;
	return symtab_builder_add(builder, &item);
}

static int symbols_read(struct symtab_builder *builder, Elf *elf, Elf_Scn *section)
{
	Elf_Data *data, *strings;
	GElf_Shdr header, string_header;
	Elf_Scn *string_section;
	GElf_Sym symbol;
	int r;

	if (!gelf_getshdr(section, &header))
		return -EBADMSG;
	string_section = elf_getscn(elf, header.sh_link);
	if (!string_section || !gelf_getshdr(string_section, &string_header) ||
	    string_header.sh_type != SHT_STRTAB || !header.sh_entsize)
		return -EBADMSG;
	if (header.sh_size > SYMBOL_BYTES_MAX || string_header.sh_size > SYMBOL_BYTES_MAX)
		return -E2BIG;
	data = elf_handle_entries(section, SYMBOL_BYTES_MAX);
	strings = elf_handle_entries(string_section, SYMBOL_BYTES_MAX);
	if (!data || !strings)
		return -EBADMSG;
	if (!data->d_buf || !strings->d_buf)
		return 0;
	for (int i = 0; gelf_getsym(data, i, &symbol); i++) {
		if (!is_function(&symbol))
			continue;
		r = symbol_add(builder, &symbol, strings);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Adds a function from .eh_frame to the builder, without a name. */
static int on_function(void *userdata, const struct cfi_function *function)
{
	struct symtab_candidate item = {
		.start = function->start,
		.end = function->end,
		.is_signal = function->cie->is_signal,
	};
	struct symtab_builder *builder = userdata;
	const struct symtab_range *code = symtab_builder_code(builder, item.start);

	if (!code || item.end <= item.start)
		return 0;
	if (builder->n_nameless++ == NAMELESS_MAX)
		return -E2BIG;
	if (item.end > code->end)
		item.end = code->end;
	return symtab_builder_add(builder, &item);
}

static int frames_read(struct symtab_builder *builder, const struct sections *sections)
{
	Elf_Data *data = elf_handle_bytes(sections->frames, FRAME_BYTES_MAX);
	struct cfi_section frames = { .address = sections->frames_address };
	int class = gelf_getclass(sections->elf);
	int r;

	if (!data || !data->d_buf || class != ELFCLASS64)
		return 0;
	frames.data = data->d_buf;
	frames.size = data->d_size;
	r = cfi_for_each(&frames, on_function, builder);
	return r == -ENOMEM ? r : 0;
}

/*
 * Adds the symbols of a debug file, which describes the same code as the first file. It is no error
 * if the debug file cannot be read. Returns 0 or -ENOMEM.
 */
static int more_read(struct symtab_builder *builder, Elf *elf)
{
	struct sections sections;
	int r = elf ? file_add(builder, elf, &sections) : 0;

	if (elf && r == 0 && sections.symtab)
		r = symbols_read(builder, elf, sections.symtab);
	builder->has_symtab = builder->n > 0;
	return r == -ENOMEM ? r : 0;
}

static int debug_read(struct symtab_builder *builder, int fd)
{
	struct elf_source source = { .fd = fd };

	return more_read(builder, elf_handle_open(&source));
}

static int packed_read(struct symtab_builder *builder, const struct elf_source *file)
{
	struct elf_source source = { .fd = -1 };
	int r = debugdata_unpack(file, &builder->unpacked, &source.image_size);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	source.image = builder->unpacked;
	return more_read(builder, elf_handle_open(&source));
}

/*
 * Adds the functions in the table of Go's runtime (pclntab), which stays in a file when its symbol
 * table is stripped. A table of an unknown version, or one that contradicts itself, adds no
 * functions. Returns 0 or -ENOMEM.
 */
static int go_read(struct symtab_builder *builder, Elf *elf)
{
	struct go_pclntab go;
	bool is_go;
	int r = 0;

	if (!go_pclntab_open(elf, &go, &is_go))
		return 0;
	for (uint64_t i = 0; i < go.n_functions && !r; i++) {
		struct go_function function;
		struct symtab_candidate item = { 0 };
		const struct symtab_range *code;

		if (!go_pclntab_function(&go, i, &function))
			continue;
		code = symtab_builder_code(builder, function.start);
		if (!code)
			continue;
		item.start = function.start;
		item.end = function.end > code->end ? code->end : function.end;
		item.name = function.name;
		item.name_size = (uint16_t)function.name_size;
		r = symtab_builder_add(builder, &item);
	}
	return r;
}

int symtab_builder_read(struct symtab_builder *builder, const struct elf_source *source,
			const struct symtab_aids *aids)
{
	struct sections sections;
	int r;

	r = file_add(builder, elf_handle_open(source), &sections);
	if (r == 0 && sections.symtab)
		r = symbols_read(builder, sections.elf, sections.symtab);
	builder->has_symtab = builder->n > 0;
	if (r == 0 && !builder->has_symtab && aids && aids->debug_fd >= 0)
		r = debug_read(builder, aids->debug_fd);
	if (r == 0 && !builder->has_symtab)
		r = packed_read(builder, source);
	if (r == 0 && !builder->has_symtab)
		r = go_read(builder, sections.elf);
	/*
	 * Most symbols of .dynsym are also in .symtab. Read .dynsym, too, because some of them may
	 * have been stripped from .symtab.
	 */
	if (r == 0 && sections.dynsym)
		r = symbols_read(builder, sections.elf, sections.dynsym);
	return r ? r : frames_read(builder, &sections);
}
