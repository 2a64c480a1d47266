/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_ELF_HANDLE_H
#define STACKD_DAEMON_ELF_HANDLE_H

/*
 * Opens libelf handles for the source files of this folder. The caller owns the handle; one thread
 * at a time uses it.
 */

#include <libelf.h>

#include "daemon/elf/file.h"

/*
 * Opens an ELF file for libelf; NULL if `source` is not an ELF file. `source` must live as long as
 * the handle.
 */
Elf *elf_handle_open(const struct elf_source *source);
void elf_handle_endp(Elf **elf);

#endif
