/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SESSION_FILTER_FIELDS_H
#define STACKD_DAEMON_SESSION_FILTER_FIELDS_H

/*
 * Which fields of a filter make sense for which kind of probe: one table, for sessions that clients
 * start and for queries. No state; any thread.
 */

#include "common/probe_kind.h"
#include "proto/wire.h"

struct wire_error;

/* Where the filter stands. A window keeps less than the programs can compare. */
enum filter_use {
	FILTER_OF_SESSION = 1 << 0,
	FILTER_OF_QUERY = 1 << 1,
};

/*
 * Refuses a filter with a field that this kind of probe has nothing for. 0, or -EINVAL with *error
 * filled, which names the kinds that have it. wire NULL: no filter.
 */
int filter_fields_check(const struct wire_filter *wire, enum probe_kind kind, enum filter_use use,
			struct wire_error *error);

#endif
