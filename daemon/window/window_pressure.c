/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/window/window_pressure.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void pressure_add(struct pressure *sum, const struct pressure *other)
{
	int i;

	for (i = 0; i < PRESSURE_N; i++) {
		sum->some_ns[i] += other->some_ns[i];
		sum->full_ns[i] += other->full_ns[i];
	}
}

uint64_t pressure_sum_ns(const struct pressure *pressure)
{
	uint64_t sum = 0;
	int i;

	for (i = 0; i < PRESSURE_N; i++)
		sum += pressure->some_ns[i] + pressure->full_ns[i];
	return sum;
}

int window_pressure_add_unit(struct window_pressure *pressure, char *path,
			     const struct pressure *stalled)
{
	size_t n = pressure->n_units;
	struct window_unit *grown;

	if ((n & (n - 1)) == 0) {
		grown = reallocarray(pressure->units, n ? 2 * n : 1, sizeof(*grown));
		if (!grown) {
			free(path);
			return -ENOMEM;
		}
		pressure->units = grown;
	}
	pressure->units[pressure->n_units++] = (struct window_unit){ path, *stalled };
	return 0;
}

static void unit_remove(struct window_pressure *pressure, size_t i)
{
	free(pressure->units[i].path);
	pressure->n_units--;
	memmove(&pressure->units[i], &pressure->units[i + 1],
		(pressure->n_units - i) * sizeof(*pressure->units));
}

/* Removes the units with the least pressure if there are more than WINDOW_UNITS_MAX. */
static void units_limit(struct window_pressure *pressure)
{
	size_t i, least;

	for (; pressure->n_units > WINDOW_UNITS_MAX; pressure->beyond++) {
		for (least = 0, i = 1; i < pressure->n_units; i++)
			if (pressure_sum_ns(&pressure->units[i].stalled) <
			    pressure_sum_ns(&pressure->units[least].stalled))
				least = i;
		unit_remove(pressure, least);
	}
}

/*
 * Merges two lists of units, both sorted by path, into *out. Returns 0, or -ENOMEM with an
 * incomplete list in *out.
 */
static int units_merge(const struct window_pressure *a, const struct window_pressure *b,
		       struct window_pressure *out)
{
	size_t i = 0, k = 0;
	int order, r = 0;

	while (!r && (i < a->n_units || k < b->n_units)) {
		struct pressure stalled = {};
		const char *path;
		char *copy;

		order = i == a->n_units	  ? 1
			: k == b->n_units ? -1
					  : strcmp(a->units[i].path, b->units[k].path);
		path = order <= 0 ? a->units[i].path : b->units[k].path;
		if (order <= 0)
			pressure_add(&stalled, &a->units[i++].stalled);
		if (order >= 0)
			pressure_add(&stalled, &b->units[k++].stalled);
		copy = strdup(path);
		r = copy ? window_pressure_add_unit(out, copy, &stalled) : -ENOMEM;
	}
	return r;
}

static uint32_t state_merge(uint32_t a, uint32_t b)
{
	return a == PRESSURE_READ || b == PRESSURE_NOT_ASKED ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

int window_pressure_add(struct window_pressure *sum, const struct window_pressure *other)
{
	struct window_pressure units = {};
	int r = 0;

	if (other->n_units) {
		r = units_merge(sum, other, &units);
		if (r) {
			window_pressure_fini(&units);
			return r;
		}
		window_pressure_fini(sum);
		sum->units = units.units;
		sum->n_units = units.n_units;
	}
	sum->ns += other->ns;
	pressure_add(&sum->stalled, &other->stalled);
	sum->units_ns += other->units_ns;
	sum->state = state_merge(sum->state, other->state);
	sum->units_state = state_merge(sum->units_state, other->units_state);
	sum->beyond = larger(sum->beyond, other->beyond);
	sum->unreadable = larger(sum->unreadable, other->unreadable);
	units_limit(sum);
	return 0;
}

size_t window_pressure_bytes(const struct window_pressure *pressure)
{
	size_t i, bytes = pressure->n_units * sizeof(*pressure->units);

	for (i = 0; i < pressure->n_units; i++)
		bytes += strlen(pressure->units[i].path) + 1;
	return bytes;
}

/* Frees the units; the other members stay. */
void window_pressure_fini(struct window_pressure *pressure)
{
	while (pressure->n_units)
		free(pressure->units[--pressure->n_units].path);
	free(pressure->units);
	pressure->units = NULL;
}

const char *pressure_state_text(uint32_t state, bool is_of_units)
{
	switch (state) {
	case PRESSURE_NO_PSI:
		return is_of_units ? "the kernel has no PSI for control groups"
				   : "the kernel has no PSI, or was booted with psi=0";
	case PRESSURE_NO_CGROUP2:
		return "no control groups of version 2 are mounted";
	case PRESSURE_UNREADABLE:
		return is_of_units ? "the pressure files of control groups cannot be read"
				   : "the files in /proc/pressure cannot be read";
	default:
		return NULL;
	}
}
