/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BASE_THREAD_H
#define STACKD_DAEMON_BASE_THREAD_H

/* Starts of threads, their scheduling priority, and waits with an end. Header only, no state. */

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

#include "common/base.h"

/*
 * Starts a thread that handles no signals, which the main thread does. Returns 0 or a negative
 * errno.
 */
static inline int thread_start(pthread_t *thread, const char *name, void *(*run)(void *data),
			       void *data)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(thread, NULL, run, data);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r)
		return -r;
	pthread_setname_np(*thread, name);
	return 0;
}

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

/*
 * Waits for a signal of the condition, until end_ns of CLOCK_MONOTONIC, whichever clock the
 * condition was made with. Called with the lock held. Returns 0, also without a signal, or
 * -ETIMEDOUT.
 */
static inline int thread_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock,
				    int64_t end_ns)
{
	const struct timespec end = timespec_ns(end_ns);

	return -pthread_cond_clockwait(condition, lock, CLOCK_MONOTONIC, &end);
}

#endif
