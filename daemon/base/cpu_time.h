/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BASE_CPU_TIME_H
#define STACKD_DAEMON_BASE_CPU_TIME_H

#include <stdint.h>
#include <sys/resource.h>

#include "common/base.h"

/* Returns the CPU time, in ns, of a process or of processes, in user space and in the kernel. */
static inline int64_t rusage_ns(const struct rusage *usage)
{
	return (usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * NS_PER_S +
	       (usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * NS_PER_US;
}

#endif
