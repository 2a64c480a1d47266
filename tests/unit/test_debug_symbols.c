/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Functions are found in the symbol table of a small file that is made here; damaged, cut and
 * wrong files are refused, whatever is wrong with them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/debuginfod/symbols.h"
#include "common/base.h"

#define NAMES "\0outer\0inner\0_ZN1a1bEv\0local_twin\0global_twin\0read@@V_1\0object\0undefined"

enum { N_SYMBOLS = 9, N_SECTIONS = 4, NOTE_SIZE = sizeof(Elf64_Nhdr) + 4 + 20 };

static const uint8_t build_id[20] = { 1, 2, 3, 0xff };

/* A file with a note, symbols and their names. */
struct image {
	Elf64_Ehdr header;
	Elf64_Shdr sections[N_SECTIONS];
	Elf64_Nhdr note;
	char note_name[4];
	uint8_t note_id[20];
	Elf64_Sym symbols[N_SYMBOLS];
	char names[sizeof(NAMES)];
};

static Elf64_Sym symbol(const char *name, uint64_t start, uint64_t size, unsigned int bind)
{
	static const char names[] = NAMES;
	const char *at = memmem(names, sizeof(names), name, strlen(name) + 1);

	assert_non_null(at);
	return (Elf64_Sym){
		.st_name = (uint32_t)(at - names),
		.st_info = (unsigned char)ELF64_ST_INFO(bind, STT_FUNC),
		.st_shndx = 1,
		.st_value = start,
		.st_size = size,
	};
}

static struct image image_make(void)
{
	struct image image = {
		.header = {
			.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB },
			.e_shoff = offsetof(struct image, sections),
			.e_shentsize = sizeof(Elf64_Shdr),
			.e_shnum = N_SECTIONS,
		},
		.sections = {
			[1] = { .sh_type = SHT_NOTE,
				.sh_offset = offsetof(struct image, note),
				.sh_size = NOTE_SIZE,
				.sh_addralign = 4 },
			[2] = { .sh_type = SHT_SYMTAB,
				.sh_offset = offsetof(struct image, symbols),
				.sh_size = sizeof(image.symbols),
				.sh_entsize = sizeof(Elf64_Sym),
				.sh_link = 3 },
			[3] = { .sh_type = SHT_STRTAB,
				.sh_offset = offsetof(struct image, names),
				.sh_size = sizeof(image.names) },
		},
		.note = { .n_namesz = 4, .n_descsz = 20, .n_type = NT_GNU_BUILD_ID },
		.note_name = "GNU",
		.symbols = {
			[1] = symbol("outer", 0x1000, 0x100, STB_GLOBAL),
			[2] = symbol("inner", 0x1040, 0x10, STB_LOCAL),
			[3] = symbol("_ZN1a1bEv", 0x2000, 0x20, STB_GLOBAL),
			[4] = symbol("local_twin", 0x3000, 0x20, STB_LOCAL),
			[5] = symbol("global_twin", 0x3000, 0x20, STB_GLOBAL),
			[6] = symbol("read@@V_1", 0x4000, 0x20, STB_GLOBAL),
			[7] = symbol("object", 0x5000, 0x20, STB_GLOBAL),
			[8] = symbol("undefined", 0x6000, 0x20, STB_GLOBAL),
		},
		.names = NAMES,
	};

	memcpy(image.note_id, build_id, sizeof(build_id));
	image.symbols[7].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
	image.symbols[8].st_shndx = SHN_UNDEF;
	return image;
}

enum { N_QUERIES = 11 };

static const struct {
	uint64_t address;
	uint64_t start;
	const char *name;
} wanted[N_QUERIES] = {
	{ 0xfff, 0, NULL },
	{ 0x1000, 0x1000, "outer" },
	{ 0x1044, 0x1040, "inner" },
	{ 0x1050, 0x1000, "outer" },
	{ 0x1100, 0, NULL },
	{ 0x2000, 0x2000, "a::b()" },
	{ 0x301f, 0x3000, "global_twin" },
	{ 0x4000, 0x4000, "read" },
	{ 0x5000, 0, NULL },
	{ 0x6000, 0, NULL },
	{ UINT64_MAX, 0, NULL },
};

/* Asks for all addresses of `wanted` in a file of these bytes. */
static int find(const void *data, size_t size, const uint8_t *id, struct symbol_query *queries,
		const char **why)
{
	int fd = memfd_create("file", MFD_CLOEXEC), r;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, size), size);
	for (size_t i = 0; i < N_QUERIES; i++)
		queries[i] = (struct symbol_query){ .address = wanted[i].address };
	r = symbols_find(fd, id, sizeof(build_id), queries, N_QUERIES, why);
	close(fd);
	return r;
}

