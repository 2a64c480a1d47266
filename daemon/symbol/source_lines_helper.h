/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_SOURCE_LINES_HELPER_H
#define STACKD_DAEMON_SYMBOL_SOURCE_LINES_HELPER_H

/* Runs the child process that reads debug information, for source_lines.c. */

#include <stddef.h>
#include <stdint.h>

#include "daemon/symbol/source_lines.h"
#include "daemon/symbol/source_lines_child.h"

struct source_lines_request {
	const void *data; /* as in source_lines_child.h */
	size_t size;
	const int *fds; /* two for each file; -1: none */
	size_t n_fds;
};

/*
 * Descriptors that are given to the child must be numbered from here on, so that they do not
 * collide with the numbers that they have in the child.
 */
enum { SOURCE_LINES_FD_MIN = 300 };

/* Fills the limits of a child process into the head of a request. */
void source_lines_helper_limits(const struct source_lines_helper *helper,
				struct lines_child_head *out);

/* Returns the time by which a request that begins now must be finished, CLOCK_MONOTONIC. */
int64_t source_lines_helper_deadline(const struct source_lines_helper *helper);

/*
 * Runs the child. The reply is allocated by malloc() and owned by the caller; if the child was
 * killed it is as much as was written, NULL for nothing. Returns 0, or a negative errno with a
 * static reason: -ETIMEDOUT when the child was killed for its time, -E2BIG for its memory or
 * output, -EBUSY when other requests ran for too long.
 */
int source_lines_helper_run(struct source_lines_helper *helper,
			    const struct source_lines_request *request, int64_t until_ns,
			    void **reply_out, size_t *size_out, const char **reason_out);

#endif
