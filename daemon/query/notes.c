/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/notes.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/base.h"
#include "common/duration.h"

enum { NOTES_MAX = 9 };

static const char *length_text(int64_t ns, char text[static DURATION_TEXT_MAX])
{
	duration_format(ns, text);
	return text;
}

/* Rows begin at the minimum; under it there are no lengths at all. */
static int64_t edge_low(const struct filter *filter, const struct notes_facts *facts)
{
	int64_t edge = (int64_t)wait_bucket_least_ns(wait_bucket((uint64_t)filter->min_ns));

	return edge > facts->min_wait_ns ? edge : facts->min_wait_ns;
}

/* The first that is too long; INT64_MAX: none is. */
static int64_t edge_high(const struct filter *filter)
{
	unsigned int bucket;

	if (filter->max_ns == INT64_MAX)
		return INT64_MAX;
	bucket = wait_bucket((uint64_t)filter->max_ns);
	return bucket + 1 < WAIT_BUCKETS ? (int64_t)wait_bucket_least_ns(bucket + 1) : INT64_MAX;
}

static bool has_edges(const struct filter *filter, const struct notes_facts *facts)
{
	int64_t high = edge_high(filter);

	if (facts->open_only || high <= facts->min_wait_ns)
		return false;
	return filter->min_ns > facts->min_wait_ns || high != INT64_MAX;
}

static char *note_edges(struct arena *arena, const struct filter *filter,
			const struct notes_facts *facts)
{
	char low[DURATION_TEXT_MAX], high[DURATION_TEXT_MAX];
	int64_t below = edge_high(filter);

	return arena_printf(arena,
			    "of waits at one place in a window the longest is known exactly, the "
			    "others by power of two: of these are shown those from %s%s%s",
			    length_text(edge_low(filter, facts), low),
			    below == INT64_MAX ? "" : " to below ",
			    below == INT64_MAX ? "" : length_text(below, high));
}

/* Waits under the minimum are one sum a thread: shown or left out as a whole. */
static char *note_short(struct arena *arena, const struct filter *filter,
			const struct notes_facts *facts)
{
	char least[DURATION_TEXT_MAX], edge[DURATION_TEXT_MAX];

	duration_format(facts->min_wait_ns, least);
	if (filter->has_states)
		return arena_printf(arena, "waits under %s are left out: their state is not kept",
				    least);
	if (filter->min_ns > 0)
		return arena_printf(arena,
				    "waits under %s are left out, also those from %s: how long "
				    "each was is not kept",
				    least, length_text(filter->min_ns, edge));
	return arena_printf(arena,
			    "all waits under %s are shown, also those over %s: how long each was "
			    "is not kept",
			    least, length_text(filter->max_ns, edge));
}

static bool has_short(const struct filter *filter, const struct notes_facts *facts)
{
	if (!facts->short_waits || facts->open_only)
		return false;
	if (filter->has_states)
		return true;
	return filter->min_ns > 0 ? filter->min_ns < facts->min_wait_ns
				  : filter->max_ns < facts->min_wait_ns;
}

int notes_append(struct arena *arena, struct wire_strs *notes, const char *const *more, size_t n)
{
	const char **all = arena_array(arena, notes->n + n + 1, sizeof(*all));
	size_t i;

	if (!all)
		return -ENOMEM;
	for (i = 0; i < notes->n; i++)
		all[i] = notes->v[i];
	for (i = 0; i < n; i++)
		all[notes->n + i] = more[i];
	*notes = (struct wire_strs){ .v = all, .n = notes->n + n };
	return 0;
}

int notes_make(struct arena *arena, const struct filter *filter, const struct notes_facts *facts,
	       struct wire_strs *out)
{
	const char **notes = arena_array(arena, NOTES_MAX, sizeof(*notes));
	int kernel = facts->kernel_names_error;
	size_t n = 0, i;

	if (!notes)
		return -ENOMEM;
	if (facts->unseen)
		notes[n++] = facts->unseen;
	if (facts->unread && facts->unread[0])
		notes[n++] = arena_printf(arena, "not to be had are %s", facts->unread);
	if (has_edges(filter, facts))
		notes[n++] = note_edges(arena, filter, facts);
	if (facts->has_estimates)
		notes[n++] = arena_strdup(arena, "where one place has waits on both sides of an "
						 "edge, their time is an estimate");
	if (has_short(filter, facts))
		notes[n++] = note_short(arena, filter, facts);
	if (facts->is_late)
		notes[n++] =
			arena_strdup(arena, "stackd is too busy to end its open window in time: "
					    "what came last is missing");
	if (kernel)
		notes[n++] = arena_printf(arena, "no kernel names: /proc/kallsyms: %s%s",
					  strerror(-kernel),
					  kernel == -EPERM ? " (sysctl kernel.kptr_restrict)" : "");
	if (facts->merged)
		notes[n++] = arena_printf(
			arena,
			"%" PRIu64 " windows are longer ones, made of several to save "
			"room on disk: sums and the longest waits are exact, the edges "
			"of the range are rounded to them",
			facts->merged);
	if (facts->bad)
		notes[n++] = arena_printf(arena,
					  "%" PRIu64 " windows on disk could not be read: see "
					  "the gaps",
					  facts->bad);
	for (i = 0; i < n; i++)
		if (!notes[i])
			return -ENOMEM;
	*out = (struct wire_strs){ .v = notes, .n = n };
	return 0;
}
