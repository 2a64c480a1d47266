/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/notes.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/base.h"
#include "common/duration.h"
#include "common/note_words.h"

/* MISSING_SHARE: a smaller part of the time than one in so many is not worth a note. */
enum { NOTES_MAX = 18, MISSING_SHARE = 1000 };

struct note_list {
	const char *v[NOTES_MAX];
	size_t n;
	bool has_failed; /* a note is missing because there was no memory for it */
};

static void note_add(struct note_list *list, const char *note)
{
	if (note && list->n < ARRAY_SIZE(list->v))
		list->v[list->n++] = note;
	else
		list->has_failed = true;
}

/*
 * Returns the length in ns from which on waits are shown. The exact length of most waits is not
 * known, only the histogram bucket that counts the wait, so all waits of a bucket are shown or
 * none. Usually the result is the length at which the first bucket that is shown begins. If the
 * session's minimum length is greater, the result is the minimum length, because shorter waits are
 * not in the histogram.
 */
static int64_t shown_from(const struct filter *filter, const struct notes_facts *facts)
{
	int64_t from = (int64_t)wait_bucket_least_ns(wait_bucket((uint64_t)filter->min_ns));

	return from > facts->min_wait_ns ? from : facts->min_wait_ns;
}

/*
 * Returns the length in ns below which waits are shown: the one at which the last bucket that is
 * shown ends, see shown_from(). INT64_MAX if no wait is left out because it is too long.
 */
static int64_t shown_below(const struct filter *filter)
{
	unsigned int bucket;

	if (filter->max_ns == INT64_MAX)
		return INT64_MAX;
	bucket = wait_bucket((uint64_t)filter->max_ns);
	return bucket + 1 < WAIT_BUCKETS ? (int64_t)wait_bucket_least_ns(bucket + 1) : INT64_MAX;
}

/*
 * If the filter selects waits by length, adds a note that says which lengths are shown. The exact
 * length is known only of the longest wait of each stack; of the others, only the histogram bucket
 * is known.
 */
static void note_lengths(struct note_list *list, struct arena *arena, const struct filter *filter,
			 const struct notes_facts *facts)
{
	char from_text[DURATION_TEXT_MAX], below_text[DURATION_TEXT_MAX];
	int64_t from = shown_from(filter, facts), below = shown_below(filter);

	if (facts->open_only || below <= facts->min_wait_ns)
		return;
	if (filter->min_ns <= facts->min_wait_ns && below == INT64_MAX)
		return;
	duration_format(from, from_text);
	if (below != INT64_MAX)
		duration_format(below, below_text);
	note_add(list, arena_printf(arena,
				    "a window keeps the exact length of the longest wait at each "
				    "stack, and only a power of two for the others: of the others, "
				    "those from %s%s%s are shown",
				    from_text, below == INT64_MAX ? "" : " to below ",
				    below == INT64_MAX ? "" : below_text));
}

/*
 * If some groups did not fit into the query's memory, adds a note: how many groups were merged into
 * one row, and how exact the other rows are.
 */
static void note_others(struct note_list *list, struct arena *arena,
			const struct notes_facts *facts)
{
	const struct aggregate_others *others = &facts->others;
	char bound[DURATION_TEXT_MAX];

	if (!others->groups)
		return;
	duration_format((int64_t)others->bound_ns, bound);
	note_add(list,
		 arena_printf(arena,
			      "more rows than [query] max_memory (%zu KiB) has room for: "
			      "%" PRIu64 " small ones are summed up as (others); each other row "
			      "may lack up to %s or %" PRIu64 " in count; totals are exact",
			      facts->max_memory / 1024, others->groups, bound,
			      others->bound_count));
}

