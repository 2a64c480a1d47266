/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SESSION_GOVERNOR_H
#define STACKD_DAEMON_SESSION_GOVERNOR_H

/*
 * Decides how much stackd records so that it keeps within its CPU budget. Takes measurements of
 * what stackd cost, and gives a level: 0 is everything, each level above costs less. The first
 * levels double the length below which waits are sampled; the others shed what costs most and is
 * missed least. Has no clock and touches nothing: the caller measures, and applies the level. One
 * thread.
 *
 * A level is raised at once when the cost of the last interval is over the budget, by as much as
 * the excess asks for. It is lowered by one only after a time in which the cost was so low that it
 * would be within the budget even if it doubled, as the next level can do no more than that.
 * Therefore the level does not swing between two values if the load is steady.
 */

#include <stdbool.h>
#include <stdint.h>

/* What is shed above the levels that only sample waits, in the order in which it is shed. */
enum governor_shed {
	GOVERNOR_HZ_HALF, /* the frequency of the samples on CPU is halved */
	GOVERNOR_HZ_QUARTER,
	GOVERNOR_HZ_EIGHTH,
	GOVERNOR_CALLS,	 /* iolat records no layer in which each call costs time */
	GOVERNOR_FRAMES, /* stacks have at most 32 frames */
	GOVERNOR_NAMES,	 /* files of processes that live less than a second have no names */
	GOVERNOR_SHEDS,
};

enum {
	GOVERNOR_DOUBLINGS = 10, /* the highest limit of sampling is 1024 times the lowest */
	GOVERNOR_LEVEL_MAX = GOVERNOR_DOUBLINGS + GOVERNOR_SHEDS,
};

struct governor_options {
	uint64_t budget_ppm; /* of all online CPUs, in parts per million */
	uint64_t floor_ns;   /* the lowest length below which waits are sampled, if they are */
};

/* Totals since any time. */
struct governor_reading {
	int64_t at_ns;	   /* CLOCK_MONOTONIC */
	uint64_t cpu_ns;   /* CPU time of stackd and its BPF programs */
	unsigned int cpus; /* number of CPUs online */
};

struct governor {
	struct governor_options options;
	struct governor_reading last;
	bool has_last;
	unsigned int level;
	int64_t since_ns;      /* time since which the level is not 0 */
	int64_t calm_since_ns; /* time since which the cost has been low; 0: it is not */
	int64_t raised_ns;     /* time at which the level was last raised */
	int64_t lowered_ns;    /* time at which the level was last lowered */
	int64_t calm_ns;       /* how long the cost must be low before the level is lowered */
	uint64_t cost_ppm;     /* of one CPU, in the last interval */
	uint64_t limit_ppm;    /* of one CPU */
	uint64_t raised;       /* number of times that the level was raised */
};

/*
 * Returns the budget in parts per million of one CPU, from that of all CPUs. It is never less than
 * 4 % of one CPU.
 */
uint64_t governor_limit(uint64_t budget_ppm, unsigned int cpus);

void governor_init(struct governor *governor, const struct governor_options *options);

/*
 * Takes a reading. To be called at intervals of GOVERNOR_TICK_NS or more; a reading that comes
 * earlier, or after a gap, or whose totals or time go back, only begins a new interval. Returns
 * true if the level has changed.
 */
bool governor_update(struct governor *governor, const struct governor_reading *now);

#define GOVERNOR_TICK_NS INT64_C(250000000)

/* Returns the length in ns below which waits are sampled at this level. */
uint64_t governor_sample_below(const struct governor *governor);

/* True if this is shed at this level. */
bool governor_sheds(const struct governor *governor, enum governor_shed shed);

/* Returns by what the frequency of samples is divided at this level. */
unsigned int governor_hz_divisor(const struct governor *governor);

#endif
