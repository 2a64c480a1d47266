/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BASE_PROBE_KIND_H
#define STACKD_DAEMON_BASE_PROBE_KIND_H

/* The kinds of data that can be gathered, and their names on the wire. Constant; any thread. */

#include <stdbool.h>

enum probe_kind {
	PROBE_OFFCPU,
	PROBE_ONCPU,
	PROBE_OFFWAKE,
	PROBE_STACKCOUNT,
	PROBE_STACKSNOOP,
	PROBE_IOLAT,
	PROBE_KIND_N,
};

static inline const char *probe_kind_name(enum probe_kind kind)
{
	static const char *const names[PROBE_KIND_N] = {
		[PROBE_OFFCPU] = "offcpu",	   [PROBE_ONCPU] = "oncpu",
		[PROBE_OFFWAKE] = "offwake",	   [PROBE_STACKCOUNT] = "stackcount",
		[PROBE_STACKSNOOP] = "stacksnoop", [PROBE_IOLAT] = "iolat",
	};

	return names[kind];
}

/* Whether its windows hold waits, with a length and a state. */
static inline bool probe_kind_has_waits(enum probe_kind kind)
{
	return kind == PROBE_OFFCPU || kind == PROBE_OFFWAKE;
}

/* Whether it counts calls of functions, which a client names: these are never always on. */
static inline bool probe_kind_has_calls(enum probe_kind kind)
{
	return kind == PROBE_STACKCOUNT || kind == PROBE_STACKSNOOP;
}

#endif
