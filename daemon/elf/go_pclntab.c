/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/elf/go_pclntab.h"

#include <errno.h>
#include <string.h>

#include <gelf.h>

#define MAGIC_1_18	     UINT32_C(0xfffffff0)
#define MAGIC_1_20	     UINT32_C(0xfffffff1)
#define FUNCTIONS_MAX	     (1024 * 1024) /* maximum; the largest programs have 200,000 */
#define RELOCATION_BYTES_MAX (64 * 1024 * 1024)
#define TABLE_BYTES_MAX	     (128 * 1024 * 1024)
#define ALIGNMENT	     8
#define TABLES_MAX	     4 /* maximum number of candidates for the table in one section */
#define START_NAME	     "_rt0_amd64_linux"

/*
 * The header of the table since Go 1.18, see pcHeader in src/runtime/symtab.go of Go. All offsets
 * in it are relative to the header.
 */
struct header {
	uint32_t magic;
	uint8_t zeros[2], min_lc, pointer_size;
	uint64_t n_functions, n_files, text_start;
	uint64_t names, units, files, pcs, functions;
};

/*
 * An entry of the list of functions. After the last entry, the list has one more address: the end
 * of the last function.
 */
struct table_entry {
	uint32_t start;	 /* address of the function, relative to the start of the code */
	uint32_t offset; /* offset of its struct function, relative to the start of the list */
};

/* A function in the format of the table, see _func in src/runtime/runtime2.go of Go. */
struct function {
	uint32_t start;
	int32_t name;
	uint32_t arguments, deferred;
	uint32_t steps; /* offset of the function's steps in the list of steps */
	uint32_t files, lines, n_pcs, unit;
	uint8_t tail[5]; /* funcID and flags; since Go 1.20, a 32-bit word comes before both */
};

enum { FLAGS_1_18 = 1, FLAG_FIRST = 1, FLAG_WRITES_SP = 2 };

static bool bytes_read(const struct go_pclntab *go, uint64_t offset, void *out, size_t size)
{
	if (offset > go->size || size > go->size - offset)
		return false;
	memcpy(out, go->data + offset, size);
	return true;
}

/*
 * Finds the name at this offset and returns its length; 0 if the name lies outside the table. Names
 * in the table are never empty.
 */
static size_t name_size(const struct go_pclntab *go, int32_t offset, const char **out)
{
	uint64_t at = go->names + (uint64_t)offset;
	size_t most, n;

	if (offset < 0 || go->names > go->size || at >= go->size)
		return 0;
	most = go->size - at < ELF_NAME_BYTES_MAX ? go->size - at : ELF_NAME_BYTES_MAX;
	*out = (const char *)go->data + at;
	n = strnlen(*out, most);
	return n == most ? 0 : n;
}

/*
 * Returns the flags of the function whose struct is at the offset `at`; 0 if they lie outside the
 * table.
 */
static uint8_t flags_of(const struct go_pclntab *go, uint64_t at)
{
	uint8_t flags = 0;

	at += offsetof(struct function, tail) + FLAGS_1_18 + (go->is_1_20 ? sizeof(uint32_t) : 0);
	return bytes_read(go, at, &flags, 1) ? flags : 0;
}

bool go_pclntab_function(const struct go_pclntab *go, uint64_t i, struct go_function *out)
{
	uint64_t at = go->functions + i * sizeof(struct table_entry);
	struct go_function found = { 0 };
	struct function function;
	struct table_entry entry;
	uint32_t end;
	uint8_t flags;

	if (!bytes_read(go, at, &entry, sizeof(entry)) ||
	    !bytes_read(go, at + sizeof(entry), &end, sizeof(end)) ||
	    !bytes_read(go, go->functions + entry.offset, &function,
			offsetof(struct function, tail)) ||
	    function.start != entry.start || end <= entry.start)
		return false;
	found.start = go->base + entry.start;
	found.end = go->base + end;
	found.steps = function.steps;
	found.name_size = name_size(go, function.name, &found.name);
	flags = flags_of(go, go->functions + entry.offset);
	found.is_first = flags & FLAG_FIRST;
	found.writes_sp = flags & FLAG_WRITES_SP;
	*out = found;
	return found.name_size > 0 && found.end > found.start;
}

/* Reads a varint. Returns false if it has more than 32 bits, or at the end of the table. */
static bool varint_read(const struct go_pclntab *go, uint64_t *at, uint32_t *out)
{
	uint32_t value = 0;

	for (unsigned int shift = 0; shift < 32 && *at < go->size; shift += 7) {
		uint8_t byte = go->data[(*at)++];

		value |= (uint32_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*out = value;
			return true;
		}
	}
	return false;
}

/*
 * A step is a pair of varints: the change of the stack depth, in zigzag encoding, and the number of
 * bytes of code for which the new depth is valid. A change of 0 ends the list.
 */
