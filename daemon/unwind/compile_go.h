/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_UNWIND_COMPILE_GO_H
#define STACKD_DAEMON_UNWIND_COMPILE_GO_H

/*
 * Compiles rows for the functions of Go programs, from the table of Go's runtime (pclntab) and
 * their code. No state, any thread. The file may be hostile.
 */

#include "daemon/elf/file.h"
#include "daemon/elf/go_pclntab.h"
#include "daemon/unwind/rows.h"

/*
 * Adds the rows to the compiler. entry: the start address of the program. -E2BIG when there are too
 * many functions or rows, -ENOMEM.
 */
int compile_go(struct unwind_compiler *compiler, const struct elf_source *source,
	       const struct elf_file *file, const struct go_pclntab *go, uint64_t entry);

#endif
