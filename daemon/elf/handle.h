/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_ELF_HANDLE_H
#define STACKD_DAEMON_ELF_HANDLE_H

/*
 * libelf's handle, for the files that look into ELF: in goes a source, out comes a handle owned
 * by the caller. Included by those only; one thread a handle.
 */

#include <libelf.h>

#include "daemon/elf/file.h"

/* NULL when it is no ELF file. The source must outlive the handle. */
Elf *elf_handle_open(const struct elf_source *source);
void elf_handle_endp(Elf **elf);

#endif
