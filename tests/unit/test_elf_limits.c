/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads files of a few kilobytes, with holes, whose headers ask for gigabytes. Each is the test's
 * own program with one header changed, so that the rest of the file is sound. Reading one may not
 * take more memory than that program itself does, by far.
 */
#include <fcntl.h>
#include <gelf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/elf/functions.h"
#include "daemon/elf/usdt.h"
#include "daemon/symbol/symtab.h"
#include "daemon/unwind/compile_elf.h"

#define MIB	     (1024L * 1024)
#define HOLE	     (1536 * MIB)
#define PEAK_KIB_MAX (160 * 1024L)
#define WORDS_MAX    (1 << 20)
#define ELF_HEADER   0

struct image {
	int fd;
	uint64_t size;
	Elf64_Ehdr header;
};

static void put(const struct image *image, const void *bytes, size_t size, uint64_t at)
{
	assert_int_equal(pwrite(image->fd, bytes, size, (off_t)at), size);
}

static void image_open(struct image *image)
{
	static char bytes[4 * MIB];
	int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(self, bytes, sizeof(bytes));

	assert_true(self >= 0 && n > (ssize_t)sizeof(Elf64_Ehdr) && n < (ssize_t)sizeof(bytes));
	close(self);
	image->fd = memfd_create("image", MFD_CLOEXEC);
	assert_true(image->fd >= 0);
	image->size = (uint64_t)n;
	put(image, bytes, (size_t)n, 0);
	memcpy(&image->header, bytes, sizeof(image->header));
}

static void hole_add(const struct image *image)
{
	assert_int_equal(ftruncate(image->fd, (off_t)image->size + HOLE), 0);
}

static Elf64_Shdr section_get(const struct image *image, size_t i, uint64_t *at_out)
{
	Elf64_Shdr section;

	*at_out = image->header.e_shoff + i * sizeof(section);
	assert_int_equal(pread(image->fd, &section, sizeof(section), (off_t)*at_out),
			 sizeof(section));
	return section;
}

/* Makes all sections of a type as large as the hole, and lets them begin there. */
static void sections_grow(const struct image *image, uint32_t type)
{
	bool is_found = false;

	hole_add(image);
	for (size_t i = 1; i < image->header.e_shnum; i++) {
		uint64_t at;
		Elf64_Shdr section = section_get(image, i, &at);

		if (section.sh_type != type)
			continue;
		is_found = true;
		section.sh_offset = image->size;
		section.sh_size = HOLE;
		put(image, &section, sizeof(section), at);
	}
	assert_true(is_found);
}

static void on_names(const struct image *image)
{
	uint64_t at;
	Elf64_Shdr names = section_get(image, image->header.e_shstrndx, &at);

	hole_add(image);
	names.sh_size = HOLE;
	put(image, &names, sizeof(names), at);
}

/* The number of sections is in the first section's size if the header has 0. */
static void on_sections(const struct image *image)
{
	Elf64_Ehdr header = image->header;
	uint64_t at;
	Elf64_Shdr first = section_get(image, 0, &at);

	hole_add(image);
	first.sh_size = HOLE / sizeof(first);
	put(image, &first, sizeof(first), at);
	header.e_shnum = 0;
	put(image, &header, sizeof(header), ELF_HEADER);
}

/* The number of segments is in the first section's sh_info if the header has PN_XNUM. */
static void on_segments(const struct image *image)
{
	Elf64_Ehdr header = image->header;
	uint64_t at;
	Elf64_Shdr first = section_get(image, 0, &at);

	hole_add(image);
	first.sh_info = HOLE / sizeof(Elf64_Phdr);
	put(image, &first, sizeof(first), at);
	header.e_phnum = PN_XNUM;
	put(image, &header, sizeof(header), ELF_HEADER);
}

static void on_strings(const struct image *image)
{
	sections_grow(image, SHT_STRTAB);
}

static void on_symbols(const struct image *image)
{
	sections_grow(image, SHT_SYMTAB);
}

static void on_dynamic_symbols(const struct image *image)
{
	sections_grow(image, SHT_DYNSYM);
}

static void on_notes(const struct image *image)
{
	sections_grow(image, SHT_NOTE);
}

static void on_code(const struct image *image)
{
	sections_grow(image, SHT_PROGBITS);
}

static void on_relocations(const struct image *image)
{
	sections_grow(image, SHT_RELA);
}

static void on_arrays(const struct image *image)
{
	sections_grow(image, SHT_INIT_ARRAY);
}

static int function_visit(void *context, const char *name, uint64_t offset, uint32_t counter)
{
	return 0;
}

/* Reads all that stackd reads of a file. Failures are right here: only memory counts. */
static void image_read(const struct image *image)
{
	const struct elf_source source = { .fd = image->fd };
	_cleanup_(elf_file_fini) struct elf_file file = {};
	struct unwind_rows rows = {};
	struct symtab *symtab;

	if (symtab_load(&source, NULL, &symtab) == 0)
		symtab_free(symtab);
	if (elf_file_read(&source, &file) == 0 &&
	    compile_elf(&source, &file, -1, WORDS_MAX, NULL, &rows) == 0)
		unwind_rows_fini(&rows);
	elf_functions(image->fd, image->fd, function_visit, NULL);
	elf_usdt(image->fd, function_visit, NULL);
}

static long peak_kib(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_maxrss;
}

static void test_holes(void **state)
{
	static const struct {
		const char *name;
		void (*change)(const struct image *image);
	} cases[] = {
		{ "names of sections", on_names },
		{ "number of sections", on_sections },
		{ "number of segments", on_segments },
		{ "strings", on_strings },
		{ "symbols", on_symbols },
		{ "dynamic symbols", on_dynamic_symbols },
		{ "notes", on_notes },
		{ "code and frames", on_code },
		{ "relocations", on_relocations },
		{ "arrays of functions", on_arrays },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct image image;
		long peak;

		image_open(&image);
		cases[i].change(&image);
		image_read(&image);
		close(image.fd);
		peak = peak_kib();
		if (peak > PEAK_KIB_MAX)
			fail_msg("%s: %ld KiB", cases[i].name, peak);
	}
}

/* An unchanged file is read: the test would pass with a reader that refuses all. */
static void test_whole(void **state)
{
	const struct elf_source *source;
	struct image image;
	struct symtab *symtab;
	const char *name;
	uint64_t start;

	image_open(&image);
	source = &(struct elf_source){ .fd = image.fd };
	assert_int_equal(symtab_load(source, NULL, &symtab), 0);
	assert_true(symtab_lookup(symtab, image.header.e_entry, &name, &start));
	assert_string_equal(name, "_start");
	symtab_free(symtab);
	image_read(&image);
	close(image.fd);
	assert_true(peak_kib() < PEAK_KIB_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_holes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
