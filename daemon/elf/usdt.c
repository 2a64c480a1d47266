/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/elf/usdt.h"

#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/base.h"
#include "daemon/elf/file.h"
#include "daemon/elf/functions.h"
#include "daemon/elf/handle.h"

/* Format of the notes: sourceware.org/systemtap/wiki/UserSpaceProbeImplementation */
#define SECTION	  ".note.stapsdt"
#define BASE	  ".stapsdt.base"
#define OWNER	  "stapsdt"
#define NOTE_TYPE 3

enum { NOTES_BYTES_MAX = 16 << 20, NAME_ROOM = 256 };

struct walk {
	const struct elf_file *file;
	elf_usdt_fn probe_fn;
	void *context;
	size_t address_size; /* size of an address in this file, in bytes: 4 or 8 */
	uint64_t base;	     /* address of the section .stapsdt.base; 0: the file has none */
};

/* The addresses with which the note of a static probe begins. */
struct note_addresses {
	uint64_t code, base, counter;
};

static uint64_t address_at(const struct walk *walk, const char *bytes, size_t i)
{
	uint32_t narrow;
	uint64_t wide;

	if (walk->address_size == sizeof(narrow)) {
		memcpy(&narrow, bytes + i * sizeof(narrow), sizeof(narrow));
		return narrow;
	}
	memcpy(&wide, bytes + i * sizeof(wide), sizeof(wide));
	return wide;
}

/*
 * Finds the offset in the file of a tracing counter (USDT semaphore), whose address is in a data
 * segment. The kernel takes only 32 bits for the offset (a6ca88b241d5, 4.20). Returns 0 or -ENOENT.
 */
static int counter_offset(const struct elf_file *file, uint64_t address, uint32_t *out)
{
	size_t i;

	for (i = 0; i < file->n_segments; i++) {
		const struct elf_segment *segment = &file->segments[i];
		uint64_t offset = segment->offset + (address - segment->address);

		if (segment->is_exec || address < segment->address ||
		    address - segment->address >= segment->size || offset > UINT32_MAX)
			continue;
		*out = (uint32_t)offset;
		return 0;
	}
	return -ENOENT;
}

/*
 * Makes "provider:probe" from `text`, which has three strings: provider, probe and arguments. Each
 * string ends with a NUL.
 */
static bool name_make(const char *text, size_t size, char out[static NAME_ROOM])
{
	size_t provider = strnlen(text, size), probe;

	if (!provider || provider == size)
		return false;
	probe = strnlen(text + provider + 1, size - provider - 1);
	if (!probe || probe == size - provider - 1 || provider + probe + 2 > NAME_ROOM)
		return false;
	snprintf(out, NAME_ROOM, "%s:%s", text, text + provider + 1);
	return true;
}

static int note_visit(const struct walk *walk, const char *desc, size_t size)
{
	const size_t head = 3 * walk->address_size;
	struct note_addresses at;
	char name[NAME_ROOM];
	uint32_t counter = 0;
	uint64_t moved, offset;

	if (size <= head || !name_make(desc + head, size - head, name))
		return 0;
	at.code = address_at(walk, desc, 0);
	at.base = address_at(walk, desc, 1);
	at.counter = address_at(walk, desc, 2);
	/* If prelink(8) has moved the file to other addresses, correct those in its notes. */
	moved = walk->base && at.base ? walk->base - at.base : 0;
	if (elf_code_offset(walk->file, at.code + moved, &offset))
		return 0;
	/* Leave out a probe whose counter is not found: no tracer could enable this probe. */
	if (at.counter && counter_offset(walk->file, at.counter + moved, &counter))
		return 0;
	return walk->probe_fn(walk->context, name, offset, counter);
}

static int notes_walk(Elf_Scn *section, const struct walk *walk)
{
	Elf_Data *data = elf_handle_entries(section, NOTES_BYTES_MAX);
	size_t offset = 0, name_offset, desc_offset;
	GElf_Nhdr note;
	int r = 0;

	if (!data)
		return -EBADMSG;
	while (!r && (offset = gelf_getnote(data, offset, &note, &name_offset, &desc_offset)) > 0) {
		const char *bytes = data->d_buf;

		if (note.n_type != NOTE_TYPE || note.n_namesz != sizeof(OWNER) ||
		    memcmp(bytes + name_offset, OWNER, sizeof(OWNER)))
			continue;
		r = note_visit(walk, bytes + desc_offset, note.n_descsz);
	}
	return r;
}

/* Returns the section with this name and stores its header; NULL if there is none. */
static Elf_Scn *section_find(Elf *elf, const char *name, GElf_Shdr *header)
{
	Elf_Scn *section = NULL;
	const char *found;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) < 0)
		return NULL;
	while ((section = elf_nextscn(elf, section))) {
		found = gelf_getshdr(section, header)
				? elf_handle_string(elf, names, header->sh_name)
				: NULL;
		if (found && strcmp(found, name) == 0)
			return section;
	}
	return NULL;
}

int elf_usdt(int fd, elf_usdt_fn probe_fn, void *context)
{
	const struct elf_source source = { .fd = fd };
	_cleanup_(elf_handle_endp) Elf *elf = elf_handle_open(&source);
	_cleanup_(elf_file_fini) struct elf_file file = {};
	struct walk walk = { &file, probe_fn, context, sizeof(uint64_t), 0 };
	int r = elf ? elf_file_read(&source, &file) : -ENOEXEC;
	Elf_Scn *section;
	GElf_Shdr header;

	if (r)
		return r;
	if (gelf_getclass(elf) == ELFCLASS32)
		walk.address_size = sizeof(uint32_t);
	if (section_find(elf, BASE, &header))
		walk.base = header.sh_addr;
	section = section_find(elf, SECTION, &header);
	return section && header.sh_type == SHT_NOTE ? notes_walk(section, &walk) : 0;
}
