/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/answer_pressure.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/session/recorder.h"
#include "daemon/window/window_pressure.h"

/* The maximum number of units in a reply, which is limited in size. */
enum { UNITS_MAX = 64, PPM = 1000000 };

static int64_t ppm_of(uint64_t part, uint64_t whole)
{
	return whole ? (int64_t)((double)part / (double)whole * PPM + 0.5) : 0;
}

static struct wire_stall stall_make(const struct pressure *stalled, enum pressure_resource resource,
				    uint64_t length_ns)
{
	return (struct wire_stall){
		.some_ns = (int64_t)stalled->some_ns[resource],
		.full_ns = (int64_t)stalled->full_ns[resource],
		.some_ppm = ppm_of(stalled->some_ns[resource], length_ns),
		.full_ppm = ppm_of(stalled->full_ns[resource], length_ns),
	};
}

/* Returns the highest share of time for which the unit stalled, of all resources. */
static uint64_t most_ns(const struct window_unit *unit)
{
	uint64_t most = 0;
	int i;

	for (i = 0; i < PRESSURE_N; i++)
		if (unit->stalled.some_ns[i] > most)
			most = unit->stalled.some_ns[i];
	return most;
}

/* Compares units for qsort(): the one that stalled for longest comes first. */
static int compare_units(const void *a, const void *b)
{
	const struct window_unit *const *x = a, *const *y = b;
	uint64_t first = most_ns(*x), second = most_ns(*y);

	return first != second ? (first < second ? 1 : -1) : (*x > *y) - (*x < *y);
}

static int units_make(struct arena *arena, const struct window_pressure *pressure,
		      struct wire_unit_pressures *out)
{
	const size_t n = pressure->n_units < UNITS_MAX ? pressure->n_units : UNITS_MAX;
	struct wire_unit_pressure *wire = arena_array(arena, n + 1, sizeof(*wire));
	const struct window_unit **units =
		arena_array(arena, pressure->n_units + 1, sizeof(const struct window_unit *));
	size_t i;

	if (!wire || !units)
		return -ENOMEM;
	for (i = 0; i < pressure->n_units; i++)
		units[i] = &pressure->units[i];
	qsort(units, pressure->n_units, sizeof(const struct window_unit *), compare_units);
	for (i = 0; i < n; i++) {
		const struct pressure *stalled = &units[i]->stalled;

		wire[i] = (struct wire_unit_pressure){
			.cgroup = arena_strdup(arena, units[i]->path),
			.cpu = stall_make(stalled, PRESSURE_CPU, pressure->units_ns),
			.io = stall_make(stalled, PRESSURE_IO, pressure->units_ns),
			.memory = stall_make(stalled, PRESSURE_MEMORY, pressure->units_ns),
		};
		if (!wire[i].cgroup)
			return -ENOMEM;
	}
	*out = (struct wire_unit_pressures){ .v = wire, .n = n };
	return 0;
}

int answer_pressure(struct arena *arena, const struct window_pressure *pressure,
		    const struct wire_pressure **out)
{
	struct wire_pressure *wire;
	struct wire_stall *stalls;
	int i, r;

	if (!pressure->state)
		return 0;
	wire = arena_alloc(arena, sizeof(*wire));
	stalls = arena_array(arena, PRESSURE_N, sizeof(*stalls));
	if (!wire || !stalls)
		return -ENOMEM;
	for (i = 0; i < PRESSURE_N; i++)
		stalls[i] = stall_make(&pressure->stalled, (enum pressure_resource)i, pressure->ns);
	*wire = (struct wire_pressure){
		.length_ns = (int64_t)pressure->ns,
		.missing = pressure_state_text(pressure->state, false),
		.units_length_ns = (int64_t)pressure->units_ns,
		.units_missing = pressure_state_text(pressure->units_state, true),
		.units_beyond = (int64_t)pressure->beyond,
		.units_unreadable = (int64_t)pressure->unreadable,
	};
	if (pressure->ns) {
		wire->cpu = &stalls[PRESSURE_CPU];
		wire->io = &stalls[PRESSURE_IO];
		wire->memory = &stalls[PRESSURE_MEMORY];
	}
	r = units_make(arena, pressure, &wire->units);
	if (!r)
		*out = wire;
	return r;
}

bool answer_pressure_stats(struct recorder *recorder, struct pressure_stats *out)
{
	struct drain_stats stats;
	enum probe_kind kind = 0;

	while (kind < PROBE_KIND_N && !session_is_on(sessions_always(recorder->sessions, kind)))
		kind++;
	if (kind == PROBE_KIND_N)
		return false;
	session_stats(sessions_always(recorder->sessions, kind), &stats);
	*out = stats.pressure;
	return true;
}

int answer_pressure_source(struct recorder *recorder, struct arena *arena,
			   const struct wire_pressure_source **out)
{
	struct wire_pressure_source *wire;
	struct pressure_stats stats;

	if (!answer_pressure_stats(recorder, &stats))
		return 0;
	wire = arena_alloc(arena, sizeof(*wire));
	if (!wire)
		return -ENOMEM;
	*wire = (struct wire_pressure_source){
		.missing = pressure_state_text(stats.state, false),
		.units_missing = pressure_state_text(stats.units_state, true),
		.units = (int64_t)stats.units,
		.units_beyond = (int64_t)stats.beyond,
		.units_unreadable = (int64_t)stats.unreadable,
		.took_ns = stats.took_ns,
	};
	*out = wire;
	return 0;
}