int go_pclntab_steps(const struct go_pclntab *go, const struct go_function *function,
		     uint64_t *budget, go_step_fn callback, void *userdata)
{
	struct go_step step = { .end = function->start };
	uint64_t at = go->steps + function->steps, begin;
	int64_t depth = -1;
	uint32_t change, size;
	int r = 0;

	while (!r && step.end < function->end) {
		begin = at;
		if (!varint_read(go, &at, &change))
			return -EBADMSG;
		if (!change && step.end > function->start)
			return 0;
		if (!varint_read(go, &at, &size))
			return -EBADMSG;
		if (*budget < at - begin)
			return -E2BIG;
		*budget -= at - begin;
		depth += (int32_t)(change >> 1 ^ (0 - (change & 1)));
		if (!size || depth < 0 || depth > INT32_MAX)
			return -EBADMSG;
		step.start = step.end;
		step.end += size;
		if (step.end > function->end)
			step.end = function->end;
		step.depth = (uint32_t)depth;
		r = callback(userdata, &step);
	}
	return r;
}

/*
 * Returns the value that the dynamic linker would write to an address of a position-independent
 * file; 0 if it writes nothing there.
 */
static uint64_t relocated(Elf *elf, uint64_t address)
{
	uint64_t left = RELOCATION_BYTES_MAX;
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	GElf_Rela rela;

	while ((section = elf_nextscn(elf, section))) {
		Elf_Data *data;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_RELA)
			continue;
		data = elf_handle_entries(section, left);
		left -= data ? header.sh_size : 0;
		for (int i = 0; data && data->d_buf && gelf_getrela(data, i, &rela); i++)
			if (rela.r_offset == address &&
			    GELF_R_TYPE(rela.r_info) == R_X86_64_RELATIVE)
				return (uint64_t)rela.r_addend;
	}
	return 0;
}

/*
 * Finds the address at which the code starts. Up to Go 1.25 this address is in the table's header;
 * in a position-independent file it is in a relocation of the header. If neither has it, assumes
 * that the code starts where .text starts. Then checks this assumption: the function at the
 * program's entry must have the name START_NAME in the table. Returns false if it has not.
 */
static bool base_find(Elf *elf, uint64_t address, uint64_t text_address, struct go_pclntab *go)
{
	struct go_function function;
	GElf_Ehdr header;

	if (!go->base)
		go->base = relocated(elf, address + offsetof(struct header, text_start));
	if (go->base)
		return true;
	if (!gelf_getehdr(elf, &header))
		return false;
	go->base = text_address;
	for (uint64_t i = 0; i < go->n_functions; i++)
		if (go_pclntab_function(go, i, &function) && function.start == header.e_entry)
			return function.name_size == strlen(START_NAME) &&
			       !memcmp(function.name, START_NAME, function.name_size);
	return false;
}

/* Reads the header of the table. Returns false if no table of a known version begins at `data`. */
static bool table_read(const uint8_t *data, size_t size, struct go_pclntab *out)
{
	struct go_pclntab go = { .data = data, .size = size };
	struct header header;

	if (!bytes_read(&go, 0, &header, sizeof(header)) ||
	    (header.magic != MAGIC_1_18 && header.magic != MAGIC_1_20) || header.zeros[0] ||
	    header.zeros[1] || header.min_lc != 1 || header.pointer_size != 8 ||
	    header.functions > size || header.n_functions > FUNCTIONS_MAX ||
	    header.n_functions > (size - header.functions) / sizeof(struct table_entry))
		return false;
	go.base = header.text_start;
	go.n_functions = header.n_functions;
	go.names = header.names;
	go.steps = header.pcs;
	go.functions = header.functions;
	go.is_1_20 = header.magic == MAGIC_1_20;
	*out = go;
	return true;
}

struct sections {
	Elf_Scn *table;
	Elf_Scn *mixed; /* .data.rel.ro, in which some linkers put the table */
	uint64_t text_address;
	bool is_go;
};

static void sections_find(Elf *elf, struct sections *out)
{
	Elf_Scn *section = NULL;
	size_t names;
	GElf_Shdr header;

	if (elf_getshdrstrndx(elf, &names) < 0)
		return;
	while ((section = elf_nextscn(elf, section)) && gelf_getshdr(section, &header)) {
		const char *name = elf_handle_string(elf, names, header.sh_name);

		if (!name)
			continue;
		if (!strcmp(name, ".text"))
			out->text_address = header.sh_addr;
		if (!strcmp(name, ".note.go.buildid"))
			out->is_go = true;
		if (header.sh_type != SHT_PROGBITS || header.sh_size > TABLE_BYTES_MAX)
			continue;
		if (!strcmp(name, ".gopclntab") || !strcmp(name, ".data.rel.ro.gopclntab"))
			out->table = section;
		else if (!strcmp(name, ".data.rel.ro"))
			out->mixed = section;
	}
}

bool go_pclntab_open(Elf *elf, struct go_pclntab *out, bool *is_go_out)
{
	struct sections sections = { 0 };
	Elf_Scn *section;
	GElf_Shdr header;
	Elf_Data *data;
	size_t at = 0;
	int n = 0;

	sections_find(elf, &sections);
	*is_go_out = sections.is_go || sections.table;
	section = sections.table ? sections.table : sections.is_go ? sections.mixed : NULL;
	data = section && gelf_getshdr(section, &header)
		       ? elf_handle_bytes(section, TABLE_BYTES_MAX)
		       : NULL;
	if (!data || !data->d_buf)
		return false;
	for (; at < data->d_size && n < TABLES_MAX; at += ALIGNMENT) {
		if (table_read((const uint8_t *)data->d_buf + at, data->d_size - at, out)) {
			n++;
			if (base_find(elf, header.sh_addr + at, sections.text_address, out))
				return true;
		}
		if (sections.table)
			return false;
	}
	return false;
}
