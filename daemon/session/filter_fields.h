/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SESSION_FILTER_FIELDS_H
#define STACKD_DAEMON_SESSION_FILTER_FIELDS_H

/*
 * Checks that the fields of a filter make sense for a kind of probe. One table has the rules for
 * filters of sessions and of queries. No state; any thread.
 */

#include "common/probe_kind.h"
#include "proto/wire.h"

struct wire_error;

/* Says which request has the filter: the start of a session, or a query. Fewer fields are allowed
 * in a query, because windows do not keep everything that BPF programs can compare. */
enum filter_use {
	FILTER_OF_SESSION = 1 << 0,
	FILTER_OF_QUERY = 1 << 1,
};

/*
 * Refuses a filter that sets a field which this kind of probe does not allow. Returns 0, or -EINVAL
 * with *error filled, which names the kinds that allow the field. `wire` is NULL if there is no
 * filter.
 */
int filter_fields_check(const struct wire_filter *wire, enum probe_kind kind, enum filter_use use,
			struct wire_error *error);

#endif
