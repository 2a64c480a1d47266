/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_CPU_LIST_H
#define STACKD_DAEMON_HOST_CPU_LIST_H

/* Parses lists of CPUs as the kernel writes them, such as "0-3,8". No state; any thread. */

#include <stdbool.h>
#include <stddef.h>

/*
 * Parses a list of CPUs. Sets cpus[i] to true for each CPU i of the list, but ignores CPUs that are
 * not below n; leaves the other elements as they are. Returns the number of elements set to true,
 * or -EINVAL.
 */
int cpu_list_parse(const char *text, bool *cpus, size_t n);

/*
 * Like cpu_list_parse(), but reads the list from the file with the path `path`. Returns a negative
 * errno if the file cannot be read.
 */
int cpu_list_read(const char *path, bool *cpus, size_t n);

#endif
