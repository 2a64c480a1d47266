/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzes the notes of static probes. The input is a byte with the class of the file and whether it
 * has a .stapsdt.base, eight bytes with the address of that section, and then the content of
 * .note.stapsdt. All else of the file is sound, and it has a segment of code and one of data.
 */
#include <gelf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/elf/usdt.h"
#include "tests/fuzz/fuzz.h"

enum { SEGMENT_BYTES = 0x1000, NOTES_MAX = 1 << 16, HEAD_BYTES = 1 + sizeof(uint64_t) };

/* The names of sections, and where each begins. */
static char names[] = "\0.shstrtab\0.note.stapsdt\0.stapsdt.base";
enum { NAME_NAMES = 1, NAME_NOTES = 11, NAME_BASE = 25 };

static void section_add(Elf *elf, GElf_Shdr header, void *content, size_t size)
{
	Elf_Scn *section = elf_newscn(elf);
	Elf_Data *data = elf_newdata(section);
	GElf_Shdr made;

	REQUIRE(data && gelf_getshdr(section, &made));
	data->d_buf = content;
	data->d_size = size;
	data->d_align = 4;
	header.sh_addralign = 4;
	REQUIRE(gelf_update_shdr(section, &header));
}

/* Writes a file with these notes. `base` is NULL for a file without .stapsdt.base. */
static void file_write(int fd, int class, const uint64_t *base, void *notes, size_t size)
{
	Elf *elf = elf_begin(fd, ELF_C_WRITE, NULL);
	GElf_Ehdr head = {
		.e_ident = { [EI_CLASS] = (unsigned char)class, [EI_DATA] = ELFDATA2LSB },
		.e_type = ET_DYN,
		.e_machine = class == ELFCLASS64 ? EM_X86_64 : EM_386,
		.e_version = EV_CURRENT,
		.e_shstrndx = 1,
	};

	REQUIRE(elf && gelf_newehdr(elf, class) && gelf_update_ehdr(elf, &head));
	REQUIRE(gelf_newphdr(elf, 2));
	for (unsigned i = 0; i < 2; i++) {
		GElf_Phdr segment = {
			.p_type = PT_LOAD,
			.p_flags = i ? PF_R | PF_W : PF_R | PF_X,
			.p_offset = i * SEGMENT_BYTES,
			.p_vaddr = i * SEGMENT_BYTES,
			.p_filesz = SEGMENT_BYTES,
			.p_memsz = SEGMENT_BYTES,
			.p_align = SEGMENT_BYTES,
		};

		REQUIRE(gelf_update_phdr(elf, (int)i, &segment));
	}
	section_add(elf, (GElf_Shdr){ .sh_name = NAME_NAMES, .sh_type = SHT_STRTAB }, names,
		    sizeof(names));
	section_add(elf, (GElf_Shdr){ .sh_name = NAME_NOTES, .sh_type = SHT_NOTE }, notes, size);
	if (base)
		section_add(elf,
			    (GElf_Shdr){
				    .sh_name = NAME_BASE,
				    .sh_type = SHT_PROGBITS,
				    .sh_addr = class == ELFCLASS64 ? *base : (uint32_t)*base,
			    },
			    names, 4);
	REQUIRE(elf_update(elf, ELF_C_WRITE) > 0);
	elf_end(elf);
}

static int on_probe(void *context, const char *name, uint64_t offset, uint32_t counter)
{
	/* A name may have further colons. */
	REQUIRE(strlen(name) >= 3 && strchr(name, ':'));
	REQUIRE(offset < SEGMENT_BYTES);
	REQUIRE(!counter || counter - SEGMENT_BYTES < SEGMENT_BYTES);
	++*(size_t *)context;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t notes[NOTES_MAX];
	size_t n = 0;
	uint64_t base;
	int fd;

	if (size < HEAD_BYTES || size - HEAD_BYTES > NOTES_MAX)
		return 0;
	elf_version(EV_CURRENT);
	fd = memfd_create("usdt", MFD_CLOEXEC);
	REQUIRE(fd >= 0);
	memcpy(&base, data + 1, sizeof(base));
	memcpy(notes, data + HEAD_BYTES, size - HEAD_BYTES);
	file_write(fd, data[0] & 1 ? ELFCLASS64 : ELFCLASS32, data[0] & 2 ? &base : NULL, notes,
		   size - HEAD_BYTES);
	elf_usdt(fd, on_probe, &n);
	/* Each has at least a head, an owner, three addresses and two names. */
	REQUIRE(n <= size / 32);
	close(fd);
	return 0;
}
