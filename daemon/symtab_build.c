/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/symtab_build.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <gelf.h>
#include <libelf.h>

#include "daemon/elf_handle.h"
#include "daemon/symbol_rank.h"
#include "proto/base.h"

#define SYMBOL_BYTES_MAX   (64 * 1024 * 1024)  /* of one symbol or string section */
#define TEXT_BYTES_MAX	   (256 * 1024 * 1024) /* names may overlap in the file, not here */
#define NAME_BYTES_MAX	   4096
#define SECTIONS_MAX	   65536
#define SIZELESS_BYTES_MAX 4096 /* how far an assembler function without a size may reach */

struct range {
	uint64_t start, end;
};

struct candidate {
	uint64_t start, end; /* equal: the file gives no size */
	const char *name;    /* in libelf's memory */
	uint16_t name_size;  /* without '@version' */
	bool is_global;
};

struct builder {
	Elf *elf;
	struct range *code; /* executable sections, sorted */
	size_t n_code;
	Elf_Scn *symtab, *dynsym;
	struct candidate *items;
	size_t n, allocated;
	bool has_symtab; /* it gave functions: then static ones are listed too */
};

static void builder_fini(struct builder *builder)
{
	free(builder->code);
	free(builder->items);
	if (builder->elf)
		elf_end(builder->elf);
}

