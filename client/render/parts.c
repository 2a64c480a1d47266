/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/render/parts.h"

#include <string.h>

static int64_t running_time(const struct wire_row *row)
{
	return row->total_ns;
}

static int64_t throttled_time(const struct wire_row *row)
{
	return row->throttled_ns == WIRE_ABSENT ? 0 : row->throttled_ns;
}

/*
 * Returns the runnable time of a row without the throttled time, which the daemon counts as
 * runnable and the overview shows separately.
 */
static int64_t runnable_time(const struct wire_row *row)
{
	return throttled_time(row) > row->runnable_ns || row->runnable_ns == WIRE_ABSENT
		       ? 0
		       : row->runnable_ns - throttled_time(row);
}

static int64_t blocked_time(const struct wire_row *row)
{
	return row->blocked_ns == WIRE_ABSENT ? 0 : row->blocked_ns;
}

const struct part parts[PARTS] = {
	{ "on CPU", running_time, "no samples", NULL, false },
	{ "runnable", runnable_time, "nobody waited for a CPU", "ready for a CPU; before: ", true },
	{ "throttled", throttled_time, NULL, "ready, without CPU quota; before: ", true },
	{ "blocked", blocked_time, "no waits but idle ones", NULL, true },
};

const struct wire_part *part_find(const struct wire_snapshot_reply *reply, const char *name)
{
	for (size_t i = 0; reply && i < reply->parts.n; i++)
		if (strcmp(reply->parts.v[i].name, name) == 0)
			return &reply->parts.v[i];
	return NULL;
}
