/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_UNWIND_COMPILE_ELF_H
#define STACKD_DAEMON_UNWIND_COMPILE_ELF_H

/*
 * The rows of an ELF file: in goes an open file or image, out comes its compiled table. Owned by
 * the caller; no state, any thread. The file may be hostile, and may change while it is read.
 */

#include "daemon/elf/file.h"
#include "daemon/unwind/rows.h"

/* What of the file is code. False when it has none, or more than a table can be of. */
bool compile_elf_extent(const struct elf_file *file, struct unwind_extent *out);

/*
 * From Go's table of its functions, .eh_frame, and .debug_frame for what these leave out; a file
 * without any is looked for by its build-id under debug_dir (NULL: nowhere). At most max_words.
 * -ENODATA when there is no information, -ENOEXEC when it is no x86-64 ELF file, -EBADMSG, -E2BIG,
 * -ENOMEM.
 */
int compile_elf(const struct elf_source *source, const struct elf_file *file, const char *debug_dir,
		size_t max_words, struct unwind_rows *out);

#endif
