/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_ELF_USDT_H
#define STACKD_DAEMON_ELF_USDT_H

/*
 * Lists the static probes of an ELF file (USDT, made by <sys/sdt.h>), with their names and offsets.
 * No state; any thread. The file may be hostile.
 */

#include <stdint.h>

/*
 * Called for each static probe, once for each place in the code that has the probe; any result but
 * 0 ends the listing. `name` is "provider:probe", and is valid only during the call. `offset` is
 * the offset of the place in the file. `counter` is the offset in the file of the probe's
 * semaphore, a counter that tracers raise; while the counter is 0, the program skips the probe. If
 * `counter` is 0, the probe has no semaphore.
 */
typedef int (*elf_usdt_fn)(void *context, const char *name, uint64_t offset, uint32_t counter);

/*
 * Calls probe_fn for each probe of the file. Returns 0; -ENOEXEC if fd is no ELF file; -EBADMSG if
 * it is damaged; or what probe_fn returned.
 */
int elf_usdt(int fd, elf_usdt_fn probe_fn, void *context);

#endif
