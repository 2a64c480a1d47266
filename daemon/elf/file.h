/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_ELF_FILE_H
#define STACKD_DAEMON_ELF_FILE_H

/*
 * What must be known of an ELF file before its symbols: in goes an open file or an image in
 * memory, out come build-id and segments. Owned by the caller; no state, any thread. The file
 * may be hostile, and may change while it is read.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELF_BUILD_ID_MAX   64
#define ELF_SEGMENTS_MAX   256
#define ELF_NAME_BYTES_MAX 4096 /* of a function's name, with its end */

/* Where the bytes are: fd is used when image is NULL, and stays the caller's. */
struct elf_source {
	int fd;
	const void *image;
	size_t image_size;
};

struct elf_segment {
	uint64_t offset, size; /* in the file, bytes */
	uint64_t address;      /* virtual address of offset */
	bool is_exec;
};

struct elf_file {
	uint8_t build_id[ELF_BUILD_ID_MAX];
	size_t build_id_size; /* 0: the file has none */
	struct elf_segment *segments;
	size_t n_segments;
	bool has_symtab;  /* the names of all its functions are in the file itself */
	char *debug_name; /* the file name in .gnu_debuglink; NULL where there is none */
	uint32_t debug_crc;
};

/* -ENOEXEC when it is no ELF file, -EBADMSG when it is a broken one, -ENOMEM. */
int elf_file_read(const struct elf_source *source, struct elf_file *out);

void elf_file_fini(struct elf_file *file);

/*
 * The ELF virtual address of a byte of the file that is mapped executable. False when no segment
 * holds it.
 */
bool elf_file_address(const struct elf_file *file, uint64_t offset, uint64_t *address_out);

#endif
