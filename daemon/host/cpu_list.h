/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_CPU_LIST_H
#define STACKD_DAEMON_HOST_CPU_LIST_H

/* The kernel's lists of CPUs ("0-3,8"): in goes a file, out come flags. Any thread. */

#include <stdbool.h>
#include <stddef.h>

/* Sets the flags of the CPUs below n that the text names, leaves others. How many, or -EINVAL. */
int cpu_list_parse(const char *text, bool *cpus, size_t n);

/* The same for a file of sysfs, or the negative errno of reading it. */
int cpu_list_read(const char *path, bool *cpus, size_t n);

#endif
