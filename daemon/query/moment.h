/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_MOMENT_H
#define STACKD_DAEMON_QUERY_MOMENT_H

/* Formats points in time for messages, in local time. No state; any thread. */

#include <stdint.h>

enum { MOMENT_TEXT = 64 };

/*
 * Formats a time (ns since the epoch) as "14:00:00 UTC". Adds the date unless `now` (also ns since
 * the epoch) is on the same day.
 */
void moment_text(int64_t real_ns, int64_t now, char text[static MOMENT_TEXT]);

#endif
