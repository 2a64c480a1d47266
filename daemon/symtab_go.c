/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include <gelf.h>
#include <libelf.h>

#include "daemon/symtab_builder.h"
#include "proto/base.h"

#define MAGIC_1_18     UINT32_C(0xfffffff0)
#define MAGIC_1_20     UINT32_C(0xfffffff1)
#define NAME_BYTES_MAX 4096
#define FUNCTIONS_MAX  (1024 * 1024) /* the largest programs have 200,000 */
#define START_NAME     "_rt0_amd64_linux"

/* Go 1.18 and later, src/runtime/symtab.go: pcHeader. Offsets are from its own start. */
struct header {
	uint32_t magic;
	uint8_t zeros[2], min_lc, pointer_size;
	uint64_t n_functions, n_files, text_start;
	uint64_t names, units, files, pcs, functions;
};

/* Where a function starts, and what is known of it; behind the last one is where that ends. */
struct place {
	uint32_t start;  /* from the start of all code */
	uint32_t offset; /* from the first place */
};

struct function {
	uint32_t start;
	int32_t name;
};

struct table {
	const uint8_t *data;
	size_t size;
	struct header header;
	uint64_t base; /* address of the start of all code */
};

static bool part_read(const struct table *table, uint64_t offset, void *out, size_t size)
{
	if (offset > table->size || size > table->size - offset)
		return false;
	memcpy(out, table->data + offset, size);
	return true;
}

/* 0 beyond the table, whose names are not empty. */
static size_t name_size(const struct table *table, int32_t offset, const char **out)
{
	uint64_t at = table->header.names + (uint64_t)offset;
	size_t room, n;

	if (offset < 0 || table->header.names > table->size || at >= table->size)
		return 0;
	room = table->size - at < NAME_BYTES_MAX ? table->size - at : NAME_BYTES_MAX;
	*out = (const char *)table->data + at;
	n = strnlen(*out, room);
	return n == room ? 0 : n;
}

/* The function of that number; false where the table contradicts itself. */
static bool function_read(const struct table *table, uint64_t i, struct candidate *out)
{
	uint64_t at = table->header.functions + i * sizeof(struct place);
	struct function function;
	struct place place;
	uint32_t end;
	size_t n;

	if (!part_read(table, at, &place, sizeof(place)) ||
	    !part_read(table, at + sizeof(place), &end, sizeof(end)) ||
	    !part_read(table, table->header.functions + place.offset, &function,
		       sizeof(function)) ||
	    function.start != place.start || end <= place.start)
		return false;
	*out = (struct candidate){ .start = table->base + place.start, .end = table->base + end };
	n = name_size(table, function.name, &out->name);
	out->name_size = (uint16_t)n;
	return n > 0;
}

static bool table_open(const Elf_Data *data, struct table *out)
{
	struct table table = { .data = data->d_buf, .size = data->d_size };
	const struct header *header = &table.header;

	if (!part_read(&table, 0, &table.header, sizeof(table.header)) ||
	    (header->magic != MAGIC_1_18 && header->magic != MAGIC_1_20) ||
	    header->pointer_size != 8 || header->functions > table.size ||
	    header->n_functions > FUNCTIONS_MAX ||
	    header->n_functions > (table.size - header->functions) / sizeof(struct place))
		return false;
	*out = table;
	return true;
}

/*
 * Where the file says so. In one that may be loaded anywhere only the linker's relocation does: then
 * it is the start of .text, if that makes the program's first function start where the program does.
 */
static bool base_find(Elf *elf, uint64_t text_address, struct table *table)
{
	struct candidate item;
	GElf_Ehdr header;

	table->base = table->header.text_start;
	if (table->base)
		return true;
	if (!gelf_getehdr(elf, &header))
		return false;
	table->base = text_address;
	for (uint64_t i = 0; i < table->header.n_functions; i++)
		if (function_read(table, i, &item) && item.start == header.e_entry)
			return item.name_size == strlen(START_NAME) &&
			       !memcmp(item.name, START_NAME, item.name_size);
	return false;
}

int builder_read_go(struct builder *builder, Elf *elf, Elf_Scn *section, uint64_t text_address)
{
	Elf_Data *data = elf_rawdata(section, NULL);
	struct table table;
	int r = 0;

	if (!data || !data->d_buf || !table_open(data, &table) ||
	    !base_find(elf, text_address, &table))
		return 0;
	for (uint64_t i = 0; i < table.header.n_functions && !r; i++) {
		struct candidate item;
		const struct range *code;

		if (!function_read(&table, i, &item))
			continue;
		code = builder_code(builder, item.start);
		if (!code)
			continue;
		if (item.end > code->end)
			item.end = code->end;
		r = builder_add(builder, &item);
	}
	return r;
}
