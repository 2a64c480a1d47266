/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/render/coverage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/local_times.h"
#include "client/base/term.h"
#include "common/base.h"

enum { LABEL_WIDTH = RENDER_LABEL_WIDTH };

void range_text(const struct wire_range *range, char *text, size_t size)
{
	char start[TERM_TIME_MAX], zoned[TERM_TIME_MAX];
	bool same_day = time_same_day(range->start, range->end);

	time_format(range->start, TIME_DAY, start);
	time_format(range->end, TIME_FULL, zoned);
	/*
	 * The end, written as TIME_FULL, begins with the date and a space: skip both if the start
	 * is on the same day.
	 */
	snprintf(text, size, "%s to %s", start, same_day ? zoned + strcspn(zoned, " ") + 1 : zoned);
}

/*
 * Writes a range as two times of day. Adds dates unless the whole range is on the same day as
 * `day`. All times are in ns since 1970.
 */
static void clock_range_text(int64_t from, int64_t to, int64_t day, char *text, size_t size)
{
	char start[TERM_TIME_MAX], end[TERM_TIME_MAX];
	enum time_style style =
		time_same_day(from, day) && time_same_day(to, day) ? TIME_CLOCK : TIME_DAY_MILLI;

	time_format(from, style, start);
	time_format(to, style, end);
	snprintf(text, size, "%s to %s", start, end);
}

int64_t coverage_length(const struct wire_coverage *coverage)
{
	int64_t length = coverage->used.end - coverage->used.start;

	if (coverage->used_ns != WIRE_ABSENT)
		return coverage->used_ns;
	for (size_t i = 0; i < coverage->gaps.n; i++) {
		const struct wire_gap *gap = &coverage->gaps.v[i];

		if (gap->start >= coverage->used.start && gap->end <= coverage->used.end)
			length -= gap->end - gap->start;
	}
	return length;
}

bool coverage_is_whole(const struct wire_coverage *coverage)
{
	return coverage->covered_ns >= coverage->asked_ns && coverage->gaps.n == 0;
}

char *coverage_words(const struct wire_coverage *coverage)
{
	int64_t length = coverage_length(coverage);

	/*
	 * The sums are of whole windows, also of the parts outside of the range that was asked for.
	 * The lines below say which gaps there are.
	 */
	if (coverage_is_whole(coverage) || length >= coverage->asked_ns)
		return must_printf("%s covered", ns_text(length));
	if (length > coverage->covered_ns + NS_PER_S)
		return must_printf("%s covered, not all of %s", ns_text(length),
				   ns_text(coverage->asked_ns));
	return must_printf("%s of %s covered", ns_text(coverage->covered_ns),
			   ns_text(coverage->asked_ns));
}

int64_t lost_count(const struct wire_losts *lost)
{
	int64_t sum = 0;

	for (size_t i = 0; i < lost->n; i++)
		sum += lost->v[i].count;
	return sum;
}

void render_lost(const struct page *page, const struct wire_losts *lost, size_t indent)
{
	size_t shown = 0;

	for (size_t i = 0; i < lost->n; i++) {
		_cleanup_(freep) char *reason = NULL;

		if (lost->v[i].count == 0)
			continue;
		reason = name_escape(lost->v[i].reason);
		page_wrap(page, STYLE_WARN, shown++ == 0 ? "lost" : "", indent, "%s: %s", reason,
			  count_text(lost->v[i].count));
	}
	if (shown == 0)
		page_wrap(page, STYLE_PLAIN, "lost", indent, "nothing");
}

/* Gaps that follow one another and have the same reason; they are printed as one line. */
struct gap_run {
	const struct wire_gap *v;
	size_t n;
};

/* Returns the run of gaps that begins with gap number i. */
static struct gap_run gap_run_at(const struct wire_gaps *gaps, size_t i)
{
	struct gap_run run = { &gaps->v[i], 1 };

	while (i + run.n < gaps->n && strcmp(run.v[run.n].reason, run.v[0].reason) == 0)
		run.n++;
	return run;
}

/*
 * Returns a run of gaps as "14:09:00 to 14:21:55 (12 min 30 s in 3 gaps): REASON". The caller frees
 * the text.
 */
static char *gap_run_text(const struct gap_run *run, int64_t day)
{
	char range[3 * TERM_TIME_MAX], *text = NULL;
	int64_t ns = 0;
	int r;

	for (size_t i = 0; i < run->n; i++)
		ns += run->v[i].end - run->v[i].start;
	clock_range_text(run->v[0].start, run->v[run->n - 1].end, day, range, sizeof range);
	if (run->n == 1)
		r = asprintf(&text, "%s (%s): %s", range, ns_text(ns), run->v[0].reason);
	else
		r = asprintf(&text, "%s (%s in %zu gaps): %s", range, ns_text(ns), run->n,
			     run->v[0].reason);
	return must(r < 0 ? NULL : text);
}

