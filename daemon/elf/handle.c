/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/elf/handle.h"

#include <elf.h>
#include <string.h>
#include <unistd.h>

#include <gelf.h>

/* Programs with debug information have some 40 sections and 15 segments. */
#define SECTIONS_MAX	65536
#define SEGMENTS_MAX	4096
#define NAMES_BYTES_MAX (1024 * 1024) /* maximum size of the names of all sections, in bytes */
/* maximum size of a string table (.strtab, .dynstr), in bytes */
#define STRINGS_BYTES_MAX (64 * 1024 * 1024)

/* The fields of an ELF header that say how much libelf will allocate. */
struct header {
	bool is_64;
	uint64_t sections; /* file offset of the section headers; 0: the file has none */
	size_t n_sections, n_segments, names;
};

bool elf_handle_read(const struct elf_source *source, uint64_t offset, void *out, size_t size)
{
	if (offset > INT64_MAX)
		return false;
	if (!source->image)
		return pread(source->fd, out, size, (off_t)offset) == (ssize_t)size;
	if (offset > source->image_size || size > source->image_size - offset)
		return false;
	memcpy(out, (const char *)source->image + offset, size);
	return true;
}

static bool header_read(const struct elf_source *source, struct header *out)
{
	uint8_t ident[EI_NIDENT];
	Elf32_Ehdr small;
	Elf64_Ehdr big;

	if (!elf_handle_read(source, 0, ident, sizeof(ident)) ||
	    memcmp(ident, ELFMAG, SELFMAG) != 0 || ident[EI_DATA] != ELFDATA2LSB)
		return false;
	if (ident[EI_CLASS] == ELFCLASS32) {
		if (!elf_handle_read(source, 0, &small, sizeof(small)))
			return false;
		*out = (struct header){ false, small.e_shoff, small.e_shnum, small.e_phnum,
					small.e_shstrndx };
		return true;
	}
	if (ident[EI_CLASS] != ELFCLASS64 || !elf_handle_read(source, 0, &big, sizeof(big)))
		return false;
	*out = (struct header){ true, big.e_shoff, big.e_shnum, big.e_phnum, big.e_shstrndx };
	return true;
}

/* Reads the size and the link of a section. Returns false if the file has no such section. */
static bool section_read(const struct elf_source *source, const struct header *header, size_t i,
			 uint64_t *size_out, size_t *link_out)
{
	uint64_t entry = header->is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
	Elf32_Shdr small;
	Elf64_Shdr big;

	if (header->sections > INT64_MAX)
		return false;
	if (header->is_64) {
		if (!elf_handle_read(source, header->sections + i * entry, &big, sizeof(big)))
			return false;
		*size_out = big.sh_size;
		*link_out = big.sh_link;
		return true;
	}
	if (!elf_handle_read(source, header->sections + i * entry, &small, sizeof(small)))
		return false;
	*size_out = small.sh_size;
	*link_out = small.sh_link;
	return true;
}

/*
 * True if libelf can open the file within limits. Numbers that do not fit into the ELF header are
 * in the header of the first section, which else is empty.
 */
static bool is_limited(const struct elf_source *source)
{
	struct header header;
	uint64_t size;
	size_t link;

	/*
	 * If e_phnum is PN_XNUM (0xffff), the number of segments is in the first section header
	 * instead. PN_XNUM is above the limit, so such a file is refused, too.
	 */
	if (!header_read(source, &header) || header.n_segments > SEGMENTS_MAX)
		return false;
	if (!header.sections || !section_read(source, &header, 0, &size, &link))
		return true;
	if ((header.n_sections ? header.n_sections : size) > SECTIONS_MAX)
		return false;
	if (header.names == SHN_XINDEX)
		header.names = link;
	return !section_read(source, &header, header.names, &size, &link) ||
	       size <= NAMES_BYTES_MAX;
}

/*
 * Opens an ELF file with libelf, which reads it by pread() and does not map it. So if the file is
 * truncated meanwhile, reading fails with an error and not with SIGBUS.
 */
Elf *elf_handle_open(const struct elf_source *source)
{
	Elf *elf;

	if (elf_version(EV_CURRENT) == EV_NONE || !is_limited(source))
		return NULL;
	if (source->image) /* the cast is safe: libelf writes to the image only in elf_update() */
		elf = elf_memory((char *)(uintptr_t)source->image, source->image_size);
	else
		elf = elf_begin(source->fd, ELF_C_READ, NULL);
	if (elf && elf_kind(elf) != ELF_K_ELF) {
		elf_end(elf);
		return NULL;
	}
	return elf;
}

void elf_handle_endp(Elf **elf)
{
	if (*elf)
		elf_end(*elf);
}

static bool is_small(Elf_Scn *section, uint64_t max)
{
	GElf_Shdr header;

	return section && gelf_getshdr(section, &header) && header.sh_type != SHT_NOBITS &&
	       header.sh_size <= max;
}

Elf_Data *elf_handle_bytes(Elf_Scn *section, uint64_t max)
{
	return is_small(section, max) ? elf_rawdata(section, NULL) : NULL;
}

Elf_Data *elf_handle_entries(Elf_Scn *section, uint64_t max)
{
	return is_small(section, max) ? elf_getdata(section, NULL) : NULL;
}

const char *elf_handle_string(Elf *elf, size_t index, size_t at)
{
	Elf_Scn *section = elf_getscn(elf, index);
	GElf_Shdr header;

	/* elf_strptr() would decompress the section, to any size. */
	if (!is_small(section, STRINGS_BYTES_MAX) || !gelf_getshdr(section, &header) ||
	    header.sh_flags & SHF_COMPRESSED)
		return NULL;
	return elf_strptr(elf, index, at);
}
