/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fleet/serve/limits.h"

#include <errno.h>
#include <inttypes.h>

#include "common/arena.h"
#include "fleet/serve/gateway.h"
#include "fleet/serve/groups.h"
#include "fleet/serve/headers.h"
#include "fleet/serve/internal.h"
#include "fleet/serve/slices.h"

/* `what` and `instead` are parts of the message: "more than 7 WHAT for one answer: INSTEAD". */
static const struct {
	const char *name, *unit, *what, *instead;
	int64_t value;
} table[FLEET_LIMITS] = {
	[FLEET_ANSWERS] = { "fleet.answers", NULL, "answers at once", "ask again later",
			    GATEWAY_ANSWERS_MAX },
	[FLEET_HEADERS] = { "fleet.windows", NULL, "windows of hosts",
			    "ask for a shorter range or for fewer hosts", HEADERS_MAX },
	[FLEET_GROUPS] = { "fleet.rows", NULL, "rows",
			   "ask for a shorter range, for fewer hosts, or by unit or host",
			   GROUPS_MAX },
	[FLEET_HOSTS] = { "fleet.hosts", NULL, "hosts of a filter",
			  "ask for fewer hosts, or for all", HOSTS_MAX },
	[FLEET_TWICE] = { "fleet.twice", NULL, "windows that were sent twice",
			  "ask for a shorter range or for fewer hosts", TWICE_MAX },
	[FLEET_QUERY] = { "fleet.query", "bytes", "bytes of a query",
			  "ask for a shorter range or for fewer hosts", QUERY_BYTES },
	[FLEET_SLICES] = { "fleet.slices", NULL, "slices",
			   "ask for longer slices or a shorter range", SLICES_MAX },
};

int fleet_limit_refuse(struct fleet_limits *limits, enum fleet_limit limit, const char *what,
		       struct wire_error *error)
{
	atomic_fetch_add(&limits->hits[limit], 1);
	return wire_error_set(error, -E2BIG, ERROR_NOT_SUPPORTED, what,
			      "more than %" PRId64 " %s for one answer: %s", table[limit].value,
			      table[limit].what, table[limit].instead);
}

int fleet_limits_list(const struct fleet_limits *limits, struct arena *arena,
		      struct wire_limits *out)
{
	struct wire_limit *v = arena_array(arena, FLEET_LIMITS, sizeof(*v));

	if (!v)
		return -ENOMEM;
	for (enum fleet_limit i = 0; i < FLEET_LIMITS; i++) {
		v[i] = (struct wire_limit){
			.name = table[i].name,
			.value = table[i].value,
			.hits = limits->hits[i],
			.unit = table[i].unit,
			.effect = arena_printf(arena, "questions with more were refused: %s",
					       table[i].instead),
		};
		if (!v[i].effect)
			return -ENOMEM;
	}
	v[FLEET_ANSWERS].used = limits->answers;
	*out = (struct wire_limits){ .v = v, .n = FLEET_LIMITS };
	return 0;
}
