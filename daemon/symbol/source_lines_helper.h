/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_SOURCE_LINES_HELPER_H
#define STACKD_DAEMON_SYMBOL_SOURCE_LINES_HELPER_H

/*
 * Runs the child process that reads debug information for source_lines.c. Only one child runs at a
 * time. May be called on any thread that can wait.
 */

#include <stddef.h>
#include <stdint.h>

#include "daemon/symbol/source_lines.h"
#include "daemon/symbol/source_lines_child.h"

struct source_lines_request {
	const void *data; /* the request in the format of source_lines_child.h */
	size_t size;
	const int *fds; /* two descriptors for each file: the file itself, then its debug file
			   (-1 if it has none) */
	size_t n_fds;
};

/*
 * Lowest number that a descriptor may have in the daemon if it is passed to the child. In the
 * child, dup2() gives each descriptor a lower number. This must not overwrite another descriptor
 * that is still to be passed.
 */
enum { SOURCE_LINES_FD_MIN = 300 };

/* Stores the limits of a child's time, memory and output in the head of a request to it. */
void source_lines_helper_limits(const struct source_lines_helper *helper,
				struct lines_child_head *out);

/* Returns the time (CLOCK_MONOTONIC, ns) by which a request that begins now must be finished. */
int64_t source_lines_helper_deadline(const struct source_lines_helper *helper);

/*
 * Runs a child process, and kills it at the time until_ns if it has not ended. The caller frees the
 * reply, which is incomplete if the child was killed. Returns 0, or a negative errno with a static
 * text in *reason_out: -ETIMEDOUT when the child took too long; -E2BIG when it crashed or exceeded
 * a limit of memory or output; -EBUSY when children of other requests ran for too long; or another
 * error of starting the child.
 */
int source_lines_helper_run(struct source_lines_helper *helper,
			    const struct source_lines_request *request, int64_t until_ns,
			    void **reply_out, size_t *size_out, const char **reason_out);

#endif
