/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Static probes of files with one note, which are made here. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/elf/usdt.h"

/* Addresses are offsets in the file: code is in the first page, data in the second one. */
enum { PAGE = 0x1000, NOTE_AT = 0x200, NAMES_AT = 0x400, SECTIONS_AT = 0x600, SECTIONS = 4 };

static const char names[] = "\0.shstrtab\0.note.stapsdt\0.stapsdt.base";
enum { NAME_NAMES = 1, NAME_NOTES = 11, NAME_BASE = 25 };

/* The addresses of a note, and the address that .stapsdt.base has in the file. */
struct probe {
	uint64_t code, base, counter;
	uint64_t base_of_file;
};

struct found {
	size_t n;
	char name[64];
	uint64_t offset;
	uint32_t counter;
};

static void put(int fd, const void *data, size_t size, off_t at)
{
	assert_int_equal(pwrite(fd, data, size, at), size);
}

static void headers_put(int fd)
{
	const Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(header),
		.e_shoff = SECTIONS_AT,
		.e_ehsize = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 2,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = SECTIONS,
		.e_shstrndx = 1,
	};
	Elf64_Phdr segments[2] = {};
	size_t i;

	for (i = 0; i < 2; i++)
		segments[i] = (Elf64_Phdr){
			.p_type = PT_LOAD,
			.p_flags = i ? PF_R | PF_W : PF_R | PF_X,
			.p_offset = i * PAGE,
			.p_vaddr = i * PAGE,
			.p_filesz = PAGE,
			.p_memsz = PAGE,
			.p_align = PAGE,
		};
	put(fd, &header, sizeof(header), 0);
	put(fd, segments, sizeof(segments), sizeof(header));
}

static size_t note_put(int fd, const struct probe *probe)
{
	static const char owner[] = "stapsdt", texts[] = "provider\0probe\0-4@%eax";
	const uint64_t addresses[] = { probe->code, probe->base, probe->counter };
	const Elf64_Nhdr note = {
		.n_namesz = sizeof(owner),
		.n_descsz = sizeof(addresses) + sizeof(texts),
		.n_type = 3,
	};
	off_t at = NOTE_AT;

	put(fd, &note, sizeof(note), at);
	put(fd, owner, sizeof(owner), at += (off_t)sizeof(note));
	put(fd, addresses, sizeof(addresses), at += (off_t)sizeof(owner));
	put(fd, texts, sizeof(texts), at + (off_t)sizeof(addresses));
	return sizeof(note) + sizeof(owner) + (note.n_descsz + 3) / 4 * 4;
}

static int on_probe(void *context, const char *name, uint64_t offset, uint32_t counter)
{
	struct found *found = context;

	found->n++;
	strncpy(found->name, name, sizeof(found->name) - 1);
	found->offset = offset;
	found->counter = counter;
	return 0;
}

static struct found probes_of(const struct probe *probe)
{
	_cleanup_(closep) int fd = memfd_create("usdt", MFD_CLOEXEC);
	struct found found = {};
	Elf64_Shdr sections[SECTIONS] = {
		[1] = { .sh_name = NAME_NAMES,
			.sh_type = SHT_STRTAB,
			.sh_offset = NAMES_AT,
			.sh_size = sizeof(names) },
		[2] = { .sh_name = NAME_NOTES,
			.sh_type = SHT_NOTE,
			.sh_offset = NOTE_AT,
			.sh_addralign = 4 },
		[3] = { .sh_name = NAME_BASE,
			.sh_type = SHT_PROGBITS,
			.sh_offset = NAMES_AT,
			.sh_size = 1,
			.sh_addr = probe->base_of_file },
	};

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 2 * PAGE), 0);
	headers_put(fd);
	sections[2].sh_size = note_put(fd, probe);
	put(fd, names, sizeof(names), NAMES_AT);
	put(fd, sections, sizeof(sections), SECTIONS_AT);
	assert_int_equal(elf_usdt(fd, on_probe, &found), 0);
	return found;
}

static void test_a_probe_with_a_counter(void **state)
{
	const struct probe probe = { 0x123, 0x700, 0x1ffe, 0x700 };
	struct found found = probes_of(&probe);

	assert_int_equal(found.n, 1);
	assert_string_equal(found.name, "provider:probe");
	assert_int_equal(found.offset, 0x123);
	assert_int_equal(found.counter, 0x1ffe);
}

/* A counter right behind the data is in no segment: no tracer could enable this probe. */
static void test_a_counter_outside_of_the_data(void **state)
{
	const struct probe behind = { 0x123, 0x700, 0x2000, 0x700 };
	const struct probe in_code = { 0x123, 0x700, 0xfff, 0x700 };

	assert_int_equal(probes_of(&behind).n, 0);
	assert_int_equal(probes_of(&in_code).n, 0);
}

/* prelink(8) moves a file, but not the addresses in its notes. */
static void test_a_file_that_was_moved(void **state)
{
	const struct probe up = { 0x100, 0x5000, 0xf00, 0x5800 };
	const struct probe down = { 0x900, 0x5800, 0x2700, 0x5000 };
	struct found found = probes_of(&up);

	assert_int_equal(found.n, 1);
	assert_int_equal(found.offset, 0x900);
	assert_int_equal(found.counter, 0x1700);
	found = probes_of(&down);
	assert_int_equal(found.n, 1);
	assert_int_equal(found.offset, 0x100);
	assert_int_equal(found.counter, 0x1f00);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_probe_with_a_counter),
		cmocka_unit_test(test_a_counter_outside_of_the_data),
		cmocka_unit_test(test_a_file_that_was_moved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
