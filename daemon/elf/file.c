/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/elf/file.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <gelf.h>
#include <libelf.h>

#include "common/base.h"
#include "daemon/elf/handle.h"

#define NOTES_BYTES_MAX	    (64 * 1024) /* maximum bytes of a note segment; usual: some hundred */
#define DEBUGLINK_BYTES_MAX 4096
#define PAGE_BYTES	    4096

static void notes_read(Elf *elf, const GElf_Phdr *phdr, struct elf_file *file)
{
	Elf_Type type = phdr->p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR;
	size_t offset = 0, name_offset, desc_offset;
	Elf_Data *data;
	GElf_Nhdr note;

	if (phdr->p_filesz > NOTES_BYTES_MAX || phdr->p_offset > INT64_MAX)
		return;
	data = elf_getdata_rawchunk(elf, (int64_t)phdr->p_offset, phdr->p_filesz, type);
	if (!data)
		return;
	while ((offset = gelf_getnote(data, offset, &note, &name_offset, &desc_offset)) > 0) {
		const char *bytes = data->d_buf;

		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof("GNU") ||
		    memcmp(bytes + name_offset, "GNU", sizeof("GNU")) || note.n_descsz < 4 ||
		    note.n_descsz > ELF_BUILD_ID_MAX)
			continue;
		memcpy(file->build_id, bytes + desc_offset, note.n_descsz);
		file->build_id_size = note.n_descsz;
		return;
	}
}

/*
 * Reads .gnu_debuglink: a file name, zeros up to a multiple of four, then the checksum of that
 * file.
 */
static void debuglink_read(Elf_Scn *section, struct elf_file *file)
{
	Elf_Data *data = elf_handle_bytes(section, DEBUGLINK_BYTES_MAX);
	const char *name;
	size_t n, at;

	if (!data || !data->d_buf || file->debug_name)
		return;
	name = data->d_buf;
	n = strnlen(name, data->d_size);
	at = (n + 1 + 3) & ~(size_t)3;
	if (!n || n > NAME_MAX || at + sizeof(file->debug_crc) > data->d_size ||
	    strchr(name, '/') || !strcmp(name, ".") || !strcmp(name, ".."))
		return;
	file->debug_name = strdup(name);
	memcpy(&file->debug_crc, name + at, sizeof(file->debug_crc));
}

/*
 * Reads facts from the sections. Ignores damaged sections: a program runs without sections, and
 * only names of functions are lost.
 */
static void sections_read(Elf *elf, struct elf_file *file)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) < 0)
		return;
	while ((section = elf_nextscn(elf, section))) {
		const char *name;
		GElf_Shdr header;

		if (!gelf_getshdr(section, &header))
			return;
		if (header.sh_type == SHT_SYMTAB)
			file->has_symtab = true;
		if (header.sh_type != SHT_PROGBITS || header.sh_flags & SHF_ALLOC)
			continue;
		name = elf_handle_string(elf, names, header.sh_name);
		if (name && !strcmp(name, ".gnu_debuglink"))
			debuglink_read(section, file);
	}
}

int elf_file_read(const struct elf_source *source, struct elf_file *out)
{
	_cleanup_(elf_handle_endp) Elf *elf = elf_handle_open(source);
	_cleanup_(elf_file_fini) struct elf_file file = { 0 };
	size_t n_headers;

	if (!elf)
		return -ENOEXEC;
	if (elf_getphdrnum(elf, &n_headers) < 0)
		return -EBADMSG;
	if (n_headers > ELF_SEGMENTS_MAX)
		n_headers = ELF_SEGMENTS_MAX;
	file.segments = calloc(n_headers + 1, sizeof(*file.segments));
	if (!file.segments)
		return -ENOMEM;
	for (size_t i = 0; i < n_headers; i++) {
		GElf_Phdr phdr;

		if (!gelf_getphdr(elf, (int)i, &phdr))
			return -EBADMSG;
		if (phdr.p_type == PT_NOTE && !file.build_id_size)
			notes_read(elf, &phdr, &file);
		if (phdr.p_type != PT_LOAD || !phdr.p_filesz)
			continue;
		if (phdr.p_offset > UINT64_MAX - phdr.p_filesz)
			return -EBADMSG;
		file.segments[file.n_segments++] = (struct elf_segment){
			.offset = phdr.p_offset,
			.size = phdr.p_filesz,
			.address = phdr.p_vaddr,
			.is_exec = phdr.p_flags & PF_X,
		};
	}
	sections_read(elf, &file);
	*out = file;
	file = (struct elf_file){ 0 };
	return 0;
}

void elf_file_fini(struct elf_file *file)
{
	free(file->segments);
	free(file->debug_name);
	*file = (struct elf_file){ 0 };
}

/*
 * Finds the segment that contains this offset in the file. Searches only executable segments if
 * is_exec is true, otherwise only the others. Memory is mapped in whole pages, so a segment also
 * contains the bytes between the start of its first page and its first byte; two segments may share
 * a page.
 */
static bool segment_find(const struct elf_file *file, uint64_t offset, bool is_exec,
			 uint64_t *address_out)
{
	for (size_t i = 0; i < file->n_segments; i++) {
		const struct elf_segment *segment = &file->segments[i];
		uint64_t slack = segment->offset % PAGE_BYTES;

		if (segment->is_exec != is_exec || offset < segment->offset - slack ||
		    offset >= segment->offset + segment->size)
			continue;
		*address_out = offset - segment->offset + segment->address;
		return true;
	}
	return false;
}

bool elf_file_address(const struct elf_file *file, uint64_t offset, uint64_t *address_out)
{
	return segment_find(file, offset, true, address_out) ||
	       segment_find(file, offset, false, address_out);
}
