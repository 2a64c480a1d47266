/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_WINDOW_PRESSURE_H
#define STACKD_DAEMON_WINDOW_WINDOW_PRESSURE_H

/*
 * The pressure (PSI, see host/pressure.h) in one window or, as a sum, in several windows. Each
 * window has that of the host. Only the windows of one probe that is always on have that of the
 * units, because reading many files at the end of each window of each probe would cost too much. A
 * member of struct window; like that, it does not change once the window is made.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/host/pressure.h"

/* Says whether pressure was read and, if not, why. The numbers are in databases. */
enum pressure_state {
	PRESSURE_NOT_ASKED = 0, /* pressure was not read: the window was made by an older stackd, or
				   only windows of another probe have the pressure of units */
	PRESSURE_READ = 1,
	PRESSURE_NO_PSI = 2,	 /* the kernel has no PSI, or was booted with psi=0 */
	PRESSURE_NO_CGROUP2 = 3, /* units: no hierarchy of cgroup v2 is mounted */
	PRESSURE_UNREADABLE = 4, /* reading failed for another reason */
	PRESSURE_STATES,
};

/* The most units in one window, or in a sum over windows. Those with the least pressure go. */
enum { WINDOW_UNITS_MAX = 1024 };

/* A unit with pressure in the window; see pressure_read_units() for what counts as a unit. */
struct window_unit {
	char *path;
	struct pressure stalled; /* the unit's pressure within the window */
};

struct window_pressure {
	uint64_t ns;		 /* time from the reading before to the one at the window's end */
	struct pressure stalled; /* of the host, within that time */
	uint64_t units_ns;	 /* time between the two readings of the units, if they were read */
	uint32_t state;		 /* state of the host's pressure: enum pressure_state */
	uint32_t units_state;	 /* state of the pressure of units: enum pressure_state */
	uint64_t beyond;     /* number of units that were not read, because there were too many */
	uint64_t unreadable; /* number of units that could not be read */
	struct window_unit *units; /* sorted by path */
	size_t n_units;
};

/*
 * Adds the pressure of another window. Of `beyond` and `unreadable`, keeps the larger number,
 * because these are the same units in each window. Returns 0, or -ENOMEM with *sum unchanged.
 */
int window_pressure_add(struct window_pressure *sum, const struct window_pressure *other);

/*
 * Appends a unit, whose path must sort after those of the units before it. Takes over `path`, which
 * was allocated by malloc(), also on failure. Returns 0 or -ENOMEM.
 */
int window_pressure_add_unit(struct window_pressure *pressure, char *path,
			     const struct pressure *stalled);

/* Returns the memory that the data about units (control groups) takes, in bytes. */
size_t window_pressure_bytes(const struct window_pressure *pressure);
void window_pressure_fini(struct window_pressure *pressure);

/* Returns the sum of all of a unit's times, by which units are sorted. */
uint64_t pressure_sum_ns(const struct pressure *pressure);

/* Adds the times of *other to those of *sum. */
void pressure_add(struct pressure *sum, const struct pressure *other);

/*
 * Returns, in one phrase, why there is no pressure of the host, or of the units if is_of_units is
 * true; NULL if there is, or if it was not asked for.
 */
const char *pressure_state_text(uint32_t state, bool is_of_units);

#endif
