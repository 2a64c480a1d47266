/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_SOURCE_LINES_HELPER_H
#define STACKD_DAEMON_SYMBOL_SOURCE_LINES_HELPER_H

/*
 * Runs the child process that reads debug information for source_lines.c. One child runs at a time;
 * any thread that may wait.
 */

#include <stddef.h>
#include <stdint.h>

#include "daemon/symbol/source_lines.h"
#include "daemon/symbol/source_lines_child.h"

struct source_lines_request {
	const void *data; /* the request in the format of source_lines_child.h */
	size_t size;
	const int *fds; /* two descriptors for each file: itself, its debug file; -1: none */
	size_t n_fds;
};

/*
 * A descriptor that is passed to the child must have at least this number. In the child it gets a
 * lower number, and a descriptor that has such a number already could be overwritten.
 */
enum { SOURCE_LINES_FD_MIN = 300 };

/* Stores the limits of time, memory and output of a child in the head of a request. */
void source_lines_helper_limits(const struct source_lines_helper *helper,
				struct lines_child_head *out);

/* Returns the time (CLOCK_MONOTONIC, ns) by which a request that begins now must be finished. */
int64_t source_lines_helper_deadline(const struct source_lines_helper *helper);

/*
 * Runs a child until the time until_ns at most. The caller frees the reply; if the child was killed
 * early, the reply has what it had written before. Returns 0, or a negative errno with a static
 * text in *reason_out: -ETIMEDOUT when the child took too long, -E2BIG when it exceeded a limit of
 * memory or output or crashed, -EBUSY when other requests took too long, or other errors of
 * starting the child.
 */
int source_lines_helper_run(struct source_lines_helper *helper,
			    const struct source_lines_request *request, int64_t until_ns,
			    void **reply_out, size_t *size_out, const char **reason_out);

#endif
