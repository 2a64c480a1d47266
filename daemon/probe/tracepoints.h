/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_TRACEPOINTS_H
#define STACKD_DAEMON_PROBE_TRACEPOINTS_H

/*
 * Finds the kernel's tracepoints that match a pattern, each with the address of the kernel function
 * that calls the programs attached to the tracepoint. The kernel's types (BTF) have the names of
 * all tracepoints, so tracefs is not needed. Any thread.
 */

#include <stddef.h>

#include "daemon/probe/target.h"

/*
 * Finds all tracepoints that match the pattern; results and errors are like those of
 * target_find_functions(). Only tracefs knows categories. If tracefs cannot be read, a pattern with
 * a wildcard matches the tracepoints whose names begin with the category, and a pattern without one
 * matches the tracepoint that it names.
 */
int tracepoints_find(const struct target_pattern *pattern, struct targets *out, char *why,
		     size_t size);

#endif
