/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_PROBE_KIND_H
#define STACKD_COMMON_PROBE_KIND_H

/*
 * The kinds of probes, and the facts about each kind: its name, its words for messages, and its
 * traits. Code elsewhere asks whether a kind has a trait, not which kind it is, so that a new kind
 * needs one more row in probe_kind.c and no change elsewhere. Constant data; any thread.
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

/* Yes-or-no facts about a kind of probe: what its recordings contain, and who may start it. */
enum probe_trait {
	/*
	 * Each row of an answer is about waits. A wait has a length and a task state, and a filter
	 * can select waits by both.
	 */
	PROBE_WAITS = 1 << 0,
	/*
	 * Waits that have not ended are recorded, too. Of waits below the minimum length, only the
	 * number and the total time are recorded.
	 */
	PROBE_OPEN_WAITS = 1 << 1,
	/*
	 * Each row is a number of samples, taken at a fixed period. A client that starts a session
	 * may choose the frequency, the event, and whether idle CPUs are sampled.
	 */
	PROBE_SAMPLES = 1 << 2,
	/* Each row is a number of events that take no time, such as calls of a function. */
	PROBE_COUNTS = 1 << 3,
	/* Each event is also sent to the client as it happens, up to a given number per second. */
	PROBE_STREAMS = 1 << 4,
	/*
	 * Each row is about I/O operations, which have a layer, a kind of operation and a device.
	 */
	PROBE_IO = 1 << 5,
	/* Events are recorded by thread; without this trait they are recorded by process. */
	PROBE_THREADS = 1 << 6,
	/* Each event happens on one CPU, so that a session may be limited to some CPUs. */
	PROBE_CPUS = 1 << 7,
	/*
	 * A probe of this kind records only in sessions that clients start: it cannot be always on.
	 */
	PROBE_CLIENTS = 1 << 8,
	/* The always-on session of this kind can report forks, execs and exits for all sessions. */
	PROBE_FOLLOWS = 1 << 9,
	/*
	 * Events of this kind are calls of functions that the client names. A budget limits the CPU
	 * time that recording them takes.
	 */
	PROBE_FUNCTIONS = 1 << 10,
	/*
	 * Each event has a length. To keep an always-on probe within the budget, its shorter events
	 * are recorded with their stacks by chance, see bpf/sample.h.
	 */
	PROBE_PICKS = 1 << 11,
	/* All events have stacks, so that a filter can ask for the functions in them. */
	PROBE_STACKS = 1 << 12,
};

/* Returns the name that a kind has on the wire, on disk and in the configuration. */
const char *probe_kind_name(enum probe_kind kind);

/* Finds a kind by its name. Returns false, with *out unchanged, if no kind has that name. */
bool probe_kind_find(const char *name, enum probe_kind *out);

/* True if the kind has all of the given traits. `traits` is a set of bits of enum probe_trait. */
bool probe_kind_has(enum probe_kind kind, unsigned int traits);

/*
 * Writes the names of the kinds that have all of the given traits (0: of all kinds) into out, which
 * has `size` bytes, for a message: "offcpu, oncpu and iolat". `last`, such as " and ", is put
 * between the last two names.
 */
void probe_kinds_with(unsigned int traits, const char *last, char *out, size_t size);

/*
 * Returns a short text for a list of probes that says what this kind records: "samples of what runs
 * on the CPUs".
 */
const char *probe_kind_summary(enum probe_kind kind);

/* Returns the name of the events that a session of this kind counts, in the plural: "samples". */
const char *probe_kind_events(enum probe_kind kind);

/*
 * Returns the words that say why a process that is alive may have no data in a range: "ended no I/O
 * in the range".
 */
const char *probe_kind_absent(enum probe_kind kind);

/* Returns these words for a range in which not all was recorded: they say no more than that. */
const char *probe_kind_unrecorded(enum probe_kind kind);

static inline bool probe_kind_has_waits(enum probe_kind kind)
{
	return probe_kind_has(kind, PROBE_WAITS);
}

#endif
