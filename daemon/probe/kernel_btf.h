/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_KERNEL_BTF_H
#define STACKD_DAEMON_PROBE_KERNEL_BTF_H

/*
 * The running kernel's types: in come names, out comes whether the kernel has them. They take some
 * milliseconds to read and 6 MB to keep, so they are read once for all who hold them, when the
 * first of these asks, and freed when nobody holds them. Any thread.
 */

#include <stdbool.h>

struct btf;

void probe_types_hold(void);
void probe_types_release(void);

/* While held. 0 with what is borrowed until released, or a negative errno. */
int probe_types(struct btf **out);

/* While held. Whether there is that function or typedef, BTF_KIND_..; false where none can be read.
 */
bool probe_types_have(const char *name, unsigned int kind);

#endif
