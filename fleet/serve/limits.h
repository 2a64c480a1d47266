/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_FLEET_SERVE_LIMITS_H
#define STACKD_FLEET_SERVE_LIMITS_H

/*
 * The limits of the gateway, and how often each was reached since its start, for the status and for
 * the errors of questions that are refused. The gateway owns the counts. Any thread.
 */

#include <stdatomic.h>

#include "proto/wire.h"
#include "proto/wire_error.h"

struct arena;

enum fleet_limit {
	FLEET_ANSWERS,
	FLEET_HEADERS,
	FLEET_GROUPS,
	FLEET_HOSTS,
	FLEET_TWICE,
	FLEET_QUERY,
	FLEET_SLICES,
	FLEET_LIMITS,
};

/* Zeroed: none was reached. */
struct fleet_limits {
	atomic_int answers; /* that are being made and sent */
	atomic_uint hits[FLEET_LIMITS];
};

/*
 * Counts that a question was refused because of a limit, and fills *error, about the field `what`
 * of the request, with the limit and what to ask instead. Returns -E2BIG.
 */
int fleet_limit_refuse(struct fleet_limits *limits, enum fleet_limit limit, const char *what,
		       struct wire_error *error);

/* Lists the limits in the arena. Returns 0 or -ENOMEM. */
int fleet_limits_list(const struct fleet_limits *limits, struct arena *arena,
		      struct wire_limits *out);

#endif
