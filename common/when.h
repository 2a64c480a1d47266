/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_WHEN_H
#define STACKD_COMMON_WHEN_H

/*
 * Reads points in time as people write them, and returns nanoseconds since the epoch. A local time
 * follows the rules that its zone (TZ) has on that date. Allocates nothing. Any thread may call it,
 * as long as no thread changes TZ.
 */

#include <stdbool.h>
#include <stdint.h>

/*
 * Says which instant an ambiguous text means: a time of day without a date, or a local time that
 * occurs twice because daylight saving time ends.
 */
enum when_use {
	WHEN_SINCE, /* a time of day is the last one up to now; of two instants: the earlier */
	WHEN_UNTIL, /* the end of a range: a time of day is the first such time after `after`; if
		       the local time occurs twice, the later of the two instants is taken */
	WHEN_AT,    /* the same instant as WHEN_SINCE */
};

struct when_context {
	enum when_use use;
	int64_t now; /* the present time in ns since the epoch */
	/*
	 * Used for WHEN_UNTIL: the start of the range in ns since the epoch. If it is INT64_MIN,
	 * the range has no start, and a time of day means the same as for WHEN_SINCE.
	 */
	int64_t after;
};

/*
 * Reads a point in time in one of these forms: now, [today|yesterday|tomorrow] [14:00[:30[.5]]],
 * 2026-03-09[ T]14:00 with an optional Z, UTC or +01:00, -3min, +3min, 3min ago, 3min left, or
 * @1772000000.5. Returns 0; or, with *ns_out unchanged, -EINVAL for any other text or a date that
 * does not exist, -ERANGE for an instant that does not fit 64 bits of nanoseconds.
 */
int when_parse(const char *text, const struct when_context *context, int64_t *ns_out);

/* True if the text is only a time of day. when_parse() adds the date to such a text. */
bool when_is_clock(const char *text);

/* Returns examples of the texts that when_parse() reads, for messages. A static string. */
const char *when_grammar(void);

#endif
