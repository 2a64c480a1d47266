/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_UNWIND_COMPILE_GO_H
#define STACKD_DAEMON_UNWIND_COMPILE_GO_H

/*
 * Compiles unwind rows for the functions of Go programs, from the table that Go's runtime uses
 * (pclntab) and from the machine code. No state; any thread. The file may be hostile.
 */

#include "daemon/elf/file.h"
#include "daemon/elf/go_pclntab.h"
#include "daemon/unwind/rows.h"

/*
 * Adds the unwind rows of all Go functions of the file to the compiler. `entry` is the address at
 * which the program starts. Returns -E2BIG when there are too many functions or rows, or -ENOMEM.
 */
int compile_go(struct unwind_compiler *compiler, const struct elf_source *source,
	       const struct elf_file *file, const struct go_pclntab *go, uint64_t entry);

#endif
