/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/probe_kind.h"

#include <stdio.h>
#include <string.h>

#include "common/base.h"

/*
 * One row for each kind of probe: its name, its texts for messages and its traits. `name` is also
 * stored on disk and must never change.
 */
static const struct {
	const char *name;
	const char *summary;
	const char *events;
	const char *absent;
	const char *unrecorded;
	unsigned int traits;
} kinds[] = {
	[PROBE_OFFCPU] = { "offcpu", "waits: the time that threads spend off the CPU", "switches",
			   "was not seen in the range", "was not seen in the range",
			   PROBE_WAITS | PROBE_OPEN_WAITS | PROBE_THREADS | PROBE_FOLLOWS |
				   PROBE_PICKS | PROBE_STACKS },
	[PROBE_ONCPU] = { "oncpu", "samples of what runs on the CPUs", "samples",
			  "was in no sample of the range: it used next to no CPU",
			  "was in no sample of the range",
			  PROBE_SAMPLES | PROBE_THREADS | PROBE_CPUS | PROBE_FOLLOWS |
				  PROBE_STACKS },
	[PROBE_OFFWAKE] = { "offwake", "waits, and which thread or interrupt ended them",
			    "switches",
			    "ended no wait in the range; stackctl stuck shows who waits",
			    "has no recorded wait that ended in the range; stackctl stuck shows "
			    "who waits",
			    PROBE_WAITS | PROBE_THREADS | PROBE_PICKS | PROBE_STACKS },
	[PROBE_STACKCOUNT] = { "stackcount", "calls of a FUNCTION, counted by stack", "calls",
			       "called nothing of that in the range",
			       "has no recorded call in the range",
			       PROBE_COUNTS | PROBE_FUNCTIONS | PROBE_THREADS | PROBE_CPUS |
				       PROBE_CLIENTS | PROBE_STACKS },
	[PROBE_STACKSNOOP] = { "stacksnoop", "calls of a FUNCTION, one by one", "calls",
			       "called nothing of that in the range",
			       "has no recorded call in the range",
			       PROBE_COUNTS | PROBE_FUNCTIONS | PROBE_STREAMS | PROBE_THREADS |
				       PROBE_CPUS | PROBE_CLIENTS | PROBE_STACKS },
	[PROBE_IOLAT] = { "iolat", "I/O: how long it takes in which layer of the kernel",
			  "operations", "ended no I/O in the range",
			  "has no recorded I/O in the range", PROBE_IO | PROBE_PICKS },
};

_Static_assert(ARRAY_SIZE(kinds) == PROBE_KIND_N, "every kind has a row");

const char *probe_kind_name(enum probe_kind kind)
{
	return kinds[kind].name;
}

bool probe_kind_find(const char *name, enum probe_kind *out)
{
	enum probe_kind kind;

	for (kind = 0; kind < PROBE_KIND_N; kind++) {
		if (strcmp(name, kinds[kind].name) != 0)
			continue;
		*out = kind;
		return true;
	}
	return false;
}

bool probe_kind_has(enum probe_kind kind, unsigned int traits)
{
	return (kinds[kind].traits & traits) == traits;
}

void probe_kinds_with(unsigned int traits, const char *last, char *out, size_t size)
{
	size_t left = 0, used = 0;
	enum probe_kind kind;

	for (kind = 0; kind < PROBE_KIND_N; kind++)
		left += probe_kind_has(kind, traits);
	snprintf(out, size, "%s", "");
	for (kind = 0; kind < PROBE_KIND_N && used < size; kind++) {
		if (!probe_kind_has(kind, traits))
			continue;
		left--;
		used += (size_t)snprintf(out + used, size - used, "%s%s", kinds[kind].name,
					 left > 1    ? ", "
					 : left == 1 ? last
						     : "");
	}
}

const char *probe_kind_summary(enum probe_kind kind)
{
	return kinds[kind].summary;
}

const char *probe_kind_events(enum probe_kind kind)
{
	return kinds[kind].events;
}

const char *probe_kind_absent(enum probe_kind kind)
{
	return kinds[kind].absent;
}

const char *probe_kind_unrecorded(enum probe_kind kind)
{
	return kinds[kind].unrecorded;
}
