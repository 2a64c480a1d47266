/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BASE_THREAD_H
#define STACKD_DAEMON_BASE_THREAD_H

/* How a thread is scheduled: nothing goes in, the thread that calls is another one after. */

#include <sys/resource.h>

/* So many steps of niceness before the rest of the daemon. */
enum { THREAD_URGENCY = 5 };

/*
 * For threads that do a little and soon, or it is too late: rings fill, processes are gone. Where
 * it is refused (it takes CAP_SYS_NICE or RLIMIT_NICE) the thread is as urgent as any.
 */
static inline void thread_set_urgent(void)
{
	setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) - THREAD_URGENCY);
}

#endif
