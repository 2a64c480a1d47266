/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SESSION_BUDGET_H
#define STACKD_DAEMON_SESSION_BUDGET_H

/*
 * Keeps stackd within the setting [budget] cpu: measures once a second what stackd costs, lets the
 * governor decide, and tells the always-on probes how much to record. What answering
 * clients costs does not count (see daemon/base/answer_time.h), so that no client can take away
 * from what is recorded; neither do sessions that clients start, which have a limit of their own.
 * Owned by the recorder.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/session/governor.h"
#include "daemon/window/window.h"

struct budget;
struct config;
struct cost_meter;
struct process_table;
struct sessions;

/* All pointers are borrowed and must outlive the budget. */
struct budget_options {
	const struct config *config; /* a reload may change the budget */
	struct sessions *sessions;
	struct cost_meter *cost;
	struct process_table *processes;
};

struct budget_state {
	uint64_t limit_ppm;	   /* in millionths of one CPU; 0: there is no limit */
	uint64_t asked_ppm;	   /* what the setting says, which may be less */
	struct governor_cost cost; /* as last measured; all 0 before the first measurement */
	/*
	 * the length below which the probe offcpu records waits by chance because more would cost
	 * too much; 0: it records all that the settings ask for
	 */
	uint64_t sample_below_ns;
	/* number of short waits since the start that only the brakes of CPUs left to chance */
	uint64_t braked;
	int64_t sampled_since_ns; /* CLOCK_REALTIME: since when; 0: it is not so */
	/* by enum window_shed, CLOCK_REALTIME: since when this is not recorded; 0: it is */
	int64_t shed_since_ns[WINDOW_SHED_N];
	unsigned int sample_every; /* oncpu records one sample of this number */
	/* see process_stats.put_off: number of processes since the start */
	uint64_t put_off;
	bool has_minute;	     /* `minute` is known: a start is over */
	struct governor_cost minute; /* what was cost in the last minute */
	uint64_t burst_ppm;	     /* of that, what [budget] burst allowed above the budget */
	/* CLOCK_REALTIME: since when that was clearly more than the budget; 0: it is not */
	int64_t beyond_since_ns;
};

/* Makes the budget. Returns 0 or -ENOMEM. */
int budget_new(const struct budget_options *options, struct budget **out);
struct budget *budget_free(struct budget *budget);

/* To be called once a second, by one thread. */
void budget_tick(struct budget *budget);

/* Copies the present state to *out. Any thread. NULL is allowed: there is no limit then. */
void budget_state(struct budget *budget, struct budget_state *out);

#endif
