/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BASE_THREAD_H
#define STACKD_DAEMON_BASE_THREAD_H

/* Sets the scheduling priority of a thread. Header only, no state. */

#include <sys/resource.h>

/* Number of nice levels by which an urgent thread comes before the other threads of the daemon. */
enum { THREAD_URGENCY = 5 };

/*
 * Raises the priority of the calling thread. Meant for threads that do little work but must do it
 * soon, because a ring buffer may fill up or a process may exit. Does nothing if it is not
 * permitted (no CAP_SYS_NICE or RLIMIT_NICE).
 */
static inline void thread_set_urgent(void)
{
	setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) - THREAD_URGENCY);
}

#endif
