/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_BASE_LOCAL_TIMES_H
#define STACKD_CLIENT_BASE_LOCAL_TIMES_H

/* Times in messages of the daemon, which knows nothing of the client's zone. Main thread. */

#include <stdint.h>

/*
 * Returns a copy of the daemon's message in which each time with an offset from UTC, such as
 * 2026-03-09T14:00:00+00:00, is a time in the zone of the client ($TZ), such as 15:00:00 CET. The
 * date is left out if it is that of `now`, in ns since the epoch. The caller owns the copy; the
 * program ends when memory runs out.
 */
char *local_times(const char *message, int64_t now);

#endif
