/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/pressure_section.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"

static void stalled_encode(const struct pressure *stalled, struct bytes *out)
{
	int i;

	for (i = 0; i < PRESSURE_N; i++) {
		bytes_put_u64(out, stalled->some_ns[i]);
		bytes_put_u64(out, stalled->full_ns[i]);
	}
}

static void stalled_decode(struct bytes_reader *in, struct pressure *stalled)
{
	int i;

	for (i = 0; i < PRESSURE_N; i++) {
		stalled->some_ns[i] = bytes_get_u64(in);
		stalled->full_ns[i] = bytes_get_u64(in);
	}
}

void store_pressure_encode(const struct window *window, struct bytes *out)
{
	const struct window_pressure *pressure = &window->pressure;
	size_t i;

	bytes_put_u64(out, pressure->ns);
	bytes_put_u64(out, pressure->units_ns);
	bytes_put_u64(out, pressure->state);
	bytes_put_u64(out, pressure->units_state);
	bytes_put_u64(out, pressure->beyond);
	bytes_put_u64(out, pressure->unreadable);
	stalled_encode(&pressure->stalled, out);
	bytes_put_u64(out, pressure->n_units);
	for (i = 0; i < pressure->n_units; i++) {
		bytes_put_string(out, pressure->units[i].path);
		stalled_encode(&pressure->units[i].stalled, out);
	}
}

/* Reads a state. One that only a newer stackd knows becomes PRESSURE_UNREADABLE. */
static uint32_t state_decode(struct bytes_reader *in)
{
	const uint64_t state = bytes_get_u64(in);

	return state < PRESSURE_STATES ? (uint32_t)state : PRESSURE_UNREADABLE;
}

static int unit_decode(struct bytes_reader *in, struct window_pressure *pressure)
{
	const size_t n = pressure->n_units;
	struct pressure stalled;
	char *path = bytes_get_string(in);

	stalled_decode(in, &stalled);
	if (in->is_failed || !path || (n && strcmp(pressure->units[n - 1].path, path) >= 0)) {
		free(path);
		return in->is_out_of_memory ? -ENOMEM : -EBADMSG;
	}
	return window_pressure_add_unit(pressure, path, &stalled);
}

int store_pressure_decode(struct bytes_reader *in, struct window *window)
{
	struct window_pressure *pressure = &window->pressure;
	uint64_t n;
	int r = 0;

	if (pressure->units)
		return -EBADMSG;
	pressure->ns = bytes_get_u64(in);
	pressure->units_ns = bytes_get_u64(in);
	pressure->state = state_decode(in);
	pressure->units_state = state_decode(in);
	pressure->beyond = bytes_get_u64(in);
	pressure->unreadable = bytes_get_u64(in);
	stalled_decode(in, &pressure->stalled);
	for (n = bytes_get_max(in, WINDOW_UNITS_MAX); n && !r; n--)
		r = unit_decode(in, pressure);
	return r ? r : bytes_error(in);
}
