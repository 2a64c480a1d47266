/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BASE_PROBE_KIND_H
#define STACKD_DAEMON_BASE_PROBE_KIND_H

/* The kinds of probes, which the daemon shares with the client. */

#include "common/probe_kind.h"

#endif
