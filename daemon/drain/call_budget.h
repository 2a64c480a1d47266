/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_DRAIN_CALL_BUDGET_H
#define STACKD_DAEMON_DRAIN_CALL_BUDGET_H

/*
 * Keeps a session of calls within its CPU budget: takes the session's counters ten times a second
 * and decides that one in `every` calls is recorded; raises is_over if even the fewest recorded
 * calls cost too much. Owned by the drain, used on its thread only.
 */

#include <stdbool.h>
#include <stdint.h>

enum { CALL_BUDGET_EVERY_MAX = 1024 };

#define CALL_BUDGET_TICK_NS INT64_C(100000000)

struct call_counts {
	int64_t time_ns;
	uint64_t calls;
	uint64_t wanted; /* the calls that match the session's filter */
	uint64_t run_ns; /* time spent in the programs */
};

struct call_budget {
	uint64_t budget_percent; /* percent of one CPU */
	uint64_t call_cost_ns;	 /* cost of reaching a program, which run_ns does not contain */
	uint64_t rate;		 /* calls streamed per second; 0: none are streamed */
	struct call_counts last;
	uint64_t every;
	uint64_t every_for_load; /* what the budget alone demands; `rate` may demand more */
	uint64_t calls_per_s;	 /* matching calls per second, since the last update */
	uint64_t load_percent;
	int64_t over_since_ns; /* since when it is over the budget at CALL_BUDGET_EVERY_MAX; 0: not
				*/
	bool is_over;	       /* for too long: the session has to end */
};

void call_budget_init(struct call_budget *budget, uint64_t budget_percent, uint64_t call_cost_ns,
		      uint64_t rate, int64_t now);

/* Updates the decision from the counters. Call at least CALL_BUDGET_TICK_NS after the last time. */
void call_budget_update(struct call_budget *budget, const struct call_counts *now);

#endif
