/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_OPENER_MESSAGE_H
#define STACKD_DAEMON_HOST_OPENER_MESSAGE_H

/*
 * The answer of a process that opens files. A request is a struct open_request, up to the end of
 * its path, with the descriptor at which the path begins.
 */

#include <stdint.h>

/* The message carries the descriptor if `error` is 0. */
struct opener_answer {
	int32_t error; /* 0 or a negative errno */
	uint32_t pad;
	uint64_t cpu_ns; /* CPU time that the process has used since its last answer */
};

#endif
