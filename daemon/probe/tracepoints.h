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
 * target_find_functions(). Only tracefs tells which tracepoints belong to a category. If tracefs
 * cannot be read, goes by names: a pattern with a wildcard matches only tracepoints whose names
 * begin with the name of the category; a pattern without a wildcard matches in any category.
 */
int tracepoints_find(const struct target_pattern *pattern, struct targets *out, char *why,
		     size_t size);

#endif
