/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_ELF_FILE_H
#define STACKD_DAEMON_ELF_FILE_H

/*
 * Reads the build-id, the segments and the debug link of an ELF file, which are needed to find its
 * symbols. The caller owns the result; no state, any thread. The file may be hostile, and may
 * change while it is read.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELF_BUILD_ID_MAX   64
#define ELF_SEGMENTS_MAX   256
#define ELF_NAME_BYTES_MAX 4096 /* maximum size of a name with its NUL; a longer one is ignored */

/*
 * Says where the bytes of an ELF file are: in memory at `image` or, if `image` is NULL, in the file
 * with the descriptor fd, which the caller closes.
 */
struct elf_source {
	int fd;
	const void *image;
	size_t image_size;
};

struct elf_segment {
	uint64_t offset, size; /* position and size of the segment in the file, in bytes */
	uint64_t address;      /* ELF virtual address of the byte at offset */
	bool is_exec;
};

struct elf_file {
	uint8_t build_id[ELF_BUILD_ID_MAX];
	size_t build_id_size; /* size of build_id in bytes; 0: the file has none */
	struct elf_segment *segments;
	size_t n_segments;
	bool has_symtab;    /* the file has a full symbol table (.symtab) */
	char *debug_name;   /* name of the debug file in .gnu_debuglink; NULL: not given */
	uint32_t debug_crc; /* CRC-32 of the debug file in .gnu_debuglink */
};

/*
 * Reads an ELF file. Returns 0; -ENOEXEC if `source` is not an ELF file; -EBADMSG if it is damaged;
 * or -ENOMEM.
 */
int elf_file_read(const struct elf_source *source, struct elf_file *out);

void elf_file_fini(struct elf_file *file);

/*
 * Finds the ELF virtual address of the byte at this offset in the file. Searches executable
 * segments first. Returns false if no segment contains the offset.
 */
bool elf_file_address(const struct elf_file *file, uint64_t offset, uint64_t *address_out);

#endif
