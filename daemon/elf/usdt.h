/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_ELF_USDT_H
#define STACKD_DAEMON_ELF_USDT_H

/*
 * Lists the static probes of an ELF file (USDT, made by <sys/sdt.h>): their names and offsets. No
 * state; any thread. The file may be hostile.
 */

#include <stdint.h>

/*
 * Called for each place in the code where a probe is; a negative errno ends the listing. name is
 * "provider:probe", borrowed. counter is the offset in the file of the count of tracers that the
 * program checks, 0 where it has none.
 */
typedef int (*elf_usdt_fn)(void *context, const char *name, uint64_t offset, uint32_t counter);

/*
 * Returns 0, -ENOEXEC when it is not an ELF file, -EBADMSG when it is a broken one, or what
 * probe_fn returned.
 */
int elf_usdt(int fd, elf_usdt_fn probe_fn, void *context);

#endif
