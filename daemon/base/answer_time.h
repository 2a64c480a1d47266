/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BASE_ANSWER_TIME_H
#define STACKD_DAEMON_BASE_ANSWER_TIME_H

/*
 * Adds up the CPU time that answers to clients take. It does not count in [budget] cpu: else a
 * client could take away from what is recorded. A thread that works for an answer says so; while it
 * does, its time counts at once, so that a long answer does not come all at its end. Any thread.
 */

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* A thread that works for an answer. It has the struct on its stack, or keeps it otherwise. */
struct answer_time {
	clockid_t clock;
	int64_t begun_ns; /* CPU time of the thread when it began */
	struct answer_time *previous, *next;
};

/* Begin and end a piece of work of the calling thread. Pieces of one thread must not overlap. */
void answer_time_begin(struct answer_time *work);
void answer_time_end(struct answer_time *work);

/* Adds CPU time, in ns, that another process has used for an answer. */
void answer_time_add(int64_t ns);

/*
 * Does the same as waitpid() for a child process that works for an answer. When it has ended, its
 * CPU time is added.
 */
pid_t answer_time_wait(pid_t pid, int *status_out, int options);

/* Returns the CPU time of all answers since the start, in ns. */
uint64_t answer_time_ns(void);

#endif
