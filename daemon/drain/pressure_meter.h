/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_DRAIN_PRESSURE_METER_H
#define STACKD_DAEMON_DRAIN_PRESSURE_METER_H

/*
 * Measures the pressure (PSI) in each window: reads the kernel's totals at the end of a window and
 * subtracts those that it read at the end of the window before. Owned by a drain and used on its
 * thread only.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/window/window_pressure.h"

struct pressure_meter;

struct pressure_meter_options {
	const char *host_dir;	/* directory with the host's pressure files; NULL: /proc/pressure */
	const char *cgroup_dir; /* where cgroup v2 is mounted; NULL: look it up */
	bool with_units;	/* also measure the pressure of units */
};

struct pressure_stats {
	uint32_t state;	      /* of the host, at the last reading: enum pressure_state */
	uint32_t units_state; /* state of the pressure of units at the last reading: enum
				 pressure_state */
	uint64_t units;	      /* number of units that were read */
	uint64_t beyond;      /* number of units that were not read, because there were too many */
	uint64_t unreadable;  /* number of units that could not be read */
	int64_t took_ns;      /* how long the last reading took */
};

/* Makes a meter. 0, or -ENOMEM. */
int pressure_meter_new(const struct pressure_meter_options *options, struct pressure_meter **out);
struct pressure_meter *pressure_meter_free(struct pressure_meter *meter);

/*
 * Reads the totals of the host, and of at most max_units units. Sets *out, which must be empty, to
 * the pressure since the previous call. *out lists only units with pressure. The first call only
 * begins the first window: of *out, it sets only whether the pressure can be read. When memory is
 * short, *out has fewer units.
 */
void pressure_meter_read(struct pressure_meter *meter, size_t max_units,
			 struct window_pressure *out);

/* Copies the facts about the last reading. */
void pressure_meter_stats(const struct pressure_meter *meter, struct pressure_stats *out);

#endif
