/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/drain/call_budget.h"

#include "common/base.h"

/* So long over the budget, with almost nothing recorded, and a session ends. */
#define OVER_MAX_NS (2 * NS_PER_S)

void pace_init(struct pace *pace, uint64_t budget_percent, uint64_t call_cost_ns, uint64_t rate,
	       int64_t now)
{
	*pace = (struct pace){
		.budget_percent = budget_percent,
		.call_cost_ns = call_cost_ns,
		.rate = rate,
		.every = 1,
		.every_for_load = 1,
		.last = { .time_ns = now },
	};
}

/* Up at once as far as it takes, down in small steps: what is seen now is with this much recorded.
 */
static uint64_t every_for_load(const struct pace *pace)
{
	uint64_t every = pace->every_for_load, wanted;

	if (pace->load_percent > pace->budget_percent) {
		wanted = every * (pace->load_percent + pace->budget_percent - 1) /
			 pace->budget_percent;
		return wanted > every ? wanted : every + 1;
	}
	if (pace->load_percent < pace->budget_percent / 2)
		return every - every / 4 - (every > 1);
	return every;
}

static uint64_t clamp_every(uint64_t every)
{
	if (every > PACE_EVERY_MAX)
		return PACE_EVERY_MAX;
	return every ? every : 1;
}

void pace_update(struct pace *pace, const struct pace_counts *now)
{
	uint64_t ns = (uint64_t)(now->time_ns - pace->last.time_ns);
	uint64_t calls = now->calls - pace->last.calls;
	uint64_t cost = now->run_ns - pace->last.run_ns + calls * pace->call_cost_ns;
	uint64_t wanted = now->wanted - pace->last.wanted, for_rate;

	if (!ns)
		return;
	pace->last = *now;
	pace->calls_per_s = (uint64_t)((double)wanted * (double)NS_PER_S / (double)ns);
	pace->load_percent = cost * 100 / ns;
	for_rate = pace->rate ? pace->calls_per_s / pace->rate : 1;
	pace->every_for_load = clamp_every(every_for_load(pace));
	pace->every =
		clamp_every(for_rate > pace->every_for_load ? for_rate : pace->every_for_load);
	if (pace->load_percent <= pace->budget_percent || pace->every < PACE_EVERY_MAX)
		pace->over_since_ns = 0;
	else if (!pace->over_since_ns)
		pace->over_since_ns = now->time_ns;
	pace->is_over = pace->over_since_ns && now->time_ns - pace->over_since_ns > OVER_MAX_NS;
}
