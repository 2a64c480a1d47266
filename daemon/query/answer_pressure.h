/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_ANSWER_PRESSURE_H
#define STACKD_DAEMON_QUERY_ANSWER_PRESSURE_H

/*
 * Translates the pressure in windows, and what stackd can read of it, into structs of the wire
 * protocol. No state; any thread.
 */

#include <stdbool.h>

#include "common/arena.h"
#include "proto/wire.h"

struct pressure_stats;
struct recorder;
struct window_pressure;

/*
 * Sets *out to the pressure in the windows of an answer. Sets it to NULL if the windows do not say
 * anything about pressure, because an older stackd recorded them. Returns 0 or -ENOMEM.
 */
int answer_pressure(struct arena *arena, const struct window_pressure *pressure,
		    const struct wire_pressure **out);

/*
 * Copies the facts about the last reading of the pressure on this host. Returns false if stackd
 * does not read it, because no probe is always on.
 */
bool answer_pressure_stats(struct recorder *recorder, struct pressure_stats *out);

/*
 * Sets *out to how stackd reads the pressure: which files are missing, how many units it reads, and
 * how long the last reading took. Sets *out to NULL if no probe is always on. Returns 0 or -ENOMEM.
 */
int answer_pressure_source(struct recorder *recorder, struct arena *arena,
			   const struct wire_pressure_source **out);

#endif
