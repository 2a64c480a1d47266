/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_DRAIN_COST_METER_H
#define STACKD_DAEMON_DRAIN_COST_METER_H

/*
 * Adds up what stackd costs: the CPU time of its threads, which the kernel counts, and that of its
 * BPF programs, which each drain adds for its own probe. One meter is shared by all drains; any
 * thread may call these functions.
 */

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "bpf/layout.h"

/* CPU time of BPF programs on all CPUs, in ns, and numbers of waits. */
struct cost_programs {
	uint64_t ns;	     /* of all programs */
	uint64_t session_ns; /* of this, by sessions that clients started */
	uint64_t walk_ns;    /* of this, walks of stacks of waits, by probes that are always on */
	uint64_t waits;	     /* number of waits that these probes recorded */
	uint64_t sampled;    /* of these, those that were recorded by chance */
	uint64_t braked;     /* short waits that only the brakes of CPUs left to chance */
	int64_t walks_at_ns; /* CLOCK_MONOTONIC: when walk_ns was last measured; 0: never */
};

struct cost_meter {
	_Atomic uint64_t bpf_ns;
	_Atomic uint64_t session_ns;
	_Atomic uint64_t walk_ns;
	_Atomic uint64_t waits;
	_Atomic uint64_t sampled;
	_Atomic uint64_t braked;
	_Atomic int64_t walks_at_ns;
	_Atomic uint64_t limit_ppm; /* see cost_meter_set() */
	_Atomic uint32_t shed;
	_Atomic bool is_beyond;
	/* CPU clock of the thread that waits for clients; 0: see cost_meter_answers() */
	_Atomic clockid_t answers;
	int64_t answers_from_ns;	    /* its CPU time from which on it counts */
	const _Atomic uint64_t *workers_ns; /* CPU time of worker processes; NULL: there are none */
};

/* Totals since the start, in ns of CPU time. */
struct cost_totals {
	int64_t at_ns;	 /* time of the reading, CLOCK_MONOTONIC */
	uint64_t cpu_ns; /* of the daemon's threads, of its workers and openers, and of its other
			    child processes that have ended */
	uint64_t children_ns; /* of cpu_ns, what is not of the daemon's threads */
	uint64_t answers_ns;  /* of cpu_ns, for answers to clients */
	struct cost_programs bpf;
};

/*
 * Returns how long the programs of a probe ran between two readings of their counters. Only some
 * runs were timed, so this is an estimate, except for walks of stacks and recorded calls.
 */
uint64_t cost_of_programs(const struct cpu_counts *now, const struct cpu_counts *before);

void cost_meter_add(struct cost_meter *meter, const struct cost_programs *programs);

/*
 * Counts what the calling thread takes from now on as time of answers: from now on, it does nothing
 * but wait for clients and send them answers. To be called once.
 */
void cost_meter_answers(struct cost_meter *meter);

/*
 * Stores what stackd may cost now, in millionths of one CPU (0: there is no limit), what it sheds
 * to keep within that: a bit for each enum window_shed, and whether the last minute cost more.
 */
void cost_meter_set(struct cost_meter *meter, uint64_t limit_ppm, uint32_t shed, bool is_beyond);

/* Return the values that were last set by cost_meter_set(). */
uint64_t cost_meter_limit(const struct cost_meter *meter);
uint32_t cost_meter_shed(const struct cost_meter *meter);
bool cost_meter_is_beyond(const struct cost_meter *meter);

void cost_meter_read(const struct cost_meter *meter, struct cost_totals *out);

#endif
