/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SESSION_GOVERNOR_H
#define STACKD_DAEMON_SESSION_GOVERNOR_H

/*
 * Decides how many waits are recorded with their stacks so that stackd keeps within its CPU budget.
 * Takes measurements of what stackd cost, and gives a level. At level 0, all waits are recorded for
 * which the settings ask. Each level above doubles the length below which waits are recorded by
 * chance only, see bpf/sample.h. Has no clock and touches nothing: the caller measures, and applies
 * the level. One thread.
 *
 * The cost has three parts. Walks of stacks are what a level changes. The hooks (the rest of the
 * programs in the kernel) and stackd's threads cost what they cost, and walks are allowed what
 * these leave of the budget, but never less than a quarter of it: otherwise nothing would be
 * recorded where the hooks alone take the whole budget.
 *
 * A level is raised at once when walks cost more than they may, by as much as the excess asks for.
 * It is lowered by one only after a time in which walks cost so little that they would be within
 * their limit even if those recorded by chance doubled, as the next level can do no more than that.
 * Therefore the level does not swing between two values if the load is steady.
 */

#include <stdbool.h>
#include <stdint.h>

/* At the highest level, the length is 1024 times the lowest. */
enum { GOVERNOR_LEVEL_MAX = 10 };

/* Two readings must be this far apart. */
#define GOVERNOR_TICK_NS INT64_C(900000000)

/* Totals since any time. */
struct governor_reading {
	int64_t at_ns;	   /* CLOCK_MONOTONIC */
	uint64_t walk_ns;  /* CPU time of walks of stacks, in the BPF programs */
	uint64_t hook_ns;  /* CPU time of all else in the BPF programs */
	uint64_t user_ns;  /* CPU time of stackd's threads and processes */
	uint64_t waits;	   /* number of waits recorded with their stacks */
	uint64_t sampled;  /* of these, those that were recorded by chance */
	unsigned int cpus; /* number of CPUs online */
};

/* CPU times of an interval, in millionths of one CPU. */
struct governor_cost {
	uint64_t walk_ppm;
	uint64_t hook_ppm;
	uint64_t user_ppm; /* an average of the last intervals */
};

struct governor {
	uint64_t budget_ppm; /* of all online CPUs, in millionths */
	struct governor_reading last;
	bool has_last;
	unsigned int level;
	struct governor_cost cost;
	uint64_t next_ppm;	 /* the most that walks would cost at the next lower level */
	uint64_t limit_ppm;	 /* the budget, in millionths of one CPU */
	uint64_t allowed_ppm;	 /* what walks may cost, in millionths of one CPU */
	int64_t calm_since_ns;	 /* time since which walks have cost little; 0: they do not */
	int64_t raised_ns;	 /* time at which the level was last raised */
	int64_t lowered_ns;	 /* time at which the level was last lowered */
	int64_t calm_ns;	 /* how long walks must cost little before the level is lowered */
	unsigned int steps;	 /* by how much the level was last raised */
	uint64_t raised_for_ppm; /* cost of walks when the level was last raised */
	uint64_t raised;	 /* number of times that the level was raised */
	/*
	 * True if the hooks and threads alone cost more than the budget, for some time: the budget
	 * cannot be kept, whatever the level is.
	 */
	bool is_beyond;
	int64_t beyond_since_ns; /* time since which that is to change; 0: it is not */
};

/*
 * Returns the budget in millionths of one CPU, from that of all CPUs. It is never less than 4 % of
 * one CPU.
 */
uint64_t governor_limit(uint64_t budget_ppm, unsigned int cpus);

void governor_init(struct governor *governor, uint64_t budget_ppm);

/*
 * Takes a reading. One that comes too early is ignored. One that comes after a gap, or whose totals
 * or time go back, only begins a new interval. Returns true if `level` or `is_beyond` has changed.
 */
bool governor_update(struct governor *governor, const struct governor_reading *now);

/*
 * Returns the length in ns below which waits are recorded by chance at a level, from that of level
 * 0. 0: there is no such length.
 */
uint64_t governor_sample_below(unsigned int level, uint64_t floor_ns);

#endif
