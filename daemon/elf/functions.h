/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_ELF_FUNCTIONS_H
#define STACKD_DAEMON_ELF_FUNCTIONS_H

/*
 * Lists the functions that an ELF file defines, with their offsets in the file. No state; any
 * thread. The file may be hostile.
 */

#include <stdint.h>

enum elf_function_sort {
	ELF_FUNCTION,
	/*
	 * of an old version of the library's interface (name@VERSION): only programs that were
	 * linked against that version call it
	 */
	ELF_FUNCTION_OLD,
	/* an IFUNC: what is at the offset is not called, but chooses at run time what is */
	ELF_FUNCTION_CHOOSES,
	ELF_FUNCTION_SORTS,
};

/*
 * Called for each function; any result but 0 ends the listing. `name` is a mangled name, and is
 * valid only during the call. `sort` is an enum elf_function_sort.
 */
typedef int (*elf_function_fn)(void *context, const char *name, uint64_t offset, uint32_t sort);

/*
 * Calls function_fn for each function in the symbol tables of the ELF file with the descriptor fd,
 * and in those of its separate debug file, unless debug_fd is -1. A name may be listed more than
 * once. Returns 0; -ENOEXEC if fd is not an ELF file; -EBADMSG if it is damaged; or what
 * function_fn returned.
 */
int elf_functions(int fd, int debug_fd, elf_function_fn function_fn, void *context);

struct elf_file;

/*
 * Finds the file offset of an ELF virtual address of code. Returns 0, or -ENOENT if no
 * executable segment contains the address.
 */
int elf_code_offset(const struct elf_file *file, uint64_t address, uint64_t *offset_out);

#endif
