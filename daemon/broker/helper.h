/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BROKER_HELPER_H
#define STACKD_DAEMON_BROKER_HELPER_H

/*
 * The program of the broker process: it reads requests from a socket, opens the perf event that
 * each one describes, and answers with a result and, if that is 0, the descriptor. It exits when
 * the other side of the socket is closed.
 */

#include <stdint.h>
#include <stdnoreturn.h>

/* The answer to a request. If result is 0, the descriptor comes with it as SCM_RIGHTS. */
struct broker_answer {
	int32_t result; /* 0 or a negative errno */
};

/*
 * Gives up everything but CAP_SYS_ADMIN and a few system calls, then answers requests until the
 * socket closes. Call it in a child that was just forked.
 */
noreturn void broker_process_run(int fd);

#endif
