/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/session/memory_budget.h"

/*
 * Windows keep at least 1 / LEAST_SHARE of [window] max_memory. The limit is raised by half of what
 * is free of the budget, and only while that is 1 / SPARE_SHARE of it: more would be used up at
 * once, and the limit would go up and down. It is lowered by at most 1 / STEP_SHARE of max_memory,
 * because more memory than that of the windows becomes free, but only later: that of their stacks.
 */
enum { LEAST_SHARE = 4, SPARE_SHARE = 16, STEP_SHARE = 16 };

/*
 * Windows take up to 1 / LATE_SHARE more than their limit for a while after it was lowered, because
 * few of them make room at a time. The limit is not lowered again before they have.
 */
enum { LATE_SHARE = 16 };

static size_t lower(size_t value, size_t by, size_t least)
{
	return value > by && value - by > least ? value - by : least;
}

/* Returns the new limit, given the least of the last readings. */
static size_t limit_decide(const struct memory_budget *budget, const struct memory_reading *reading)
{
	const size_t most = reading->most, least = most / LEAST_SHARE;
	const size_t limit = budget->limit;
	const size_t used = reading->windows < limit ? reading->windows : limit;
	size_t spare, excess;

	if (budget->least > reading->budget) {
		if (reading->windows > limit + limit / LATE_SHARE)
			return limit;
		excess = budget->least - reading->budget;
		return lower(used, excess < most / STEP_SHARE ? excess : most / STEP_SHARE, least);
	}
	spare = reading->budget - budget->least;
	if (spare < reading->budget / SPARE_SHARE)
		return limit;
	return most - limit > spare / 2 ? limit + spare / 2 : most;
}

size_t memory_budget_update(struct memory_budget *budget, const struct memory_reading *reading)
{
	size_t limit;

	if (!budget->limit || budget->limit > reading->most)
		budget->limit = reading->most;
	if (budget->limit < reading->most / LEAST_SHARE)
		budget->limit = reading->most / LEAST_SHARE;
	if (!budget->n || reading->rss < budget->least)
		budget->least = reading->rss;
	if (++budget->n < MEMORY_READINGS)
		return budget->limit;
	limit = limit_decide(budget, reading);
	budget->lowered += limit < budget->limit;
	budget->limit = limit;
	budget->n = 0;
	return limit;
}
