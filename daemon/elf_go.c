/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/elf_go.h"

#include <errno.h>
#include <string.h>

#include <gelf.h>

#define MAGIC_1_18    UINT32_C(0xfffffff0)
#define MAGIC_1_20    UINT32_C(0xfffffff1)
#define FUNCTIONS_MAX (1024 * 1024) /* the largest programs have 200,000 */
#define START_NAME    "_rt0_amd64_linux"

/* Go 1.18 and later, src/runtime/symtab.go: pcHeader. Offsets are from its own start. */
struct header {
	uint32_t magic;
	uint8_t zeros[2], min_lc, pointer_size;
	uint64_t n_functions, n_files, text_start;
	uint64_t names, units, files, pcs, functions;
};

/* Where a function starts, and what is known of it; behind the last one is where that ends. */
struct place {
	uint32_t start;	 /* from the start of all code */
	uint32_t offset; /* from the first place */
};

/* src/runtime/runtime2.go: _func. */
struct function {
	uint32_t start;
	int32_t name;
	uint32_t arguments, deferred;
	uint32_t steps; /* from the start of all steps */
	uint32_t files, lines, n_pcs, unit;
	uint8_t tail[5]; /* number, flags; from 1.20 on a word before them */
};

enum { FLAGS_1_18 = 1, FLAG_FIRST = 1, FLAG_WRITES_SP = 2 };

bool elf_go_is_section(const char *name)
{
	return !strcmp(name, ".gopclntab") || !strcmp(name, ".data.rel.ro.gopclntab");
}

static bool part_read(const struct elf_go *go, uint64_t offset, void *out, size_t size)
{
	if (offset > go->size || size > go->size - offset)
		return false;
	memcpy(out, go->data + offset, size);
	return true;
}

/* 0 beyond the table, whose names are not empty. */
static size_t name_size(const struct elf_go *go, int32_t offset, const char **out)
{
	uint64_t at = go->names + (uint64_t)offset;
	size_t room, n;

	if (offset < 0 || go->names > go->size || at >= go->size)
		return 0;
	room = go->size - at < ELF_NAME_BYTES_MAX ? go->size - at : ELF_NAME_BYTES_MAX;
	*out = (const char *)go->data + at;
	n = strnlen(*out, room);
	return n == room ? 0 : n;
}

/* The flags are behind the number, which from 1.20 on has the line of the start before it. */
static uint8_t flags_of(const struct elf_go *go, uint64_t at)
{
	uint8_t flags = 0;

	at += offsetof(struct function, tail) + FLAGS_1_18 + (go->is_1_20 ? sizeof(uint32_t) : 0);
	return part_read(go, at, &flags, 1) ? flags : 0;
}

bool elf_go_function(const struct elf_go *go, uint64_t i, struct elf_go_function *out)
{
	uint64_t at = go->functions + i * sizeof(struct place);
	struct elf_go_function found = { 0 };
	struct function function;
	struct place place;
	uint32_t end;
	uint8_t flags;

	if (!part_read(go, at, &place, sizeof(place)) ||
	    !part_read(go, at + sizeof(place), &end, sizeof(end)) ||
	    !part_read(go, go->functions + place.offset, &function,
		       offsetof(struct function, tail)) ||
	    function.start != place.start || end <= place.start)
		return false;
	found.start = go->base + place.start;
	found.end = go->base + end;
	found.steps = function.steps;
	found.name_size = name_size(go, function.name, &found.name);
	flags = flags_of(go, go->functions + place.offset);
	found.is_first = flags & FLAG_FIRST;
	found.writes_sp = flags & FLAG_WRITES_SP;
	*out = found;
	return found.name_size > 0 && found.end > found.start;
}

/* At most 32 bits are of use. False beyond the table, or where there are more. */
static bool varint_read(const struct elf_go *go, uint64_t *at, uint32_t *out)
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

/* Pairs: how the depth changes, zigzag, and for how many bytes it then stays. 0 ends them. */
int elf_go_steps(const struct elf_go *go, const struct elf_go_function *function, uint64_t *budget,
		 elf_go_step_fn callback, void *userdata)
{
	struct elf_go_step step = { .end = function->start };
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
 * Where the file says so. In one that may be loaded anywhere only the linker's relocation does:
 * then it is the start of .text, if that makes the program's first function start where the program
 * does.
 */
static bool base_find(Elf *elf, uint64_t text_address, struct elf_go *go)
{
	struct elf_go_function function;
	GElf_Ehdr header;

	if (go->base)
		return true;
	if (!gelf_getehdr(elf, &header))
		return false;
	go->base = text_address;
	for (uint64_t i = 0; i < go->n_functions; i++)
		if (elf_go_function(go, i, &function) && function.start == header.e_entry)
			return function.name_size == strlen(START_NAME) &&
			       !memcmp(function.name, START_NAME, function.name_size);
	return false;
}

bool elf_go_open(Elf *elf, Elf_Scn *section, uint64_t text_address, struct elf_go *out)
{
	Elf_Data *data = elf_rawdata(section, NULL);
	struct elf_go go = { 0 };
	struct header header;

	if (!data || !data->d_buf)
		return false;
	go.data = data->d_buf;
	go.size = data->d_size;
	if (!part_read(&go, 0, &header, sizeof(header)) ||
	    (header.magic != MAGIC_1_18 && header.magic != MAGIC_1_20) || header.min_lc != 1 ||
	    header.pointer_size != 8 || header.functions > go.size ||
	    header.n_functions > FUNCTIONS_MAX ||
	    header.n_functions > (go.size - header.functions) / sizeof(struct place))
		return false;
	go.base = header.text_start;
	go.n_functions = header.n_functions;
	go.names = header.names;
	go.steps = header.pcs;
	go.functions = header.functions;
	go.is_1_20 = header.magic == MAGIC_1_20;
	if (!base_find(elf, text_address, &go))
		return false;
	*out = go;
	return true;
}
