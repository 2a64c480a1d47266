/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PARSE_ZYGOTE_H
#define STACKD_DAEMON_PARSE_ZYGOTE_H

/*
 * The process that starts workers. It reads nothing that a stranger wrote: it forks a worker when
 * the daemon asks for one, and kills workers that the daemon gives up. A fork is cheaper than
 * executing the program again for each worker.
 */

/*
 * Runs a worker. fd is its socket to the daemon. The process exits when the function returns.
 */
typedef void (*zygote_worker_fn)(int fd);

/*
 * Runs the process until the daemon closes its end of the socket HELPER_SOCKET_FD. Returns the exit
 * code. Tests give a worker that answers wrongly.
 */
int zygote_main(zygote_worker_fn worker);

#endif
