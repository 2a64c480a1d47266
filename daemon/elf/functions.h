/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_ELF_FUNCTIONS_H
#define STACKD_DAEMON_ELF_FUNCTIONS_H

/*
 * The functions that an ELF file defines: in goes an open file, out come names with their offsets
 * in it. No state; any thread. The file may be hostile.
 */

#include <stdint.h>

/* Gets each function; 0, or a negative errno that ends it. The name is borrowed, as the file has
 * it. */
typedef int (*elf_function_fn)(void *context, const char *name, uint64_t offset);

/*
 * Those of its symbol tables, and of the debug file of path where there is one: a name may come
 * more than once. 0, -ENOEXEC when it is no ELF file, -EBADMSG when it is a broken one, or what
 * function_fn returned.
 */
int elf_functions(int fd, const char *path, elf_function_fn function_fn, void *context);

/* Where in the file a virtual address of its code is. False when it is nowhere. */
struct elf_file;
int elf_code_offset(const struct elf_file *file, uint64_t address, uint64_t *offset_out);

#endif
