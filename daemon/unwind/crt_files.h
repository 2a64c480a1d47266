/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_UNWIND_CRT_FILES_H
#define STACKD_DAEMON_UNWIND_CRT_FILES_H

/*
 * The rows of the code that every linker puts into every file from the start files of libc and the
 * compiler, which have no call frame information: in go its sections, out the rows go to the
 * compiler of rows, where the code is what it is known to be. Libraries' first pages begin with it,
 * and destructors are called by it. No state, any thread. The file may be hostile.
 */

#include <gelf.h>

#include "daemon/elf/file.h"
#include "daemon/unwind/rows.h"

struct crt_sections {
	Elf_Scn *init, *fini;		     /* crti.o, crtn.o */
	Elf_Scn *constructors, *destructors; /* whose first ones are of crtbegin.o */
	Elf_Scn *symbols;		     /* the dynamic linker's, or all of what needs none */
};

void crt_files_note(struct crt_sections *crt, Elf_Scn *section, const GElf_Shdr *header,
		    const char *name);

/* -E2BIG when there are too many functions or rows, -ENOMEM. */
int crt_files_add(struct unwind_compiler *compiler, Elf *elf, const struct elf_file *file,
		  const struct crt_sections *crt);

/*
 * Before all other rows: in libc the end of stacks that makecontext() made, whose first function
 * returns to code that nobody has called. As above.
 */
int crt_files_add_context(struct unwind_compiler *compiler, Elf *elf, const struct elf_file *file,
			  const struct crt_sections *crt);

#endif