/* If rows may lack something because summaries were read, adds a note that says how much. */
static void note_summaries(struct note_list *list, struct arena *arena,
			   const struct notes_facts *facts)
{
	char lacks[DURATION_TEXT_MAX];

	if (!facts->summaries.lacks_ns)
		return;
	duration_format((int64_t)facts->summaries.lacks_ns, lacks);
	note_add(list, arena_printf(arena,
				    "%zu of the windows were read as %zu summaries: rows of one "
				    "program and stack may lack up to %s, which is within "
				    "(others); totals are exact",
				    facts->summaries.windows, facts->summaries.n, lacks));
}

/*
 * Adds a note if the filter asks for some, but not all, of the waits that are shorter than the
 * session's minimum length. A window has only one sum of such waits for each thread, which is shown
 * or left out as a whole.
 */
static void note_short_waits(struct note_list *list, struct arena *arena,
			     const struct filter *filter, const struct notes_facts *facts)
{
	char minimum[DURATION_TEXT_MAX], asked[DURATION_TEXT_MAX];
	struct filter picks = *filter;

	if (!facts->short_waits || facts->open_only)
		return;
	duration_format(facts->min_wait_ns, minimum);
	duration_format(filter->min_ns > 0 ? filter->min_ns : filter->max_ns, asked);
	picks.min_ns = 0;
	picks.base = NULL;
	if (!filter_has_shorts(&picks))
		note_add(list, arena_printf(arena,
					    "waits under %s are left out: their %s is not recorded",
					    minimum,
					    filter->wanted.has_states	 ? "state"
					    : filter->wanted.has_reasons ? "reason"
									 : "stack"));
	else if (filter->min_ns > 0 && filter->min_ns < facts->min_wait_ns)
		note_add(list, arena_printf(arena,
					    "waits under %s are left out, also those from %s: the "
					    "length of each is not recorded",
					    minimum, asked));
	else if (filter->min_ns <= 0 && filter->max_ns < facts->min_wait_ns)
		note_add(list, arena_printf(arena,
					    "all waits under %s are shown, also those over %s: the "
					    "length of each is not recorded",
					    minimum, asked));
}

/*
 * If waits or I/O operations were recorded by chance, adds a note that says which, and which
 * figures are exact.
 */