/*
 * Prints the label and a text about missing data as one paragraph. Escapes invisible characters in
 * the text.
 */
static void render_too(const struct view *view, enum style style, const char *label,
		       const char *text)
{
	_cleanup_(freep) char *escaped = name_escape(text);

	page_wrap(&view->page, style, label, LABEL_WIDTH, "%s", escaped);
}

/*
 * Prints the gaps that begin at the time `from` (in ns since 1970) or later. Gaps that follow one
 * another and have the same reason are printed as one line.
 */
static void render_gaps(const struct view *view, const struct wire_gaps *gaps, int64_t from,
			int64_t day)
{
	for (size_t i = 0; i < gaps->n;) {
		struct gap_run run = gap_run_at(gaps, i);
		_cleanup_(freep) char *text = NULL;

		i += run.n;
		while (run.n > 0 && run.v[0].start < from) {
			run.v++;
			run.n--;
		}
		if (run.n == 0)
			continue;
		text = gap_run_text(&run, day);
		render_too(view, STYLE_WARN, "gap", text);
	}
}

/*
 * Prints the length of the range that the user asked for. If the windows cover only a part of the
 * range, also prints the length of that part. If they cover all of it, also prints how much time is
 * shown: that is more than the range, because windows are shown whole.
 */
static void render_asked(const struct view *view, const struct wire_coverage *c)
{
	const char *windows = c->windows == 1 ? "window" : "windows";
	int64_t shown = coverage_length(c);
	char asked[TERM_TIME_MAX];

	time_format(c->asked.start, TIME_MILLI, asked);
	if (c->asked_ns <= NS_PER_US)
		page_wrap(&view->page, STYLE_PLAIN, "asked", LABEL_WIDTH, "the window of %s",
			  asked);
	else if (c->covered_ns < c->asked_ns || c->gaps.n > 0)
		page_wrap(&view->page, STYLE_WARN, "asked", LABEL_WIDTH,
			  "%s, of which %s (%s) are covered by %s %s", ns_text(c->asked_ns),
			  ns_text(c->covered_ns), share_text(c->covered_ns, c->asked_ns),
			  count_text(c->windows), windows);
	else if (shown - c->asked_ns < NS_PER_MS)
		page_wrap(&view->page, STYLE_PLAIN, "asked", LABEL_WIDTH,
			  "%s, all of it covered by %s %s", ns_text(c->asked_ns),
			  count_text(c->windows), windows);
	else
		page_wrap(&view->page, STYLE_PLAIN, "asked", LABEL_WIDTH,
			  "%s; shown %s (%s whole %s)", ns_text(c->asked_ns), ns_text(shown),
			  count_text(c->windows), windows);
}

static void render_doubtful_waits(const struct view *view, const struct wire_totals *totals)
{
	if (totals->unseen != WIRE_ABSENT && totals->unseen > 0)
		page_wrap(
			&view->page, STYLE_PLAIN, "", LABEL_WIDTH,
			"%s wait%s may be over: the thread was not seen when the last window ended",
			count_text(totals->unseen), totals->unseen == 1 ? "" : "s");
}

void render_fold(const struct page *page, const struct wire_folded *folded, size_t indent)
{
	if (!folded)
		return;
	page_wrap(page, STYLE_PLAIN, "folded", indent,
		  "%s rows and threads of %s processes, %s in all, are in sums, by process or by "
		  "name",
		  count_text(folded->rows), count_text(folded->processes),
		  ns_text(folded->total_ns));
}

double cpu_percent(int64_t cpu_ns, int64_t length_ns)
{
	return length_ns > 0 ? 100.0 * (double)cpu_ns / (double)length_ns : 0.0;
}

int64_t cost_held_ns(const struct wire_cost *cost)
{
	return cost->cpu_ns - cost->answers_ns + cost->bpf_ns - cost->sessions_ns;
}

bool cost_clients_text(const struct wire_cost *cost, char *out, size_t size)
{
	const double answers = cpu_percent(cost->answers_ns, cost->length_ns),
		     sessions = cpu_percent(cost->sessions_ns, cost->length_ns);

	snprintf(out, size, "beside this, answers to clients %.1f %%, sessions of clients %.1f %%",
		 answers, sessions);
	return answers + sessions >= 0.05;
}

