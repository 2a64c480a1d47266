/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/render/comments.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "build_config.h"
#include "client/base/term.h"
#include "client/render/coverage.h"
#include "client/render/page.h"
#include "common/base.h"
#include "common/note_words.h"

bool note_is_of_detail(const char *note)
{
	static const char *const prefixes[] = { NOTE_BLIND, NOTE_SAMPLED, NOTE_BUDGET,
						NOTE_MERGED };

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (strncmp(note, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

struct sink {
	comment_fn put;
	void *context;
};

static void say(const struct sink *sink, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void say(const struct sink *sink, const char *format, ...)
{
	_cleanup_(freep) char *line = NULL, *escaped = NULL;
	va_list ap;

	va_start(ap, format);
	line = must_format(format, ap);
	va_end(ap);
	escaped = name_escape(line);
	sink->put(sink->context, escaped);
}

static void say_gaps(const struct sink *sink, const struct wire_gaps *gaps)
{
	for (size_t i = 0; i < gaps->n && i < COMMENTS_MAX; i++) {
		const struct wire_gap *gap = &gaps->v[i];
		const struct wire_range range = { gap->start, gap->end };
		char when[3 * TERM_TIME_MAX];

		range_text(&range, when, sizeof when);
		say(sink, "gap %s (%s): %s", when, ns_text(gap->end - gap->start), gap->reason);
	}
	if (gaps->n > COMMENTS_MAX)
		say(sink, "%zu more gaps", gaps->n - COMMENTS_MAX);
}

/* Says what was lost; that nothing was, only if says_nothing is true. */
static void say_lost(const struct sink *sink, const struct wire_losts *lost, bool says_nothing)
{
	size_t n = 0;

	for (size_t i = 0; i < lost->n && n < COMMENTS_MAX; i++)
		if (lost->v[i].count > 0) {
			say(sink, "lost %" PRId64 ": %s", lost->v[i].count, lost->v[i].reason);
			n++;
		}
	if (n == 0 && says_nothing)
		say(sink, "lost nothing");
}

/* Says which figures are estimates, and which waits have no stacks. */
static void say_estimates(const struct sink *sink, const struct wire_snapshot_reply *reply)
{
	if (reply->min_wait_ns > 0)
		say(sink, "shorter waits than %s are counted without stacks",
		    ns_text(reply->min_wait_ns));
	if (reply->sample_below_ns > 0)
		say(sink,
		    "of waits shorter than %s only some were recorded, and stand for the rest: %" PRId64
		    " ns are estimates",
		    ns_text(reply->sample_below_ns),
		    reply->shown.sampled_ns > 0 ? reply->shown.sampled_ns : 0);
	if (reply->others)
		say(sink, "%" PRId64 " rows had no room and are one, \"(others)\"",
		    reply->others->groups);
	if (reply->folded)
		say(sink, "%" PRId64 " rows of %" PRId64 " processes were folded into others",
		    reply->folded->rows, reply->folded->processes);
}

void comments_of(const struct wire_snapshot_reply *reply, comment_fn put, void *context)
{
	const struct sink sink = { put, context };
	const struct wire_coverage *coverage = &reply->coverage;
	char when[3 * TERM_TIME_MAX];

	range_text(&coverage->used, when, sizeof when);
	say(&sink, "stackd %s: %s%s%s, hook %s", STACKD_VERSION, reply->probe,
	    reply->session ? ", session " : "", reply->session ? reply->session : "", reply->hook);
	say(&sink, "time %s", when);
	say(&sink,
	    "covered %" PRId64 " ns in %" PRId64 " windows; asked for %" PRId64
	    " ns, of which %" PRId64 " ns are covered",
	    coverage_length(coverage), coverage->windows, coverage->asked_ns, coverage->covered_ns);
	if (reply->missing)
		say(&sink, "no data: %s", reply->missing);
	say_gaps(&sink, &coverage->gaps);
	say_lost(&sink, &reply->lost, true);
	say_estimates(&sink, reply);
	for (size_t i = 0; i < reply->notes.n && i < COMMENTS_MAX; i++)
		say(&sink, "note: %s", reply->notes.v[i]);
}

void comments_of_losses(const struct wire_snapshot_reply *reply, comment_fn put, void *context)
{
	const struct sink sink = { put, context };

	say_gaps(&sink, &reply->coverage.gaps);
	say_lost(&sink, &reply->lost, false);
}

void comments_of_missing(const struct wire_snapshot_reply *reply, comment_fn put, void *context)
{
	const struct sink sink = { put, context };

	comments_of_losses(reply, put, context);
	for (size_t i = 0; i < reply->notes.n && i < COMMENTS_MAX; i++)
		say(&sink, "note: %s", reply->notes.v[i]);
}

char *comments_summary(const struct wire_snapshot_reply *reply, bool has_lost)
{
	const struct wire_coverage *coverage = &reply->coverage;
	int64_t lost = lost_count(&reply->lost);
	_cleanup_(freep) char *covered = coverage_words(coverage);
	char *text = NULL, *all = NULL;
	size_t size;
	FILE *out = must(open_memstream(&text, &size));

	if (reply->missing)
		fprintf(out, "no data: %s, ", reply->missing);
	fputs(covered, out);
	if (coverage->gaps.n > 0)
		fprintf(out, ", %zu gap%s", coverage->gaps.n, coverage->gaps.n == 1 ? "" : "s");
	if (lost == 0)
		fputs(", lost nothing", out);
	else if (has_lost)
		fprintf(out, ", lost %" PRId64, lost);
	if (reply->sample_below_ns > 0 && reply->shown.sampled_ns > 0)
		fprintf(out, ", %s of the sums estimated", ns_text(reply->shown.sampled_ns));
	if (fclose(out) != 0)
		must(NULL);
	must(text);
	all = name_escape(text);
	free(text);
	return all;
}
