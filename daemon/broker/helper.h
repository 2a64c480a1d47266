/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BROKER_HELPER_H
#define STACKD_DAEMON_BROKER_HELPER_H

/*
 * What runs in the broker's process: requests come in on a socket, each is answered by a result
 * and, where that is 0, a descriptor. It ends with the socket's other side.
 */

#include <stdint.h>
#include <stdnoreturn.h>

/* The answer; SCM_RIGHTS goes with it where result is 0. */
struct broker_answer {
	int32_t result; /* 0 or a negative errno */
};

/* To be called in a fresh child: gives up everything but CAP_SYS_ADMIN and a few system calls. */
noreturn void broker_process_run(int fd);

#endif
