/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzes what is inside of ELF files: the frame of the file, its header, segments and names of
 * sections, is sound, so that the readers get to the bytes of the sections. The input is a list of
 * sections: a byte that chooses the name and type, two bytes with the size, then the content.
 */
#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/elf/file.h"
#include "daemon/elf/functions.h"
#include "daemon/elf/usdt.h"
#include "daemon/symbol/symtab.h"
#include "daemon/unwind/compile_elf.h"
#include "tests/fuzz/fuzz.h"

enum { WORDS_MAX = 1 << 16, SECTIONS_MAX = 16, CODE_BYTES = 0x4000, IMAGE_BYTES = 1 << 17 };

/* The kinds of sections that stackd reads. */
static const struct kind {
	const char *name;
	uint32_t type;
	uint64_t flags, entry;
} kinds[] = {
	{ ".symtab", SHT_SYMTAB, 0, sizeof(Elf64_Sym) },
	{ ".dynsym", SHT_DYNSYM, SHF_ALLOC, sizeof(Elf64_Sym) },
	{ ".strtab", SHT_STRTAB, 0, 0 },
	{ ".eh_frame", SHT_PROGBITS, SHF_ALLOC, 0 },
	{ ".debug_frame", SHT_PROGBITS, 0, 0 },
	{ ".debug_frame", SHT_PROGBITS, SHF_COMPRESSED, 0 },
	{ ".gnu_debugdata", SHT_PROGBITS, 0, 0 },
	{ ".gopclntab", SHT_PROGBITS, SHF_ALLOC, 0 },
	{ ".go.buildinfo", SHT_PROGBITS, SHF_ALLOC, 0 },
	{ ".note.stapsdt", SHT_NOTE, 0, 0 },
	{ ".stapsdt.base", SHT_PROGBITS, SHF_ALLOC, 0 },
	{ ".rela.dyn", SHT_RELA, SHF_ALLOC, sizeof(Elf64_Rela) },
	{ ".init_array", SHT_INIT_ARRAY, SHF_ALLOC, 8 },
	{ ".fini_array", SHT_FINI_ARRAY, SHF_ALLOC, 8 },
	{ ".init", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0 },
	{ ".gnu_debuglink", SHT_PROGBITS, 0, 0 },
	{ ".data.rel.ro", SHT_PROGBITS, SHF_ALLOC, 0 },
};

struct image {
	uint8_t bytes[IMAGE_BYTES];
	size_t n;
	char names[512];
	size_t names_n;
	Elf64_Shdr headers[SECTIONS_MAX + 2];
	size_t n_headers;
};

static void section_add(struct image *image, const struct kind *kind, const void *data, size_t size)
{
	Elf64_Shdr *header = &image->headers[image->n_headers++];

	*header = (Elf64_Shdr){
		.sh_name = (uint32_t)image->names_n,
		.sh_type = kind->type,
		.sh_flags = kind->flags,
		.sh_addr = kind->flags & SHF_ALLOC ? image->n : 0,
		.sh_offset = image->n,
		.sh_size = size,
		.sh_link = 2, /* the section that the input has second, which may be its strings */
		.sh_addralign = 1,
		.sh_entsize = kind->entry,
	};
	image->names_n += (size_t)sprintf(image->names + image->names_n, "%s", kind->name) + 1;
	memcpy(image->bytes + image->n, data, size);
	image->n += size;
}

static void head_make(struct image *image)
{
	const struct kind names = { ".shstrtab", SHT_STRTAB, 0, 0 };
	Elf64_Ehdr *head = (Elf64_Ehdr *)(void *)image->bytes;
	Elf64_Phdr *segment = (Elf64_Phdr *)(void *)(image->bytes + sizeof(*head));

	section_add(image, &names, image->names, sizeof(image->names));
	memcpy(image->bytes + image->headers[image->n_headers - 1].sh_offset, image->names,
	       sizeof(image->names));
	image->n = (image->n + 7) & ~(size_t)7;
	*head = (Elf64_Ehdr){
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_entry = 0x100,
		.e_phoff = sizeof(*head),
		.e_shoff = image->n,
		.e_ehsize = sizeof(*head),
		.e_phentsize = sizeof(*segment),
		.e_phnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = (uint16_t)image->n_headers,
		.e_shstrndx = (uint16_t)(image->n_headers - 1),
	};
	*segment = (Elf64_Phdr){
		.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_filesz = CODE_BYTES,
		.p_memsz = CODE_BYTES,
		.p_align = 4096,
	};
	memcpy(image->bytes + image->n, image->headers,
	       image->n_headers * sizeof(image->headers[0]));
	image->n += image->n_headers * sizeof(image->headers[0]);
}

static void image_make(struct image *image, const uint8_t *data, size_t size)
{
	*image = (struct image){ .n = CODE_BYTES, .names_n = 1, .n_headers = 1 };
	while (size > 3 && image->n_headers <= SECTIONS_MAX) {
		size_t n = data[1] | (size_t)data[2] << 8;
		const struct kind *kind = &kinds[data[0] % ARRAY_SIZE(kinds)];

		data += 3;
		size -= 3;
		if (n > size)
			n = size;
		if (image->n + n > IMAGE_BYTES - 4096)
			break;
		section_add(image, kind, data, n);
		data += n;
		size -= n;
	}
	head_make(image);
}

static int on_function(void *context, const char *name, uint64_t offset, uint32_t sort)
{
	REQUIRE(name && strlen(name) < IMAGE_BYTES && sort < ELF_FUNCTION_SORTS);
	return 0;
}

static int on_probe(void *context, const char *name, uint64_t offset, uint32_t counter)
{
	REQUIRE(strchr(name, ':'));
	return 0;
}

static void symbols_read(const struct elf_source *source)
{
	struct symtab_aids aids = { .debug_fd = -1 };
	struct symtab *symtab;
	const char *name;
	uint64_t start;

	if (symtab_load(source, &aids, &symtab))
		return;
	for (uint64_t address = 0; address < IMAGE_BYTES; address += 0x133)
		if (symtab_lookup(symtab, address, &name, &start))
			REQUIRE(start <= address);
	symtab_free(symtab);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct image image;
	struct elf_source source = { .fd = memfd_create("parts", MFD_CLOEXEC) };
	struct elf_file file = { 0 };
	struct unwind_rows rows;

	image_make(&image, data, size);
	REQUIRE(source.fd >= 0);
	REQUIRE(write(source.fd, image.bytes, image.n) == (ssize_t)image.n);
	REQUIRE(elf_file_read(&source, &file) == 0);
	if (!compile_elf(&source, &file, -1, WORDS_MAX, NULL, &rows))
		unwind_rows_fini(&rows);
	symbols_read(&source);
	elf_functions(source.fd, source.fd, on_function, NULL);
	elf_usdt(source.fd, on_probe, NULL);
	elf_file_fini(&file);
	close(source.fd);
	return 0;
}
