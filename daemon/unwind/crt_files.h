/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_UNWIND_CRT_FILES_H
#define STACKD_DAEMON_UNWIND_CRT_FILES_H

/*
 * Adds hand-written rows for code that every linked file has from the start files of libc and the
 * compiler (crti.o, crtbegin.o): it has no call frame information. The code is compared with the
 * known instructions first. Walks need these rows for constructors and destructors. No state, any
 * thread. The file may be hostile.
 */

#include <gelf.h>

#include "daemon/elf/file.h"
#include "daemon/unwind/rows.h"

struct crt_sections {
	Elf_Scn *init, *fini;		     /* .init and .fini, of crti.o and crtn.o */
	Elf_Scn *constructors, *destructors; /* .init_array and .fini_array; their first entries are
						functions of crtbegin.o */
	Elf_Scn *symbols;		     /* .dynsym, or .symtab where there is none */
};

/* Remembers the section if it is one of those above. */
void crt_files_note(struct crt_sections *crt, Elf_Scn *section, const GElf_Shdr *header,
		    const char *name);

/*
 * Adds the rows of these functions to the compiler. -E2BIG when there are too many functions or
 * rows, -ENOMEM.
 */
int crt_files_add(struct unwind_compiler *compiler, Elf *elf, const struct elf_file *file,
		  const struct crt_sections *crt);

/*
 * Adds the end of stacks made by makecontext(), if the file is libc: their first function returns
 * to code that has not called it. To be added before all other rows. Errors as above.
 */
int crt_files_add_context(struct unwind_compiler *compiler, Elf *elf, const struct elf_file *file,
			  const struct crt_sections *crt);

#endif
