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
 *
 * If all costs more than the budget although walks cost no more than they may, other details are
 * shed, in the order of enum governor_step: as soon as the CPU time above the budget, less what was
 * below it since, is what the budget allows in some seconds. The more is missing, the more steps
 * are taken at once. When all costs clearly less than the budget for some seconds, the last step is
 * taken back. That time grows, up to a limit, each time that a step which was taken back is needed
 * again soon.
 *
 * What all cost below the budget is saved for bursts while nothing is sampled or shed: as long as
 * some is left, all may cost `burst` times the budget, and walks what the rest leaves of that. So a
 * burst keeps its stacks. A storm does not: once it has spent what was saved, the budget is what it
 * is, and nothing is saved until all is recorded again.
 *
 * The budget is an average over a minute. Where that is broken in spite of all this, as walks keep
 * their quarter, or spikes come again and again, `is_beyond` says so.
 */

#include <stdbool.h>
#include <stdint.h>

/* The steps, in the order in which they are taken. Each adds to those before. */
enum governor_step {
	GOVERNOR_ALL,	       /* nothing is shed */
	GOVERNOR_HALF_SAMPLES, /* oncpu records one of 2 samples */
	GOVERNOR_QUARTER_SAMPLES,
	GOVERNOR_EIGHTH_SAMPLES,
	GOVERNOR_NO_CALLS,   /* iolat records only requests to disks */
	GOVERNOR_FEW_FRAMES, /* user stacks have at most 32 frames */
	GOVERNOR_NO_BRIEF,   /* processes are read only when they have lived for a second */
	GOVERNOR_STEPS,
};

/*
 * At the highest level, the length is 8192 times the lowest: 0.8 s instead of 100 us. The walks of
 * recorded waits then take little of a CPU, however many threads wait: each second of short waits
 * of a thread leads to about one walk.
 */
enum { GOVERNOR_LEVEL_MAX = 13 };

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
	/* time at which walk_ns was last measured, CLOCK_MONOTONIC; 0: no probe of waits is on */
	int64_t walks_at_ns;
};

/* CPU times of an interval, in millionths of one CPU. */
struct governor_cost {
	uint64_t walk_ppm;
	uint64_t hook_ppm;
	uint64_t user_ppm; /* an average of the last intervals */
};

/* The readings of the last minute that are kept: one each ten seconds, and the one before them. */
enum { GOVERNOR_MARKS = 7 };

struct governor_mark {
	struct governor_reading reading;
	double spent; /* see struct governor */
};

struct governor {
	uint64_t budget_ppm; /* of all online CPUs, in millionths */
	unsigned int burst;  /* times the budget that all may cost in a burst; 0, 1: no more */
	struct governor_reading last;
	bool has_last;
	struct governor_reading measured; /* the last one with a new measurement of the programs */
	bool is_measured;		  /* the last reading had one */
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
	int64_t averaged_ns;	 /* length of the time over which cost.user_ppm is an average */
	enum governor_step step;
	unsigned int taken;	/* how many steps were last taken; 0: one was taken back since */
	int64_t stepped_ns;	/* time at which steps were last taken or one was taken back */
	int64_t restored_ns;	/* time at which a step was last taken back; 0: never */
	int64_t under_since_ns; /* time since which all costs clearly less; 0: it does not */
	int64_t restore_ns;	/* how long all must cost less before a step is taken back */
	double debt;		/* CPU time above the budget that was not paid back since, in us */
	bool is_over;		/* the debt has grown since the last reading */
	int64_t debt_since_ns;	/* the last reading before the debt began */
	uint64_t debt_user_ns;	/* user_ns of that reading */
	double saved;		/* CPU time that bursts may spend above the budget, in us */
	double spent;		/* CPU time that they have spent since the start, in us */
	int64_t first_ns;	/* time of the first reading; 0: there was none */
	struct governor_mark marks[GOVERNOR_MARKS]; /* the newest first */
	unsigned int n_marks;
	bool has_minute; /* `minute` is known: marks[] spans one, and the start is over */
	struct governor_cost minute; /* what was cost in the last minute, on average */
	uint64_t burst_ppm;	     /* of that, what bursts spent above the budget */
	bool is_beyond;		     /* the rest was clearly more than the budget */
};

/* Returns the sum of the parts of a cost. */
uint64_t governor_cost_sum(const struct governor_cost *cost);

/*
 * Returns the budget in millionths of one CPU, from that of all CPUs. It is never less than 4 % of
 * one CPU.
 */
uint64_t governor_limit(uint64_t budget_ppm, unsigned int cpus);

/*
 * Returns the share of each CPU that walks may take within milliseconds, see bpf/brake.h, from what
 * they may take on all CPUs, in millionths of one CPU: twice the CPU's part of that, but at least
 * 4 % of the CPU, and at most all of it.
 */
uint32_t governor_brake_share(uint64_t allowed_ppm, unsigned int cpus);

void governor_init(struct governor *governor, uint64_t budget_ppm);

/*
 * Takes a reading. One that comes too early is ignored. One that comes after a gap, whose walks
 * were not measured for some seconds, or whose totals or time go back, only begins a new interval.
 * Returns true if `level` or `step` has changed.
 */
bool governor_update(struct governor *governor, const struct governor_reading *now);

/* Returns of how many samples oncpu records one at a step; 1: it records all. */
unsigned int governor_sample_every(enum governor_step step);

/*
 * Returns the length in ns below which waits are recorded by chance at a level, from that of level
 * 0. 0: there is no such length.
 */
uint64_t governor_sample_below(unsigned int level, uint64_t floor_ns);

/*
 * Returns the length in ns below which the stacks of slow operations are recorded by chance, from
 * that of waits, waits_below_ns: the same, if that is above slow_ns, from which on an operation is
 * slow, and above setting_ns, the length for which the settings ask (0: none). 0: there is none.
 */
uint64_t governor_sample_slow(uint64_t waits_below_ns, uint64_t slow_ns, uint64_t setting_ns);

#endif
