/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_NOTES_H
#define STACKD_DAEMON_QUERY_NOTES_H

/*
 * Makes the notes of an answer: sentences that prevent a misunderstanding of its numbers, such as
 * "waits under 100 us are left out: their state is not recorded". Takes the filter and facts about
 * the data. The strings are static or in the arena. No state; any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "daemon/query/aggregate.h"
#include "daemon/session/filter.h"
#include "proto/wire.h"

struct notes_facts {
	/* waits shorter than this are recorded without stack, state and exact length */
	int64_t min_wait_ns;
	/*
	 * if not 0: waits shorter than this were recorded by chance, and rows have estimates of
	 * them; min_wait_ns and short_waits are then 0
	 */
	int64_t sample_below_ns;
	/*
	 * if not 0: waits were sampled because of the budget only, so that those shorter than this
	 * were not recorded at all
	 */
	int64_t budget_from_ns;
	enum probe_kind kind;
	const char *session; /* remark about the session, see session_note(); NULL: there is none */
	/* number of waits below min_wait_ns in the threads that the filter selects */
	uint64_t short_waits;
	/*
	 * sentence about the pids and tids of the filter that are in no window; NULL: there are
	 * none
	 */
	const char *absent;
	/* phrase about user stacks that could not be read; NULL or empty: there are none */
	const char *unread;
	/* some times are estimates, because the filter selects waits by length */
	bool has_estimates;
	/* the answer has only waits that have not ended, whose length is known exactly */
	bool open_only;
	uint64_t step_waits; /* see struct aggregate_totals */
	/* the current window did not end in time, so the newest data is missing */
	bool is_late;
	int64_t late_ns; /* is_late: how long ago the newest window ended; 0: not known */
	bool has_folded; /* rows of the answer's windows were folded */
	bool has_others; /* some of them are rows of WINDOW_OTHERS that the filter leaves out */
	/*
	 * the part of waits_ns, the time of the threads that the filter selects, that no row of the
	 * answer has; 0 also if the filter leaves out waits of these threads
	 */
	uint64_t missing_ns;
	bool has_lost; /* events were lost in the range */
	uint64_t waits_ns;
	/* number of windows of the answer that were each merged from several on disk */
	uint64_t merged;
	uint64_t bad;			     /* number of windows on disk that could not be read */
	struct timeline_summaries summaries; /* what was read in place of windows */
	/* facts about the groups that did not fit into the query's memory */
	struct aggregate_others others;
	size_t max_memory; /* value of the setting [query] max_memory, in bytes */
	/* 0, or the negative errno of the attempt to read the names of kernel functions */
	int kernel_names_error;
};

/* Sets *out to the notes that apply, the most important one first. Returns 0 or -ENOMEM. */
int notes_make(struct arena *arena, const struct filter *filter, const struct notes_facts *facts,
	       struct wire_strs *out);

/*
 * Adds the n notes in `more` to the end of *notes; the strings are borrowed. Returns 0, or -ENOMEM
 * with *notes unchanged.
 */
int notes_append(struct arena *arena, struct wire_strs *notes, const char *const *more, size_t n);

#endif
