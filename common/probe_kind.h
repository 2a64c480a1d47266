/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_PROBE_KIND_H
#define STACKD_COMMON_PROBE_KIND_H

/*
 * The kinds of probes, and a row of facts about each of them: its name, its words and its traits.
 * Code above this room asks for a trait, not for a kind, so that a new kind is one more row here
 * and needs no change elsewhere. Constant data; any thread.
 */

#include <stdbool.h>
#include <stddef.h>

enum probe_kind {
	PROBE_OFFCPU,
	PROBE_ONCPU,
	PROBE_OFFWAKE,
	PROBE_STACKCOUNT,
	PROBE_STACKSNOOP,
	PROBE_IOLAT,
	PROBE_KIND_N,
};

/* Yes-or-no facts about a kind: what its windows hold, and who may start it. */
enum probe_trait {
	/* A row is waits: it has a length and a task state, and may be filtered by both. */
	PROBE_WAITS = 1 << 0,
	/* Waits that have not ended are recorded too, and so are sums of those below the minimum.
	 */
	PROBE_OPEN_WAITS = 1 << 1,
	/* A row is samples, one per period: a session has a frequency, an event and idle or not. */
	PROBE_SAMPLES = 1 << 2,
	/* A row is a number of events that take no time, such as calls. */
	PROBE_COUNTS = 1 << 3,
	/* Each call is also streamed to the client, up to a rate. */
	PROBE_STREAMS = 1 << 4,
	/* A row is I/O operations: it has a layer, an operation and a device. */
	PROBE_IO = 1 << 5,
	/* Rows are by thread; without this trait they are by process. */
	PROBE_THREADS = 1 << 6,
	/* An event happens on one CPU, so that a session may be limited to some CPUs. */
	PROBE_CPUS = 1 << 7,
	/* Only clients start it: it is never always on. */
	PROBE_CLIENTS = 1 << 8,
	/* Its always-on session reports fork, exec and exit for the other sessions too. */
	PROBE_FOLLOWS = 1 << 9,
	/* Its events are calls of functions that the client names; a budget limits their cost. */
	PROBE_FUNCTIONS = 1 << 10,
};

/* Returns the name of a kind on the wire, on disk and in the configuration. */
const char *probe_kind_name(enum probe_kind kind);

/* Finds a kind by its name. False if no kind has that name; then *out is not set. */
bool probe_kind_find(const char *name, enum probe_kind *out);

/* True if the kind has all of these traits, bits of enum probe_trait. */
bool probe_kind_has(enum probe_kind kind, unsigned int traits);

/*
 * Writes the names of the kinds that have all of these traits (0: of all kinds) into out (size
 * bytes), for a message: "offcpu, oncpu and iolat". `last` stands before the last one: " and ".
 */
void probe_kinds_with(unsigned int traits, const char *last, char *out, size_t size);

/* Returns what a kind records, in a few words for a list: "samples of what runs on the CPUs". */
const char *probe_kind_summary(enum probe_kind kind);

/* Returns the name of the events that a session of this kind counts, in the plural: "samples". */
const char *probe_kind_events(enum probe_kind kind);

/* Returns why a live process may be in no window of a range: "ended no I/O in the range". */
const char *probe_kind_unseen(enum probe_kind kind);

static inline bool probe_kind_has_waits(enum probe_kind kind)
{
	return probe_kind_has(kind, PROBE_WAITS);
}

#endif
