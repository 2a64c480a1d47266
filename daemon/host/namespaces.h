/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_NAMESPACES_H
#define STACKD_DAEMON_HOST_NAMESPACES_H

/* Finds out whether this process has the kernel's own clocks and pids. No state; any thread. */

#include <stddef.h>

/*
 * Checks that times and pids that BPF programs record mean the same to this process: it is in no
 * pid namespace but the first one, and in no time namespace that moves a clock. Returns 0, or
 * -EOPNOTSUPP with one line in `reason` (size bytes).
 */
int namespaces_check(char *reason, size_t size);

#endif
