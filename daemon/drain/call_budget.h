/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_DRAIN_CALL_BUDGET_H
#define STACKD_DAEMON_DRAIN_CALL_BUDGET_H

/*
 * Keeps a session that records calls (stackcount, stacksnoop) within its CPU budget. Reads the
 * session's counters ten times a second and sets `every`: one call in `every` is recorded. Sets
 * is_over if even the highest value of `every` costs too much. Owned by the drain, used on its
 * thread only.
 */

#include <stdbool.h>
#include <stdint.h>

enum { CALL_BUDGET_EVERY_MAX = 1024 };

#define CALL_BUDGET_TICK_NS INT64_C(100000000)

struct call_counts {
	int64_t time_ns;
	uint64_t calls;
	uint64_t wanted; /* number of calls that match the session's filter */
	uint64_t run_ns; /* time spent in the BPF programs, in ns */
};

struct call_budget {
	uint64_t budget_percent; /* budget of the session, in percent of one CPU */
	uint64_t call_cost_ns;	 /* time per call that the kernel takes to get to the BPF program;
				    run_ns does not include it */
	uint64_t rate; /* maximum number of calls to stream per second; 0: calls are not streamed */
	struct call_counts last;
	uint64_t every; /* one call in `every` is recorded */
	/*
	 * the value of `every` that the CPU budget alone requires; `every` is higher if `rate`
	 * requires it
	 */
	uint64_t every_for_load;
	uint64_t calls_per_s; /* number of calls per second that match the filter, as of the last
				 update */
	uint64_t load_percent;
	/*
	 * time since which the session exceeds its budget on average, although `every` had its
	 * maximum then, and what it cost since, in ns; 0: it does not exceed it
	 */
	int64_t over_since_ns;
	uint64_t over_ns;
	bool is_over; /* true if the session has exceeded its budget for too long and has to end */
};

void call_budget_init(struct call_budget *budget, uint64_t budget_percent, uint64_t call_cost_ns,
		      uint64_t rate, int64_t now);

/*
 * Updates `every` and is_over from the counters. To be called at intervals of CALL_BUDGET_TICK_NS
 * or more.
 */
void call_budget_update(struct call_budget *budget, const struct call_counts *now);

#endif