static void note_sampled(struct note_list *list, struct arena *arena,
			 const struct notes_facts *facts)
{
	const char *what = "waits";
	const char *exact = "their times by stack are estimates; those by thread, and all totals, "
			    "are exact";
	char below[DURATION_TEXT_MAX], from[DURATION_TEXT_MAX];

	if (!facts->sample_below_ns || facts->open_only)
		return;
	if (facts->kind == PROBE_OFFWAKE)
		exact = "their times, and the totals, are estimates";
	if (facts->kind == PROBE_IOLAT) {
		what = "operations";
		exact = "by stack, their times are estimates; all other rows are exact";
	}
	duration_format(facts->sample_below_ns, below);
	note_add(list, arena_printf(arena,
				    NOTE_SAMPLED "of the %s under %s, only some are recorded with "
						 "stacks, the longer the likelier, and stand for "
						 "all: %s",
				    what, below, exact));
	if (!facts->budget_from_ns)
		return;
	duration_format(facts->budget_from_ns, from);
	note_add(list, arena_printf(arena,
				    NOTE_BUDGET "more stacks of %s would have cost more than "
						"[budget] cpu allows; %s under %s are only "
						"counted in any case",
				    what, what, from));
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

/*
 * Adds notes if rows of what the filter selects were folded with those of others, which it leaves
 * out.
 */
static void note_folded(struct note_list *list, struct arena *arena, const struct filter *filter,
			const struct notes_facts *facts)
{
	const struct wire_filter *wire = filter->wire;
	char missing[DURATION_TEXT_MAX], whole[DURATION_TEXT_MAX];

	/* The other note names the processes and windows. Estimates may be off by much. */
	if (!facts->absent &&
	    facts->missing_ns > facts->waits_ns / (facts->sample_below_ns ? 2 : MISSING_SHARE)) {
		duration_format((int64_t)facts->missing_ns, missing);
		duration_format((int64_t)facts->waits_ns, whole);
		note_add(list,
			 arena_printf(arena,
				      "%s of the %s that these threads waited is in no row of "
				      "this answer: %ssmall rows were folded with those of others",
				      missing, whole,
				      facts->has_lost ? "waits were lost, or " : ""));
	}
	if (facts->has_others && wire && (wire->comm || wire->comms.n))
		note_add(list, "processes with little time may have been folded into (others), "
			       "which has no names: they are not in this answer");
}

/* Adds a note that names the waits of which offwake has no time. Others have the sum of theirs. */
static void note_brief_wakes(struct note_list *list, struct arena *arena,
			     const struct notes_facts *facts)
{
	char minimum[DURATION_TEXT_MAX];

	if (facts->kind != PROBE_OFFWAKE || facts->min_wait_ns <= 0)
		return;
	duration_format(facts->min_wait_ns, minimum);
	note_add(list, arena_printf(arena,
				    "waits that blocked for less than %s are in no row and no "
				    "sum, however long they then waited for a CPU",
				    minimum));
}

/* Adds a note if the current window did not end in time. */
static void note_late(struct note_list *list, struct arena *arena, const struct notes_facts *facts)
{
	static const char late[] = "stackd is too busy to end its open window in time: the newest "
				   "data is missing";

	if (facts->is_late && facts->late_ns > 0)
		note_add(list, arena_printf(arena, "%s, that of the last %" PRId64 " s", late,
					    (facts->late_ns + NS_PER_S / 2) / NS_PER_S));
	else if (facts->is_late)
		note_add(list, late);
}

int notes_make(struct arena *arena, const struct filter *filter, const struct notes_facts *facts,
	       struct wire_strs *out)
{
	int kernel = facts->kernel_names_error;
	struct note_list list = {};

	if (facts->session)
		note_add(&list, facts->session);
	if (facts->absent)
		note_add(&list, facts->absent);
	note_folded(&list, arena, filter, facts);
	note_brief_wakes(&list, arena, facts);
	if (facts->unread && facts->unread[0])
		note_add(&list, arena_printf(arena, "missing: %s", facts->unread));
	note_lengths(&list, arena, filter, facts);
	if (facts->has_estimates)
		note_add(&list, "where a stack has waits both inside and outside of the lengths "
				"asked for, their time is an estimate");
	if (facts->step_waits)
		note_add(&list,
			 arena_printf(arena,
				      "%" PRIu64 " of the waits are made again and again, each "
				      "for a while: they count from the first one",
				      facts->step_waits));
	note_short_waits(&list, arena, filter, facts);
	note_sampled(&list, arena, facts);
	note_late(&list, arena, facts);
	if (kernel)
		note_add(&list,
			 arena_printf(arena, "no names of kernel functions: /proc/kallsyms: %s%s",
				      strerror(-kernel),
				      kernel == -EPERM ? " (sysctl kernel.kptr_restrict)" : ""));
	if (facts->merged)
		note_add(
			&list,
			arena_printf(arena,
				     NOTE_MERGED
				     " to save disk space: %" PRIu64
				     "; sums and the longest waits are exact, but the range begins "
				     "and ends at their edges",
				     facts->merged));
	if (facts->bad)
		note_add(&list, arena_printf(arena,
					     "windows on disk that could not be read: %" PRIu64
					     ", see the gaps",
					     facts->bad));
	if (facts->has_folded && filter_selects_reasons(filter) &&
	    !filter_has_reason(filter, REASON_UNKNOWN))
		note_add(&list, "of the rows that were folded, those without stacks are left out: "
				"their reason is unknown");
	if (facts->has_folded && filter_selects_functions(filter))
		note_add(&list, "of the rows that were folded, those without stacks are left out: "
				"their functions are unknown");
	note_others(&list, arena, facts);
	note_summaries(&list, arena, facts);
	if (list.has_failed)
		return -ENOMEM;
	*out = (struct wire_strs){};
	return notes_append(arena, out, list.v, list.n);
}
