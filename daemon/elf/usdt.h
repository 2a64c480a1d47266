/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_ELF_USDT_H
#define STACKD_DAEMON_ELF_USDT_H

/*
 * The static probes (USDT, as <sys/sdt.h> makes them) that an ELF file has: in goes an open file,
 * out come their names and places. No state; any thread. The file may be hostile.
 */

#include <stdint.h>

/*
 * Gets each place of a probe; 0, or a negative errno that ends it. name is "provider:probe",
 * borrowed; counter is where in the file the program counts who wants to see it, 0 where it does
 * not.
 */
typedef int (*elf_usdt_fn)(void *context, const char *name, uint64_t offset, uint32_t counter);

/* 0, -ENOEXEC when it is no ELF file, -EBADMSG when it is a broken one, or what probe_fn returned.
 */
int elf_usdt(int fd, elf_usdt_fn probe_fn, void *context);

#endif
