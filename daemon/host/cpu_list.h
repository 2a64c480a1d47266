/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_CPU_LIST_H
#define STACKD_DAEMON_HOST_CPU_LIST_H

/* Parses the kernel's lists of CPUs, such as "0-3,8". No state; any thread. */

#include <stdbool.h>
#include <stddef.h>

/*
 * Sets the flags of the CPUs in the list that are below n, and leaves the other flags alone.
 * Returns how many it set, or -EINVAL.
 */
int cpu_list_parse(const char *text, bool *cpus, size_t n);

/*
 * Does the same with the contents of a file of sysfs. Returns a negative errno when it cannot be
 * read.
 */
int cpu_list_read(const char *path, bool *cpus, size_t n);

#endif
