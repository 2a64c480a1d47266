/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_ELF_HANDLE_H
#define STACKD_DAEMON_ELF_HANDLE_H

/*
 * Opens libelf handles and reads sections with limits, for all who read ELF files. libelf allocates
 * what a file's headers ask for, and a file of a few kilobytes, with holes, may ask for gigabytes.
 * Therefore only these functions open files and read sections. The caller owns the handle; one
 * thread at a time uses it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libelf.h>

#include "daemon/elf/file.h"

/*
 * Opens an ELF file for libelf. Returns NULL if `source` is not an ELF file of this machine's byte
 * order, or if it has more sections or segments, or longer names of sections, than any program has.
 * `source` must live as long as the handle.
 */
Elf *elf_handle_open(const struct elf_source *source);
void elf_handle_endp(Elf **elf);

/* Copies bytes of the file. Returns false if the file does not have them all. */
bool elf_handle_read(const struct elf_source *source, uint64_t offset, void *out, size_t size);

/*
 * Returns the bytes of a section as they are in the file; NULL if there are none, or more than
 * `max`. The handle owns the result.
 */
Elf_Data *elf_handle_bytes(Elf_Scn *section, uint64_t max);

/*
 * Returns the entries of a section, such as symbols, aligned in memory; NULL if there are none, or
 * if the section has more than `max` bytes. The handle owns the result.
 */
Elf_Data *elf_handle_entries(Elf_Scn *section, uint64_t max);

/*
 * Returns the string at the offset `at` of the section `index`. NULL if it has no string there, or
 * if the section is compressed or larger than 64 MiB. The handle owns the result.
 */
const char *elf_handle_string(Elf *elf, size_t index, size_t at);

#endif
