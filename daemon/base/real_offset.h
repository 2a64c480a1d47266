/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BASE_REAL_OFFSET_H
#define STACKD_DAEMON_BASE_REAL_OFFSET_H

/* The difference of two clocks, by which times of CLOCK_MONOTONIC become times of the day. */

#include <stdint.h>

#include "common/base.h"

/*
 * Returns CLOCK_REALTIME minus CLOCK_MONOTONIC. Takes the best of several readings, as a thread may
 * lose its CPU between the readings of the two clocks.
 */
static inline int64_t real_offset_read(void)
{
	int64_t before, real, after, offset = 0, least = INT64_MAX;
	int i;

	for (i = 0; i < 5; i++) {
		before = clock_ns(CLOCK_MONOTONIC);
		real = clock_ns(CLOCK_REALTIME);
		after = clock_ns(CLOCK_MONOTONIC);
		if (after - before >= least)
			continue;
		least = after - before;
		offset = real - before - least / 2;
	}
	return offset;
}

/*
 * Sets *offset to CLOCK_REALTIME minus CLOCK_MONOTONIC, unless it is right to a millisecond: times
 * that follow one another then do so in both clocks, unless the realtime clock was set.
 */
static inline void real_offset_renew(int64_t *offset)
{
	int64_t now = real_offset_read(), change = now - *offset;

	if (change > NS_PER_MS || change < -NS_PER_MS)
		*offset = now;
}

#endif
