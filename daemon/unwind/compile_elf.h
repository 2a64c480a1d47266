/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_UNWIND_COMPILE_ELF_H
#define STACKD_DAEMON_UNWIND_COMPILE_ELF_H

/*
 * Compiles the call frame information of an ELF file to rows. No state, any thread. The file may be
 * hostile, and may change while it is read.
 */

#include "daemon/elf/file.h"
#include "daemon/unwind/rows.h"

/* Finds which addresses are code. False where there is none, or more than 4 GiB. */
bool compile_elf_extent(const struct elf_file *file, struct unwind_extent *out);

/*
 * Reads Go's table of functions, .eh_frame, and .debug_frame for functions that these leave out. If
 * the file has none of them, its debug file is looked for by build-id under debug_dir (NULL: not at
 * all). The rows are owned by the caller. -ENODATA when there is no information, -ENOEXEC when it
 * is not an x86-64 ELF file, -EBADMSG when it is broken, -E2BIG when the rows need more than
 * max_words or a limit is exceeded, -ENOMEM.
 */
int compile_elf(const struct elf_source *source, const struct elf_file *file, const char *debug_dir,
		size_t max_words, struct unwind_rows *out);

#endif