static int range_compare(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static int sections_read(struct builder *builder)
{
	size_t n_sections;
	Elf_Scn *section = NULL;

	if (elf_getshdrnum(builder->elf, &n_sections) < 0)
		return -EBADMSG;
	if (n_sections > SECTIONS_MAX)
		return -E2BIG;
	builder->code = calloc(n_sections + 1, sizeof(*builder->code));
	if (!builder->code)
		return -ENOMEM;
	while ((section = elf_nextscn(builder->elf, section)) && builder->n_code < n_sections) {
		GElf_Shdr header;

		if (!gelf_getshdr(section, &header))
			return -EBADMSG;
		if (header.sh_type == SHT_SYMTAB && !builder->symtab)
			builder->symtab = section;
		if (header.sh_type == SHT_DYNSYM && !builder->dynsym)
			builder->dynsym = section;
		if ((header.sh_flags & (SHF_ALLOC | SHF_EXECINSTR)) !=
			    (SHF_ALLOC | SHF_EXECINSTR) ||
		    !header.sh_size || header.sh_addr > UINT64_MAX - header.sh_size)
			continue;
		builder->code[builder->n_code++] =
			(struct range){ header.sh_addr, header.sh_addr + header.sh_size };
	}
	qsort(builder->code, builder->n_code, sizeof(struct range), range_compare);
	return 0;
}

/* The executable section an address lies in. */
static const struct range *code_find(const struct builder *builder, uint64_t address)
{
	size_t low = 0, high = builder->n_code;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (builder->code[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address >= builder->code[low - 1].end)
		return NULL;
	return &builder->code[low - 1];
}

static bool is_function(const GElf_Sym *symbol)
{
	int type = GELF_ST_TYPE(symbol->st_info);

	if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS)
		return false;
	return type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE;
}

static int candidate_add(struct builder *builder, const GElf_Sym *symbol, const Elf_Data *strings)
{
	const struct range *code = code_find(builder, symbol->st_value);
	struct candidate item = { .start = symbol->st_value };
	size_t room, n;

	if (!code || symbol->st_name >= strings->d_size)
		return 0;
	item.name = (const char *)strings->d_buf + symbol->st_name;
	room = strings->d_size - symbol->st_name;
	n = strnlen(item.name, room < NAME_BYTES_MAX ? room : NAME_BYTES_MAX);
	/* '$x' and the like mark code and data for the disassembler on some machines. */
	if (!n || n == room || n == NAME_BYTES_MAX || item.name[0] == '$')
		return 0;
	for (size_t i = 1; i < n; i++) {
		if (item.name[i] == '@')
			n = i;
	}
	item.name_size = (uint16_t)n;
	item.end =
		symbol->st_size > code->end - item.start ? code->end : item.start + symbol->st_size;
	item.is_global = GELF_ST_BIND(symbol->st_info) != STB_LOCAL;
	if (builder->n == builder->allocated) {
		size_t more = builder->allocated ? builder->allocated * 2 : 1024;
		struct candidate *items = reallocarray(builder->items, more, sizeof(*items));

		if (!items)
			return -ENOMEM;
		builder->items = items;
		builder->allocated = more;
	}
	builder->items[builder->n++] = item;
	return 0;
}

static int section_read(struct builder *builder, Elf_Scn *section)
{
	Elf_Data *data, *strings;
	GElf_Shdr header, string_header;
	Elf_Scn *string_section;
	GElf_Sym symbol;
	int r;

	if (!gelf_getshdr(section, &header))
		return -EBADMSG;
	string_section = elf_getscn(builder->elf, header.sh_link);
	if (!string_section || !gelf_getshdr(string_section, &string_header) ||
	    string_header.sh_type != SHT_STRTAB || !header.sh_entsize)
		return -EBADMSG;
	if (header.sh_size > SYMBOL_BYTES_MAX || string_header.sh_size > SYMBOL_BYTES_MAX)
		return -E2BIG;
	data = elf_getdata(section, NULL);
	strings = elf_getdata(string_section, NULL);
	if (!data || !strings)
		return -EBADMSG;
	if (!data->d_buf || !strings->d_buf)
		return 0;
	for (int i = 0; gelf_getsym(data, i, &symbol); i++) {
		if (!is_function(&symbol))
			continue;
		r = candidate_add(builder, &symbol, strings);
		if (r < 0)
			return r;
	}
	return 0;
}

static int name_compare(const struct candidate *x, const struct candidate *y)
{
	char a[NAME_BYTES_MAX], b[NAME_BYTES_MAX];

	memcpy(a, x->name, x->name_size);
	a[x->name_size] = '\0';
	memcpy(b, y->name, y->name_size);
	b[y->name_size] = '\0';
	return symbol_rank_compare(a, x->is_global, b, y->is_global);
}

static int candidate_compare(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end > y->end ? -1 : x->end < y->end;
}

/*
 * A symbol without a size is one written in assembler. It reaches to the next symbol, not beyond
 * its section and not into anything that has a size. Where only .dynsym is left the functions
 * between the listed ones are hidden, and it would be given their addresses: there it is dropped.
 */
static void sizeless_extend(struct builder *builder)
{
	uint64_t next = UINT64_MAX, covered = 0;

	for (size_t i = builder->n; i-- > 0;) {
		struct candidate *item = &builder->items[i];
		const struct range *code = code_find(builder, item->start);
		uint64_t end = code->end;

		/* From the back, so that next is the nearest start that is not this one's own. */
		if (i + 1 < builder->n && builder->items[i + 1].start != item->start)
			next = builder->items[i + 1].start;
		if (item->end != item->start || !builder->has_symtab)
			continue;
		if (next < end)
			end = next;
		if (end - item->start > SIZELESS_BYTES_MAX)
			end = item->start + SIZELESS_BYTES_MAX;
		item->end = end;
		item->name_size |= UINT16_C(0x8000); /* marks it for the pass below */
	}
	for (size_t i = 0; i < builder->n; i++) {
		struct candidate *item = &builder->items[i];
		bool was_sizeless = item->name_size & 0x8000;

		item->name_size &= 0x7fff;
		if (was_sizeless && item->start < covered)
			item->end = item->start;
		else if (!was_sizeless && item->end > covered)
			covered = item->end;
	}
}

/* Drops what has no extent, and of equal extents all but the best name. */
static void candidates_reduce(struct builder *builder)
{
	size_t n = 0;

	for (size_t i = 0; i < builder->n; i++) {
		const struct candidate *item = &builder->items[i];
		struct candidate *last = n ? &builder->items[n - 1] : NULL;

		if (item->end == item->start)
			continue;
		if (!last || last->start != item->start || last->end != item->end)
			builder->items[n++] = *item;
		else if (name_compare(item, last) < 0)
			*last = *item;
	}
	builder->n = n;
}

/* Links each to the nearest before it that ends later, which is where to search on outward. */
static void outer_link(struct symtab_arrays *a)
{
	for (size_t i = 0; i < a->n; i++) {
		uint64_t end = a->starts[i] + a->sizes[i];
		uint32_t outer = i ? (uint32_t)(i - 1) : SYMTAB_NO_OUTER;

		while (outer != SYMTAB_NO_OUTER && a->starts[outer] + a->sizes[outer] <= end)
			outer = a->outer[outer];
		a->outer[i] = outer;
	}
}

static int arrays_fill(const struct builder *builder, struct symtab_arrays *out)
{
	_cleanup_(symtab_arrays_fini) struct symtab_arrays a = { .n = builder->n };
	size_t offset = 0;

	for (size_t i = 0; i < builder->n; i++)
		a.text_size += builder->items[i].name_size + UINT64_C(1);
	if (a.text_size > TEXT_BYTES_MAX)
		return -E2BIG;
	a.starts = reallocarray(NULL, a.n + 1, sizeof(*a.starts));
	a.sizes = reallocarray(NULL, a.n + 1, sizeof(*a.sizes));
	a.names = reallocarray(NULL, a.n + 1, sizeof(*a.names));
	a.outer = reallocarray(NULL, a.n + 1, sizeof(*a.outer));
	a.text = malloc(a.text_size + 1);
	if (!a.starts || !a.sizes || !a.names || !a.outer || !a.text)
		return -ENOMEM;
	for (size_t i = 0; i < builder->n; i++) {
		const struct candidate *item = &builder->items[i];
		uint64_t size = item->end - item->start;

		a.starts[i] = item->start;
		a.sizes[i] = size > UINT32_MAX ? UINT32_MAX : (uint32_t)size;
		a.names[i] = (uint32_t)offset;
		memcpy(a.text + offset, item->name, item->name_size);
		a.text[offset + item->name_size] = '\0';
		offset += item->name_size + UINT64_C(1);
	}
	outer_link(&a);
	*out = a;
	a = (struct symtab_arrays){ 0 };
	return 0;
}

int symtab_build(const struct elf_source *source, struct symtab_arrays *out)
{
	_cleanup_(builder_fini) struct builder builder = { .elf = elf_handle_open(source) };
	int r;

	if (!builder.elf)
		return -ENOEXEC;
	r = sections_read(&builder);
	if (r < 0)
		return r;
	if (builder.symtab) {
		r = section_read(&builder, builder.symtab);
		if (r < 0)
			return r;
		builder.has_symtab = builder.n > 0;
	}
	/* Nearly always part of the other, but a file may have been stripped of single names. */
	if (builder.dynsym) {
		r = section_read(&builder, builder.dynsym);
		if (r < 0)
			return r;
	}
	if (builder.n)
		qsort(builder.items, builder.n, sizeof(struct candidate), candidate_compare);
	sizeless_extend(&builder);
	candidates_reduce(&builder);
	return arrays_fill(&builder, out);
}

void symtab_arrays_fini(struct symtab_arrays *a)
{
	free(a->starts);
	free(a->sizes);
	free(a->names);
	free(a->outer);
	free(a->text);
	*a = (struct symtab_arrays){ 0 };
}
