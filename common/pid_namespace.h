/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_PID_NAMESPACE_H
#define STACKD_COMMON_PID_NAMESPACE_H

#include <stdbool.h>
#include <sys/stat.h>

/* PID_NS_INIT_INO of the kernel's uapi/linux/nsfs.h; the same since 3.8 (98f842e675f9). */
#define PID_NAMESPACE_FIRST 0xEFFFFFFCU

/*
 * True if the pids that this process sees are those of the host, as it is in the first pid
 * namespace, or if /proc does not say. Any thread.
 */
static inline bool pid_namespace_is_first(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) < 0 || st.st_ino == PID_NAMESPACE_FIRST;
}

#endif