bool cost_beyond_text(const struct wire_cost *cost, char *out, size_t size)
{
	const bool is_threads = 2 * (cost->cpu_ns - cost->answers_ns) > cost_held_ns(cost);

	if (cost->beyond_ns <= 0)
		return false;
	snprintf(out, size,
		 "over budget for %s: more than %.3g %% of a CPU over a minute, most by %s: raise "
		 "[budget] cpu or %s",
		 ns_text(cost->beyond_ns), cpu_percent(cost->budget_ns, cost->limited_ns),
		 is_threads ? "its threads" : "its programs in the kernel",
		 is_threads ? "[window] length" : "set a [probe.NAME] enabled = no");
	return true;
}

/* Writes what the setting [budget] cpu allowed, in brackets; "" if there was no limit. */
static void budget_text(const struct wire_cost *cost, char *out, size_t size)
{
	const int64_t unknown = cost->unknown_ns != WIRE_ABSENT ? cost->unknown_ns : 0,
		      limited =
			      cost->limited_ns != WIRE_ABSENT ? cost->limited_ns : cost->length_ns;

	out[0] = '\0';
	if (cost->budget_ns != WIRE_ABSENT && cost->length_ns > 0)
		snprintf(out, size, " (budget %.3g %%%s%s)", cpu_percent(cost->budget_ns, limited),
			 limited < cost->length_ns ? " for " : "",
			 limited < cost->length_ns ? ns_text(limited) : "");
	else if (unknown > 0)
		snprintf(out, size, " (budget not known)");
}

/* Writes how many of the sampled waits were so only in bursts; "" if none were. */
static void braked_text(const struct wire_cost *cost, char *out, size_t size)
{
	out[0] = '\0';
	if (cost->braked != WIRE_ABSENT)
		snprintf(out, size, ", %s of them only as their CPU had too many at once",
			 count_text(cost->braked));
}

bool cost_lacks(const struct wire_cost *cost, const char *name)
{
	for (size_t i = 0; cost && i < cost->shed.n; i++)
		if (strcmp(cost->shed.v[i].name, name) == 0)
			return true;
	return false;
}

const char *shed_words(const char *name)
{
	return strcmp(name, "samples") == 0  ? "most samples of oncpu (those left stand for all)"
	       : strcmp(name, "calls") == 0  ? "operations of iolat other than requests to disks"
	       : strcmp(name, "frames") == 0 ? "frames of user stacks behind the first 32"
	       : strcmp(name, "brief") == 0
		       ? "functions in new files of processes that live less than a second"
		       : name;
}

const char *shed_brief(const char *name)
{
	return strcmp(name, "samples") == 0  ? "most samples"
	       : strcmp(name, "calls") == 0  ? "I/O calls"
	       : strcmp(name, "frames") == 0 ? "deep frames"
	       : strcmp(name, "brief") == 0  ? "new files"
					     : name;
}

void render_shed(const struct page *page, const struct wire_shed *shed, const char *when,
		 size_t indent)
{
	_cleanup_(freep) char *words = name_escape(shed_words(shed->name));

	page_wrap(page, STYLE_WARN, "", indent,
		  "%s: %s, as all would cost more than [budget] cpu allows", when, words);
}

void render_cost(const struct page *page, const struct wire_cost *cost, int64_t sample_below_ns,
		 size_t indent)
{
	const bool is_sampled = sample_below_ns > 0;
	char budget[64], braked[96], clients[96], beyond[192];
	bool has_clients;

	if (!cost)
		return;
	budget_text(cost, budget, sizeof(budget));
	braked_text(cost, braked, sizeof(braked));
	has_clients = cost_clients_text(cost, clients, sizeof(clients));
	page_wrap(page, STYLE_PLAIN, "cost", indent,
		  "stackd took %.1f %% of a CPU%s: %.1f %% its threads, %.1f %% its programs in "
		  "the kernel%s%s%s%s%s%s",
		  cpu_percent(cost_held_ns(cost), cost->length_ns), budget,
		  cpu_percent(cost->cpu_ns - cost->answers_ns, cost->length_ns),
		  cpu_percent(cost->bpf_ns - cost->sessions_ns, cost->length_ns),
		  has_clients ? "; " : "", has_clients ? clients : "",
		  is_sampled ? "; waits under " : "", is_sampled ? ns_text(sample_below_ns) : "",
		  is_sampled ? " are sampled" : "", is_sampled ? braked : "");
	if (cost_beyond_text(cost, beyond, sizeof(beyond)))
		page_wrap(page, STYLE_WARN, "", indent, "%s", beyond);
	for (size_t i = 0; i < cost->shed.n; i++) {
		const struct wire_shed *shed = &cost->shed.v[i];
		char when[64];

		snprintf(when, sizeof(when), "not recorded for %s",
			 shed->length_ns != WIRE_ABSENT ? ns_text(shed->length_ns) : "a time");
		render_shed(page, shed, when, indent);
	}
}

