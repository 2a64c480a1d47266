/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BROKER_HELPER_H
#define STACKD_DAEMON_BROKER_HELPER_H

/*
 * The broker process. It reads requests from a socket, opens the perf event that each request
 * describes, and sends an answer: the result and, if the event was opened, its descriptor. It exits
 * when the other end of the socket is closed.
 */

#include <stdint.h>
#include <stdnoreturn.h>

/*
 * The answer to a request. If `result` is 0, the message also carries the descriptor of the event
 * as SCM_RIGHTS.
 */
struct broker_answer {
	int32_t result; /* 0 if the event was opened, otherwise a negative errno */
};

/*
 * Gives up all capabilities except CAP_SYS_ADMIN, and all but a few system calls. Then answers
 * requests from the socket fd until the other end is closed, and exits. To be called in a child
 * process right after the fork.
 */
noreturn void broker_process_run(int fd);

#endif
