/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_ELF_HANDLE_H
#define STACKD_DAEMON_ELF_HANDLE_H

/*
 * Opens libelf handles, for the files that look into ELF. The handle is owned by the caller and
 * used by one thread at a time.
 */

#include <libelf.h>

#include "daemon/elf/file.h"

/* Returns NULL when it is not an ELF file. The source must outlive the handle. */
Elf *elf_handle_open(const struct elf_source *source);
void elf_handle_endp(Elf **elf);

#endif
