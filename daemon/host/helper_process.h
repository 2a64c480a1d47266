/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_HELPER_PROCESS_H
#define STACKD_DAEMON_HOST_HELPER_PROCESS_H

/* Starts helper processes of the daemon, and adds up the CPU time that they take. Any thread. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Descriptor of the socket to the daemon, in a helper process. */
enum { HELPER_SOCKET_FD = 3 };

/*
 * Executes a program as a helper process, with no signal blocked or ignored, an empty environment,
 * and no descriptors but /dev/null and, as HELPER_SOCKET_FD, its end of a pair of sockets for
 * messages. `name` is its argv[0]. Returns the other end, owned by the caller, or a negative errno.
 */
int helper_process_start(const char *program, char *name, pid_t *pid_out);

/*
 * Waits until a helper process has sent a message to the socket `fd`, or closed its end. Times are
 * in ns of CLOCK_MONOTONIC. Returns 0 or -ETIMEDOUT.
 */
int helper_process_wait(int fd, int64_t until_ns);

/*
 * Reaps a helper process if it has ended. Returns what waitpid() does with WNOHANG. What the
 * process has used and not said is not counted any more.
 */
pid_t helper_process_reap(pid_t pid);

/* Reaps a helper process that was killed. Returns false if it has not ended by then. */
bool helper_process_reap_until(pid_t pid, int64_t until_ns);

/* Adds CPU time that a helper process says it has used since it last said so. */
void helper_process_count(uint64_t cpu_ns);

/*
 * Returns the CPU time, in ns, of the daemon's children that were waited for and of its helper
 * processes, as far as they have said.
 */
uint64_t helper_process_children_ns(void);

/*
 * Ignores the signals that end or reload the daemon, for a helper process that ends when its socket
 * does.
 */
void helper_process_ignore_signals(void);

#endif
