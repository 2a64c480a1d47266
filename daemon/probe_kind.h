/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_KIND_H
#define STACKD_DAEMON_PROBE_KIND_H

/* The kinds of data that can be gathered, and their names on the wire. Constant; any thread. */

#include <stdbool.h>

enum probe_kind {
	PROBE_OFFCPU,
	PROBE_ONCPU,
	PROBE_OFFWAKE,
	PROBE_KIND_N,
};

static inline const char *probe_kind_name(enum probe_kind kind)
{
	static const char *const names[PROBE_KIND_N] = {
		[PROBE_OFFCPU] = "offcpu",
		[PROBE_ONCPU] = "oncpu",
		[PROBE_OFFWAKE] = "offwake",
	};

	return names[kind];
}

/* Whether its windows hold waits, with a length and a state. */
static inline bool probe_kind_has_waits(enum probe_kind kind)
{
	return kind != PROBE_ONCPU;
}

#endif
