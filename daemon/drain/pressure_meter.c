/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/drain/pressure_meter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/host/cgroup.h"

struct pressure_meter {
	char host_dir[256];
	char cgroup_dir[512]; /* "": cgroup v2 is not mounted */
	bool with_units;
	bool has_units;		     /* the last reading skipped no unit, so `units` lacks none */
	int64_t at_ns;		     /* time of the last reading, CLOCK_MONOTONIC; 0: none yet */
	int64_t units_ns;	     /* the same for units */
	struct pressure host;	     /* the host's totals at the last reading */
	struct pressure_units units; /* the units' totals at the last reading */
	struct pressure_stats stats;
};

int pressure_meter_new(const struct pressure_meter_options *options, struct pressure_meter **out)
{
	struct pressure_meter *meter = calloc(1, sizeof(*meter));

	if (!meter)
		return -ENOMEM;
	meter->with_units = options->with_units;
	snprintf(meter->host_dir, sizeof(meter->host_dir), "%s",
		 options->host_dir ? options->host_dir : "/proc/pressure");
	if (options->cgroup_dir)
		snprintf(meter->cgroup_dir, sizeof(meter->cgroup_dir), "%s", options->cgroup_dir);
	else if (options->with_units)
		cgroup_mount(meter->cgroup_dir, sizeof(meter->cgroup_dir));
	*out = meter;
	return 0;
}

struct pressure_meter *pressure_meter_free(struct pressure_meter *meter)
{
	if (!meter)
		return NULL;
	pressure_units_fini(&meter->units);
	free(meter);
	return NULL;
}

static void subtract(struct pressure *totals, const struct pressure *before)
{
	int i;

	for (i = 0; i < PRESSURE_N; i++) {
		totals->some_ns[i] -= before->some_ns[i];
		totals->full_ns[i] -= before->full_ns[i];
	}
}

/*
 * True if none of the totals is lower than before. Totals of the kernel never fall, so `before` is
 * of another control group if one is lower.
 */
static bool has_grown(const struct pressure *totals, const struct pressure *before)
{
	int i;

	for (i = 0; i < PRESSURE_N; i++)
		if (totals->some_ns[i] < before->some_ns[i] ||
		    totals->full_ns[i] < before->full_ns[i])
			return false;
	return true;
}

static uint32_t host_read(const struct pressure_meter *meter, struct pressure *out)
{
	_cleanup_(closep) int fd = open(meter->host_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 ? -errno : pressure_read(fd, "", out);

	return !r				  ? PRESSURE_READ
	       : r == -ENOENT || r == -EOPNOTSUPP ? PRESSURE_NO_PSI
						  : PRESSURE_UNREADABLE;
}

static void host_measure(struct pressure_meter *meter, struct window_pressure *out)
{
	struct pressure now, stalled;
	uint32_t state = host_read(meter, &now);
	int64_t at = clock_ns(CLOCK_MONOTONIC);

	out->state = meter->stats.state = state;
	if (state != PRESSURE_READ) {
		meter->at_ns = 0;
		return;
	}
	if (meter->at_ns && has_grown(&now, &meter->host)) {
		stalled = now;
		subtract(&stalled, &meter->host);
		out->stalled = stalled;
		out->ns = (uint64_t)(at - meter->at_ns);
	}
	meter->host = now;
	meter->at_ns = at;
}

static int compare_path(const void *path, const void *unit)
{
	return strcmp(path, ((const struct pressure_unit *)unit)->path);
}

/*
 * Sets *stalled to the pressure of a unit since the last reading. If the last reading did not find
 * the unit, the unit is new, and its totals are its pressure since then. Returns false if the
 * pressure is not known: the last reading left out some units, perhaps this one, or a total is now
 * lower than it was.
 */
static bool unit_stalled(const struct pressure_meter *meter, const struct pressure_unit *unit,
			 struct pressure *stalled)
{
	const struct pressure_unit *before = NULL;

	if (meter->units.n)
		before = bsearch(unit->path, meter->units.v, meter->units.n,
				 sizeof(*meter->units.v), compare_path);
	*stalled = unit->totals;
	if (!before || before->id != unit->id)
		return before || meter->has_units;
	if (!has_grown(&unit->totals, &before->totals))
		return false;
	subtract(stalled, &before->totals);
	return true;
}

static void units_put(const struct pressure_meter *meter, const struct pressure_units *units,
		      struct window_pressure *out)
{
	struct pressure stalled;
	char *path;
	size_t i;

	for (i = 0; i < units->n; i++) {
		if (!unit_stalled(meter, &units->v[i], &stalled) || !pressure_sum_ns(&stalled))
			continue;
		path = strdup(units->v[i].path);
		if (!path || window_pressure_add_unit(out, path, &stalled))
			return;
	}
}

static uint32_t units_state(const struct pressure_meter *meter, const struct pressure_units *units,
			    int r)
{
	if (!meter->cgroup_dir[0])
		return PRESSURE_NO_CGROUP2;
	if (r)
		return PRESSURE_UNREADABLE;
	/*
	 * Without PSI (pressure stall information) in the kernel, control groups have no files with
	 * the pressure.
	 */
	if (!units->n && units->unreadable)
		return meter->stats.state == PRESSURE_NO_PSI ? PRESSURE_NO_PSI
							     : PRESSURE_UNREADABLE;
	return PRESSURE_READ;
}

static void units_measure(struct pressure_meter *meter, size_t max, struct window_pressure *out)
{
	struct pressure_units units = {};
	int64_t at;
	int r = meter->cgroup_dir[0] ? pressure_read_units(meter->cgroup_dir, max, &units) : 0;

	at = clock_ns(CLOCK_MONOTONIC);
	out->units_state = units_state(meter, &units, r);
	out->beyond = units.beyond;
	out->unreadable = units.unreadable;
	if (out->units_state == PRESSURE_READ && meter->units_ns) {
		units_put(meter, &units, out);
		out->units_ns = (uint64_t)(at - meter->units_ns);
	}
	pressure_units_fini(&meter->units);
	meter->units = units;
	meter->has_units = !r && !units.beyond && !units.unreadable;
	meter->units_ns = out->units_state == PRESSURE_READ ? at : 0;
	meter->stats.units_state = out->units_state;
	meter->stats.units = units.n;
	meter->stats.beyond = units.beyond;
	meter->stats.unreadable = units.unreadable;
}

void pressure_meter_read(struct pressure_meter *meter, size_t max_units,
			 struct window_pressure *out)
{
	const int64_t begin = clock_ns(CLOCK_MONOTONIC);

	host_measure(meter, out);
	if (meter->with_units && max_units)
		units_measure(meter, max_units, out);
	meter->stats.took_ns = clock_ns(CLOCK_MONOTONIC) - begin;
}

void pressure_meter_stats(const struct pressure_meter *meter, struct pressure_stats *out)
{
	*out = meter->stats;
}
