/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_DEBUGINFOD_FETCH_H
#define STACKD_CLIENT_DEBUGINFOD_FETCH_H

/*
 * Fetches the debug information of one file from the servers in $DEBUGINFOD_URLS and finds
 * functions in it. Both is done by a child process: it is killed when time is up, and what a server
 * sends can harm only that process. libdebuginfod is loaded when it is first needed. Main thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "client/debuginfod/symbols.h"

/* A file, and the addresses in it whose functions are asked for, in ascending order. */
struct fetch_file {
	uint8_t build_id[BUILD_ID_MAX];
	size_t build_id_size;
	struct symbol_query *queries;
	size_t n_queries;
};

/*
 * Checks that there is a library to fetch with. Returns NULL, or why not, as a text that the caller
 * does not free.
 */
const char *fetch_check(void);

/*
 * Fetches the debug information of a file and names its queries. Takes no longer than until
 * deadline_ns (CLOCK_MONOTONIC). Returns 0; -ETIMEDOUT; -EINTR if a signal arrived; or another
 * errno with *why_out, which the caller frees, saying what went wrong.
 */
int fetch_functions(struct fetch_file *file, int64_t deadline_ns, char **why_out);

#endif
