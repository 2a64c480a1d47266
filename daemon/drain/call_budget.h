/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_DRAIN_CALL_BUDGET_H
#define STACKD_DAEMON_DRAIN_CALL_BUDGET_H

/*
 * What a session of calls may cost: in come its counts as they grow, out comes one in how many
 * calls is recorded, and whether even that is too much. Owned by the drain, its thread only.
 */

#include <stdbool.h>
#include <stdint.h>

enum { CALL_BUDGET_EVERY_MAX = 1024 };

#define CALL_BUDGET_TICK_NS INT64_C(100000000)

struct call_counts {
	int64_t time_ns;
	uint64_t calls;
	uint64_t wanted; /* of these, by the session's filter */
	uint64_t run_ns; /* spent in the programs */
};

struct call_budget {
	uint64_t budget_percent; /* of one CPU */
	uint64_t call_cost_ns;	 /* of reaching a program, which it does not see itself */
	uint64_t rate;		 /* calls streamed a second; 0: none are */
	struct call_counts last;
	uint64_t every;
	uint64_t every_for_load; /* what of it is for the budget's sake */
	uint64_t calls_per_s;	 /* wanted, lately */
	uint64_t load_percent;
	int64_t over_since_ns; /* over the budget at the least that is possible; 0: not */
	bool is_over;	       /* for so long that it has to end */
};

void call_budget_init(struct call_budget *budget, uint64_t budget_percent, uint64_t call_cost_ns,
		      uint64_t rate, int64_t now);

/* At least CALL_BUDGET_TICK_NS after the last time. */
void call_budget_update(struct call_budget *budget, const struct call_counts *now);

#endif
