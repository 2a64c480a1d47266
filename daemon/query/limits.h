/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_LIMITS_H
#define STACKD_DAEMON_QUERY_LIMITS_H

/*
 * Lists the limits that `stackctl status` shows, each with its maximum, how much of it is used, and
 * how often it has been hit. Reads counters of the running daemon; any thread.
 */

#include "common/arena.h"
#include "daemon/session/recorder.h"
#include "proto/wire.h"

/*
 * Sets *out to all limits except the limits of sockets. The memory is that of the arena. Returns 0
 * or -ENOMEM.
 */
int limits_make(struct recorder *recorder, struct arena *arena, struct wire_limits *out);

#endif
