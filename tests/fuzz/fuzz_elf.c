/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzes the reader of symbols with an ELF file that a process may have mapped, which is also its
 * own separate debug file. A symbol that is found must begin at or before the address looked up.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/elf/debug_file.h"
#include "daemon/elf/file.h"
#include "daemon/symbol/symtab.h"
#include "tests/fuzz/fuzz.h"

static int file_make(const uint8_t *data, size_t size)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);

	REQUIRE(fd >= 0);
	REQUIRE(write(fd, data, size) == (ssize_t)size);
	return fd;
}

static bool is_expected(int r)
{
	return r == 0 || r == -ENOEXEC || r == -EBADMSG || r == -E2BIG || r == -ENOMEM;
}

static void segments_check(const struct elf_source *source)
{
	struct elf_file file = { 0 };
	int r = elf_file_read(source, &file);
	uint64_t address;

	REQUIRE(is_expected(r));
	REQUIRE(file.n_segments <= ELF_SEGMENTS_MAX && file.build_id_size <= ELF_BUILD_ID_MAX);
	for (uint64_t offset = 1; offset != 0; offset <<= 1)
		elf_file_address(&file, offset - 1, &address);
	if (r == 0)
		debug_file_is_of(source->fd, &file);
	elf_file_fini(&file);
}

static void lookups_check(struct symtab *symtab)
{
	for (uint64_t address = 0; address < 0x8000; address += 0x33) {
		const char *name;
		uint64_t start;

		if (!symtab_lookup(symtab, address, &name, &start))
			continue;
		REQUIRE(start <= address);
		REQUIRE(!name || (name[0] != '\0' && strlen(name) < 1024 * 1024));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_source file = { .fd = file_make(data, size) };
	struct symtab_aids aids = { .debug_fd = file.fd };
	struct symtab *from_file = NULL;
	int r;

	segments_check(&file);
	r = symtab_load(&file, &aids, &from_file);
	REQUIRE(is_expected(r));
	if (r == 0)
		lookups_check(from_file);
	symtab_free(from_file);
	close(file.fd);
	return 0;
}
