/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/elf/functions.h"

#include <errno.h>
#include <gelf.h>

#include "common/base.h"
#include "daemon/elf/file.h"
#include "daemon/elf/handle.h"

#define SYMBOL_BYTES_MAX (64 * 1024 * 1024) /* maximum bytes of a symbol or string table */

struct walk {
	const struct elf_file *file; /* file with the code; its debug file may have the names */
	elf_function_fn function_fn;
	void *context;
};

int elf_code_offset(const struct elf_file *file, uint64_t address, uint64_t *offset_out)
{
	size_t i;

	for (i = 0; i < file->n_segments; i++) {
		const struct elf_segment *segment = &file->segments[i];

		if (!segment->is_exec || address < segment->address ||
		    address - segment->address >= segment->size)
			continue;
		*offset_out = segment->offset + (address - segment->address);
		return 0;
	}
	return -ENOENT;
}

/* The flag of a version that is not the one that programs are linked against. */
#define VERSION_IS_HIDDEN 0x8000

static int symbol_visit(const struct walk *walk, const GElf_Sym *symbol, const char *name,
			bool is_old)
{
	bool chooses = GELF_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC;
	uint64_t offset;

	if ((!chooses && GELF_ST_TYPE(symbol->st_info) != STT_FUNC) ||
	    symbol->st_shndx == SHN_UNDEF || !name || !name[0])
		return 0;
	if (elf_code_offset(walk->file, symbol->st_value, &offset))
		return 0;
	return walk->function_fn(walk->context, name, offset,
				 is_old	   ? ELF_FUNCTION_OLD
				 : chooses ? ELF_FUNCTION_CHOOSES
					   : ELF_FUNCTION);
}

/* Returns the versions of the symbols of a section; NULL if they have none. */
static Elf_Data *versions_find(Elf *elf, Elf_Scn *symbols)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_GNU_versym &&
		    header.sh_link == elf_ndxscn(symbols))
			return elf_handle_entries(section, SYMBOL_BYTES_MAX);
	return NULL;
}

static bool version_is_old(Elf_Data *versions, size_t i)
{
	GElf_Versym version;

	return versions && gelf_getversym(versions, (int)i, &version) &&
	       version & VERSION_IS_HIDDEN;
}

static int section_walk(Elf *elf, Elf_Scn *section, const GElf_Shdr *header,
			const struct walk *walk)
{
	Elf_Data *data = elf_handle_entries(section, SYMBOL_BYTES_MAX);
	Elf_Data *versions = versions_find(elf, section);
	size_t i, n = header->sh_entsize ? header->sh_size / header->sh_entsize : 0;
	GElf_Shdr strings;
	GElf_Sym symbol;
	int r = 0;

	if (header->sh_size > SYMBOL_BYTES_MAX ||
	    (gelf_getshdr(elf_getscn(elf, header->sh_link), &strings) &&
	     strings.sh_size > SYMBOL_BYTES_MAX))
		return -E2BIG;
	if (!data)
		return 0;
	for (i = 0; i < n && !r; i++)
		if (gelf_getsym(data, (int)i, &symbol))
			r = symbol_visit(walk, &symbol,
					 elf_handle_string(elf, header->sh_link, symbol.st_name),
					 version_is_old(versions, i));
	return r;
}

static int tables_walk(int fd, const struct walk *walk)
{
	const struct elf_source source = { .fd = fd };
	_cleanup_(elf_handle_endp) Elf *elf = elf_handle_open(&source);
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	int r = elf ? 0 : -ENOEXEC;

	while (!r && (section = elf_nextscn(elf, section))) {
		if (!gelf_getshdr(section, &header))
			return -EBADMSG;
		if (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM)
			r = section_walk(elf, section, &header, walk);
	}
	return r;
}

int elf_functions(int fd, int debug_fd, elf_function_fn function_fn, void *context)
{
	const struct elf_source source = { .fd = fd };
	_cleanup_(elf_file_fini) struct elf_file file = {};
	int r = elf_file_read(&source, &file);
	const struct walk walk = { &file, function_fn, context };

	if (r)
		return r;
	r = tables_walk(fd, &walk);
	return r || debug_fd < 0 ? r : tables_walk(debug_fd, &walk);
}
