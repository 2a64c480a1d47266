/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PARSE_WORKER_H
#define STACKD_DAEMON_PARSE_WORKER_H

/*
 * The worker: a process that parses files of strangers. It gets requests with open files by a
 * socket, and has no way to open or connect to anything else (daemon/host/sandbox.h).
 */

/* Answers requests until the other end of the socket is closed. A zygote_worker_fn. */
void worker_run(int fd);

#endif
