/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_UNWIND_COMPILE_GO_H
#define STACKD_DAEMON_UNWIND_COMPILE_GO_H

/*
 * The rows of Go's functions: in go the table that Go's runtime has of them and their code, out
 * they go to the compiler of rows. No state, any thread. The file may be hostile.
 */

#include "daemon/elf/file.h"
#include "daemon/elf/go_pclntab.h"
#include "daemon/unwind/rows.h"

/* -E2BIG when there are too many functions or rows, -ENOMEM. */
int compile_go(struct unwind_compiler *compiler, const struct elf_source *source,
	       const struct elf_file *file, const struct go_pclntab *go, uint64_t entry);

#endif
