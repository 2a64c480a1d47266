/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_MEASURES_H
#define STACKD_CLIENT_RENDER_MEASURES_H

/*
 * The figures that formats for other programs have of each row, with names and units: waits and the
 * times blocked, runnable and throttled, or samples and the time on a CPU, and so on. Constant.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/wire.h"

struct measure {
	const char *name;
	const char *unit;  /* "nanoseconds" or "count" */
	const char *probe; /* only rows of this probe have the figure; NULL: all rows */
	int64_t (*value)(const struct wire_row *row);
};

struct measures {
	const struct measure *v;
	size_t n;
	size_t main; /* the one that a viewer shows first */
};

enum { MEASURES_MAX = 8 };

/* Returns the measures of an answer; of an overview, if is_overview is true. */
struct measures measures_of(const struct wire_snapshot_reply *reply, bool is_overview);

/* Returns the figure of a row of an answer about a probe. */
int64_t measure_value(const struct measure *measure, const char *probe, const struct wire_row *row);

/*
 * Returns the time of a row that adds up to the total of an answer of iolat, in ns: of an
 * operation, the time that it spent outside the layers below, because those have rows of their own;
 * of a disk request 0, because each part of the request has a row of its own.
 */
int64_t measure_io_time(const struct wire_row *row);

#endif
