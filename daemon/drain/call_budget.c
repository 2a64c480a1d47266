/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/drain/call_budget.h"

#include "common/base.h"

/*
 * If a session exceeds its CPU budget on average for longer than this, it has to end. At that point
 * it already records as few calls as possible.
 */
#define OVER_MAX_NS (2 * NS_PER_S)

void call_budget_init(struct call_budget *budget, uint64_t budget_percent, uint64_t call_cost_ns,
		      uint64_t rate, int64_t now)
{
	*budget = (struct call_budget){
		.budget_percent = budget_percent,
		.call_cost_ns = call_cost_ns,
		.rate = rate,
		.every = 1,
		.every_for_load = 1,
		.last = { .time_ns = now },
	};
}

/*
 * Returns the new value of `every` (one call in `every` is recorded). If recording costs more than
 * the CPU budget, raises the value at once by as much as the cost requires. If recording costs less
 * than half of the budget, lowers the value in small steps, because the cost of recording more
 * calls is not known in advance.
 */
static uint64_t every_for_load(const struct call_budget *budget)
{
	uint64_t every = budget->every_for_load, wanted;

	if (budget->load_percent > budget->budget_percent) {
		wanted = every * (budget->load_percent + budget->budget_percent - 1) /
			 budget->budget_percent;
		return wanted > every ? wanted : every + 1;
	}
	if (budget->load_percent < budget->budget_percent / 2)
		return every - every / 4 - (every > 1);
	return every;
}

static uint64_t clamp_every(uint64_t every)
{
	if (every > CALL_BUDGET_EVERY_MAX)
		return CALL_BUDGET_EVERY_MAX;
	return every ? every : 1;
}

/*
 * Notes that a session cost `cost` ns in the `ns` up to now, in which it recorded one call in
 * `every`: what counts is what one call in CALL_BUDGET_EVERY_MAX would have cost. The average
 * counts: on a busy host the threads that make the calls are kept from their CPUs for some of the
 * intervals.
 */
static void note_over(struct call_budget *budget, uint64_t cost, uint64_t ns, uint64_t every)
{
	int64_t now = budget->last.time_ns;
	bool is_over_now = budget->load_percent > budget->budget_percent &&
			   budget->every == CALL_BUDGET_EVERY_MAX;

	cost = cost * every / CALL_BUDGET_EVERY_MAX;
	budget->over_ns += cost;
	if (budget->over_ns * 100 <=
	    budget->budget_percent * (uint64_t)(now - budget->over_since_ns))
		budget->over_since_ns = 0;
	if (!budget->over_since_ns && is_over_now) {
		budget->over_since_ns = now - (int64_t)ns;
		budget->over_ns = cost;
	}
	budget->is_over =
		budget->over_since_ns && is_over_now && now - budget->over_since_ns > OVER_MAX_NS;
}

void call_budget_update(struct call_budget *budget, const struct call_counts *now)
{
	uint64_t ns = (uint64_t)(now->time_ns - budget->last.time_ns);
	uint64_t calls = now->calls - budget->last.calls;
	uint64_t cost = now->run_ns - budget->last.run_ns + calls * budget->call_cost_ns;
	uint64_t wanted = now->wanted - budget->last.wanted, for_rate, every = budget->every;

	if (!ns)
		return;
	budget->last = *now;
	budget->calls_per_s = (uint64_t)((double)wanted * (double)NS_PER_S / (double)ns);
	budget->load_percent = cost * 100 / ns;
	for_rate = budget->rate ? budget->calls_per_s / budget->rate : 1;
	budget->every_for_load = clamp_every(every_for_load(budget));
	budget->every =
		clamp_every(for_rate > budget->every_for_load ? for_rate : budget->every_for_load);
	note_over(budget, cost, ns, every);
}