static void render_missing(const struct view *view, const struct wire_snapshot_reply *reply)
{
	render_lost(&view->page, &reply->lost, LABEL_WIDTH);
	render_fold(&view->page, reply->folded, LABEL_WIDTH);
	render_doubtful_waits(view, &reply->totals);
	for (size_t i = 0; i < reply->notes.n; i++) {
		_cleanup_(freep) char *local =
			local_times(reply->notes.v[i], clock_ns(CLOCK_REALTIME));
		_cleanup_(freep) char *note = name_escape(local);

		page_wrap(&view->page, STYLE_PLAIN, "note", LABEL_WIDTH, "%s", note);
	}
}

void render_coverage(const struct view *view, const struct wire_snapshot_reply *reply)
{
	const struct wire_coverage *c = &reply->coverage;
	char range[3 * TERM_TIME_MAX];

	range_text(&c->used, range, sizeof range);
	page_wrap(&view->page, STYLE_BOLD, "time", LABEL_WIDTH, "%s", range);
	render_asked(view, c);
	render_gaps(view, &c->gaps, INT64_MIN, c->used.start);
	render_missing(view, reply);
	/* The length of an answer about I/O is that of operations, not of waits. */
	render_cost(&view->page, reply->cost,
		    strcmp(reply->probe, "iolat") == 0 ? WIRE_ABSENT : reply->sample_below_ns,
		    LABEL_WIDTH);
}

void render_no_data(const struct view *view, const char *why)
{
	render_too(view, STYLE_WARN, "no data", why);
}

static bool gap_is_among(const struct wire_gaps *gaps, const struct wire_gap *gap)
{
	for (size_t i = 0; i < gaps->n; i++)
		if (gaps->v[i].start < gap->end && gaps->v[i].end > gap->start &&
		    strcmp(gaps->v[i].reason, gap->reason) == 0)
			return true;
	return false;
}

static bool note_is_among(const struct wire_strs *notes, const char *note)
{
	for (size_t i = 0; i < notes->n; i++)
		if (strcmp(notes->v[i], note) == 0)
			return true;
	return false;
}

void render_missing_too(const struct view *view, const char *label,
			const struct wire_snapshot_reply *first,
			const struct wire_snapshot_reply *second)
{
	const struct wire_gaps *gaps = &second->coverage.gaps;

	for (size_t i = 0; i < gaps->n;) {
		struct gap_run run = gap_run_at(gaps, i);
		_cleanup_(freep) char *of_run = NULL, *text = NULL;

		i += run.n;
		while (run.n > 0 && gap_is_among(&first->coverage.gaps, &run.v[0])) {
			run.v++;
			run.n--;
		}
		if (run.n == 0)
			continue;
		of_run = gap_run_text(&run, second->coverage.used.start);
		if (asprintf(&text, "gap, %s", of_run) < 0)
			text = NULL;
		render_too(view, STYLE_WARN, label, must(text));
	}
	for (size_t i = 0; i < second->lost.n; i++) {
		_cleanup_(freep) char *text = NULL;

		if (second->lost.v[i].count == 0)
			continue;
		if (asprintf(&text, "lost, %s: %s", second->lost.v[i].reason,
			     count_text(second->lost.v[i].count)) < 0)
			text = NULL;
		render_too(view, STYLE_WARN, label, must(text));
	}
	for (size_t i = 0; i < second->notes.n; i++)
		if (!note_is_among(&first->notes, second->notes.v[i]))
			render_too(view, STYLE_PLAIN, label, second->notes.v[i]);
}

void render_moment(const struct view *view, const struct wire_snapshot_reply *reply)
{
	const struct wire_coverage *c = &reply->coverage;
	char end[TERM_TIME_MAX];

	time_format(c->used.end, TIME_FULL, end);
	page_wrap(&view->page, STYLE_BOLD, "time", LABEL_WIDTH, "%s", end);
	render_gaps(view, &c->gaps, c->used.end, c->used.start);
	render_missing(view, reply);
}

void moment_text(int64_t moment, int64_t day, char text[static TERM_TIME_MAX])
{
	time_format(moment, time_same_day(moment, day) ? TIME_MILLI : TIME_DAY_MILLI, text);
}
