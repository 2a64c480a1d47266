/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_TRACEPOINTS_H
#define STACKD_DAEMON_PROBE_TRACEPOINTS_H

/*
 * Finds the kernel's tracepoints that match a pattern, each with the address of the function that
 * calls its probes. They are in the kernel's own types (BTF), so tracefs is not needed. Any thread.
 */

#include <stddef.h>

#include "daemon/probe/target.h"

/*
 * Finds all that match; results and errors as of target_find_functions(). Only tracefs knows
 * categories: without it, a pattern with a wildcard takes the events whose names begin with the
 * category, and one without takes the event of that name.
 */
int tracepoints_find(const struct target_pattern *pattern, struct targets *out, char *why,
		     size_t size);

#endif
