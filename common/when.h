/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_WHEN_H
#define STACKD_COMMON_WHEN_H

/*
 * Reads points in time as people write them and returns nanoseconds since the epoch. A local time
 * follows the rules that its zone (TZ) has on that date. Nothing is allocated; any thread, as long
 * as none changes TZ.
 */

#include <stdbool.h>
#include <stdint.h>

/*
 * How a time of day without a date is completed, and which of two instants is taken in the hour
 * that the clocks pass twice when daylight saving time ends.
 */
enum when_use {
	WHEN_SINCE, /* the latest instant not after now; the earlier of two */
	WHEN_UNTIL, /* the first instant after `after`; the later of two */
	WHEN_AT,    /* as WHEN_SINCE */
};

struct when_context {
	enum when_use use;
	int64_t now;   /* ns since the epoch */
	int64_t after; /* for WHEN_UNTIL, the start of the range; INT64_MIN: as WHEN_SINCE */
};

/*
 * Reads now, [today|yesterday|tomorrow] [14:00[:30[.5]]], 2026-03-09[ T]14:00 with an optional Z,
 * UTC or +01:00, -3min, +3min, 3min ago, 3min left, or @1772000000.5. Returns 0; or, with *ns_out
 * unchanged, -EINVAL for any other text or a date that does not exist, -ERANGE for an instant that
 * does not fit 64 bits of nanoseconds.
 */
int when_parse(const char *text, const struct when_context *context, int64_t *ns_out);

/* True if the text is a time of day alone, to which when_parse() adds the day. */
bool when_is_clock(const char *text);

/* Returns examples of what when_parse() reads, for messages. A static string. */
const char *when_grammar(void);

#endif
