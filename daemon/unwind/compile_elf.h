/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_UNWIND_COMPILE_ELF_H
#define STACKD_DAEMON_UNWIND_COMPILE_ELF_H

/*
 * Compiles the call frame information of an ELF file to unwind rows, by which BPF programs walk
 * user stacks. No state; any thread. The file may be hostile, and may change while it is read.
 */

#include "daemon/elf/file.h"
#include "daemon/unwind/rows.h"

/*
 * Finds the address range that covers all code of the file (its extent). False if the file has no
 * code, or if the range is larger than 4 GiB.
 */
bool compile_elf_extent(const struct elf_file *file, struct unwind_extent *out);

/*
 * Compiles unwind rows from Go's table of functions, from .eh_frame, and from .debug_frame for
 * functions that the other two leave out. If the file has neither the first nor the last, reads the
 * sections of its separate debug file debug_fd (-1: none), too. The caller owns the rows. Returns
 * -ENODATA when there is no call frame information, -ENOEXEC when the file is not an x86-64 ELF
 * file, -EBADMSG when it is broken, -E2BIG when the rows need more than max_words or a limit is
 * exceeded, or -ENOMEM. If `wanted` is not NULL, compiles only the wanted parts, as
 * unwind_compiler_limit() says.
 */
int compile_elf(const struct elf_source *source, const struct elf_file *file, int debug_fd,
		size_t max_words, const struct unwind_wanted *wanted, struct unwind_rows *out);

#endif
