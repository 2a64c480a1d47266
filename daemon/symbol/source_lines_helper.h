/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_SOURCE_LINES_HELPER_H
#define STACKD_DAEMON_SYMBOL_SOURCE_LINES_HELPER_H

/*
 * Runs the process that reads debug information: in goes a request and descriptors, out comes its
 * answer, or why there is none. What lines.c needs of lines.h's helper.
 */

#include <stddef.h>
#include <stdint.h>

#include "daemon/symbol/source_lines.h"
#include "daemon/symbol/source_lines_child.h"

struct source_lines_request {
	const void *data; /* as in symbol_lines.h */
	size_t size;
	const int *fds; /* for each file two; -1: none */
	size_t n_fds;
};

/* Descriptors given to it are to be numbered from here on. */
enum { SOURCE_LINES_FD_MIN = 300 };

/* What a process may take. */
void source_lines_helper_limits(const struct source_lines_helper *helper,
				struct lines_child_head *out);

/* When what begins now is to be over, CLOCK_MONOTONIC. */
int64_t source_lines_helper_deadline(const struct source_lines_helper *helper);

/*
 * The answer is malloc'ed, the caller's; that of a process that was ended is as much as there is,
 * NULL for none. Negative errno with a static reason: -ETIMEDOUT when it was killed for its time,
 * -E2BIG for its memory or what it wrote, -EBUSY when others ran too long.
 */
int source_lines_helper_run(struct source_lines_helper *helper,
			    const struct source_lines_request *request, int64_t until_ns,
			    void **reply_out, size_t *size_out, const char **reason_out);

#endif
