/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_UNWIND_CRT_FILES_H
#define STACKD_DAEMON_UNWIND_CRT_FILES_H

/*
 * Adds hand-written unwind rows for the code that the linker takes from the start files of libc and
 * of the compiler (crti.o, crtbegin.o) into every file. This code calls constructors and
 * destructors and has no call frame information. Rows are added only if the code consists of the
 * known instructions. No state; any thread. The file may be hostile.
 */

#include <gelf.h>

#include "daemon/elf/file.h"
#include "daemon/unwind/rows.h"

struct crt_sections {
	Elf_Scn *init, *fini;		     /* sections .init and .fini, from crti.o and crtn.o */
	Elf_Scn *constructors, *destructors; /* sections .init_array and .fini_array, whose first
						entries point to functions of crtbegin.o */
	Elf_Scn *symbols;		     /* section .dynsym or, if there is none, .symtab */
};

/* If the section is one of those that struct crt_sections lists, stores it in `crt`. */
void crt_files_note(struct crt_sections *crt, Elf_Scn *section, const GElf_Shdr *header,
		    const char *name);

/*
 * Adds unwind rows for .init, .fini and the functions of crtbegin.o to the compiler. Returns -E2BIG
 * when there are too many functions or rows, or -ENOMEM.
 */
int crt_files_add(struct unwind_compiler *compiler, Elf *elf, const struct elf_file *file,
		  const struct crt_sections *crt);

/*
 * If the file is libc, adds unwind rows that end the walk of a stack made by makecontext(): the
 * first function on such a stack returns to code that has not called it. Must be called before any
 * other rows are added. Returns the same errors as crt_files_add().
 */
int crt_files_add_context(struct unwind_compiler *compiler, Elf *elf, const struct elf_file *file,
			  const struct crt_sections *crt);

#endif
