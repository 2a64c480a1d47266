/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_TRACEPOINTS_H
#define STACKD_DAEMON_PROBE_TRACEPOINTS_H

/*
 * The kernel's tracepoints by its own types, which need no tracefs: in goes a pattern, out come
 * those that fit, each with the address of the function that calls its probes. Any thread.
 */

#include <stddef.h>

#include "daemon/probe/target.h"

/*
 * As target_find_functions(). Without tracefs a category is not known but by the names: with a
 * wildcard behind it, it is what an event's name begins with.
 */
int tracepoints_find(const struct target_pattern *pattern, struct targets *out, char *why,
		     size_t size);

#endif