static void names_free(struct symbol_query *queries)
{
	for (size_t i = 0; i < N_QUERIES; i++)
		free(queries[i].name);
}

static void finds_functions(void **state)
{
	const struct image image = image_make();
	struct symbol_query queries[N_QUERIES];
	const char *why;

	(void)state;
	assert_int_equal(find(&image, sizeof(image), build_id, queries, &why), 0);
	for (size_t i = 0; i < N_QUERIES; i++) {
		if (!wanted[i].name) {
			assert_null(queries[i].name);
			continue;
		}
		assert_non_null(queries[i].name);
		assert_string_equal(queries[i].name, wanted[i].name);
		assert_int_equal(queries[i].start, wanted[i].start);
	}
	names_free(queries);
}

static void refused(const struct image *image, const char *says)
{
	struct symbol_query queries[N_QUERIES];
	const char *why = NULL;

	assert_int_equal(find(image, sizeof(*image), build_id, queries, &why), -EBADMSG);
	assert_non_null(why);
	if (!strstr(why, says))
		fail_msg("\"%s\" does not say \"%s\"", why, says);
	names_free(queries);
}

static void refuses_other_files(void **state)
{
	struct image image = image_make();

	(void)state;
	image.note_id[19] ^= 1;
	refused(&image, "another build-id");
	image = image_make();
	image.note.n_descsz = 19;
	refused(&image, "another build-id");
	image = image_make();
	image.note.n_descsz = UINT32_MAX;
	refused(&image, "no build-id");
	image = image_make();
	image.note.n_namesz = UINT32_MAX;
	refused(&image, "no build-id");
	image = image_make();
	image.sections[2].sh_type = SHT_PROGBITS;
	refused(&image, "no symbol table");
	image = image_make();
	image.header.e_ident[EI_CLASS] = ELFCLASS32;
	refused(&image, "64-bit");
	image = image_make();
	image.header.e_ident[1] = 'X';
	refused(&image, "not an ELF file");
}

static void refuses_damaged_files(void **state)
{
	struct image image = image_make();

	(void)state;
	image.sections[2].sh_link = N_SECTIONS;
	refused(&image, "damaged");
	image = image_make();
	image.sections[2].sh_entsize = 0;
	refused(&image, "damaged");
	image = image_make();
	image.sections[2].sh_size = UINT64_MAX;
	refused(&image, "damaged");
	image = image_make();
	image.sections[2].sh_offset = UINT64_MAX - 8;
	refused(&image, "damaged");
	image = image_make();
	image.sections[3].sh_offset = UINT64_MAX - 2;
	refused(&image, "damaged");
	image = image_make();
	image.header.e_shoff = UINT64_MAX - 2;
	refused(&image, "damaged");
	image = image_make();
	image.header.e_shnum = 0;
	image.sections[0].sh_size = UINT64_MAX;
	refused(&image, "too many sections");
}

/* A name without an end, or beyond the names, is none; the others are found. */
static void bad_names_are_none(void **state)
{
	struct symbol_query queries[N_QUERIES];
	struct image image = image_make();
	const char *why;

	(void)state;
	image.symbols[3].st_name = sizeof(NAMES);
	image.symbols[6].st_name = UINT32_MAX;
	image.names[sizeof(NAMES) - 1] = 'x';
	image.symbols[1].st_name = sizeof(NAMES) - 2;
	assert_int_equal(find(&image, sizeof(image), build_id, queries, &why), 0);
	assert_null(queries[1].name);
	assert_string_equal(queries[2].name, "inner");
	assert_null(queries[5].name);
	assert_null(queries[7].name);
	names_free(queries);
}

/* Cuts the file at each length and changes each byte: reading ends, and names are names. */
static void survives_any_damage(void **state)
{
	struct image image = image_make();
	struct symbol_query queries[N_QUERIES];
	const char *why;
	size_t i;

	(void)state;
	for (i = 0; i < offsetof(struct image, names); i++) {
		assert_int_equal(find(&image, i, build_id, queries, &why), -EBADMSG);
		names_free(queries);
	}
	for (i = 0; i < sizeof(image); i++) {
		static const unsigned char changes[] = { 0x01, 0x80, 0xff };
		int r;

		for (size_t k = 0; k < ARRAY_SIZE(changes); k++) {
			((unsigned char *)&image)[i] ^= changes[k];
			r = find(&image, sizeof(image), build_id, queries, &why);
			assert_true(r == 0 || (r == -EBADMSG && why));
			((unsigned char *)&image)[i] ^= changes[k];
			names_free(queries);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_functions),	 cmocka_unit_test(refuses_other_files),
		cmocka_unit_test(refuses_damaged_files), cmocka_unit_test(bad_names_are_none),
		cmocka_unit_test(survives_any_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
