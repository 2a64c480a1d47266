/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_WHEN_H
#define STACKD_COMMON_WHEN_H

/*
 * Points in time as people write them: in goes text, the present and what the text is for,
 * out come nanoseconds since the epoch. Local times follow the rules of the zone (TZ) on the
 * date they name. Nothing allocated; reads TZ, so not while another thread changes it.
 */

#include <stdbool.h>
#include <stdint.h>

/* A time of day without a date, and an hour the clocks pass twice, need to know. */
enum when_use {
	WHEN_SINCE, /* the latest not after now; the earlier of two */
	WHEN_UNTIL, /* the first after `after`; the later of two */
	WHEN_AT,    /* as WHEN_SINCE */
};

struct when_context {
	enum when_use use;
	int64_t now;   /* ns since the epoch */
	int64_t after; /* WHEN_UNTIL: the start of the range; INT64_MIN: none, as WHEN_SINCE */
};

/*
 * Reads now, [today|yesterday|tomorrow] [14:00[:30[.5]]], 2026-03-09[ T]14:00 with an
 * optional Z, UTC or +01:00, -3min, +3min, 3min ago, 3min left, @1772000000.5.
 * Returns 0; -EINVAL when it is none of these or names no existing date, -ERANGE when it
 * lies outside of 64 bits of nanoseconds; *ns_out is untouched then.
 */
int when_parse(const char *text, const struct when_context *context, int64_t *ns_out);

/* A time of day alone, to which when_parse adds the day. */
bool when_is_clock(const char *text);

/* What when_parse takes, for messages. Static. */
const char *when_grammar(void);

#endif
