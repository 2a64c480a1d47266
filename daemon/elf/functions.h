/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_ELF_FUNCTIONS_H
#define STACKD_DAEMON_ELF_FUNCTIONS_H

/*
 * Lists the functions that an ELF file defines, with their offsets in the file. No state; any
 * thread. The file may be hostile.
 */

#include <stdint.h>

/* Called for each function; a negative errno ends the listing. The name is borrowed and mangled. */
typedef int (*elf_function_fn)(void *context, const char *name, uint64_t offset);

/*
 * Calls back for the functions of the file's symbol tables and, if it has no full one, of its debug
 * file; a name may come more than once. Returns 0, -ENOEXEC when it is not an ELF file, -EBADMSG
 * when it is a broken one, or what function_fn returned.
 */
int elf_functions(int fd, const char *path, elf_function_fn function_fn, void *context);

/*
 * Finds the offset in the file of a virtual address of code. 0, or -ENOENT when no executable
 * segment holds it.
 */
struct elf_file;
int elf_code_offset(const struct elf_file *file, uint64_t address, uint64_t *offset_out);

#endif
