/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_MOMENT_H
#define STACKD_DAEMON_QUERY_MOMENT_H

/* Formats points in time for messages. No state; any thread. */

#include <stdint.h>

enum { MOMENT_TEXT = 32 };

/*
 * Formats a time (ns since the epoch) as "2026-03-09T14:00:00+00:00", in UTC: the daemon does not
 * know the zone of who asks. stackctl prints such a time in its own zone.
 */
void moment_text(int64_t real_ns, char text[static MOMENT_TEXT]);

#endif
