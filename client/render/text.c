/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"
#include "client/render/iolat.h"
#include "client/render/render.h"
#include "common/base.h"

enum { LABEL_WIDTH = RENDER_LABEL_WIDTH, ROW_INDENT = 2, FRAME_INDENT = RENDER_FRAME_INDENT };

/* The second of two times needs its date only when it is another day's; the zone comes last. */
static void range_text(const struct wire_range *range, char *text, size_t size)
{
	char start[TERM_TIME_MAX], zoned[TERM_TIME_MAX];
	bool same_day = time_same_day(range->start, range->end);

	time_format(range->start, TIME_DAY, start);
	time_format(range->end, TIME_FULL, zoned);
	/* What TIME_FULL has in front of the clock is the date and a space. */
	snprintf(text, size, "%s to %s", start, same_day ? zoned + strcspn(zoned, " ") + 1 : zoned);
}

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

	for (size_t i = 0; i < coverage->gaps.n; i++) {
		const struct wire_gap *gap = &coverage->gaps.v[i];

		if (gap->start >= coverage->used.start && gap->end <= coverage->used.end)
			length -= gap->end - gap->start;
	}
	return length;
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

static void render_gap(const struct view *view, const struct wire_gap *gap, int64_t day)
{
	_cleanup_(freep) char *reason = name_escape(gap->reason);
	char range[3 * TERM_TIME_MAX];

	clock_range_text(gap->start, gap->end, day, range, sizeof range);
	page_wrap(&view->page, STYLE_WARN, "gap", LABEL_WIDTH, "%s (%s): %s", range,
		  ns_text(gap->end - gap->start), reason);
}

/* What was asked for, and how much of it whole windows have; they may reach further. */
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

static void render_doubt(const struct view *view, const struct wire_totals *totals)
{
	if (totals->unseen != WIRE_ABSENT && totals->unseen > 0)
		page_wrap(&view->page, STYLE_PLAIN, "", LABEL_WIDTH,
			  "%s wait%s in doubt: of threads not seen when the last window ended",
			  count_text(totals->unseen), totals->unseen == 1 ? "" : "s");
}

static void render_missing(const struct view *view, const struct wire_snapshot_reply *reply)
{
	render_lost(&view->page, &reply->lost, LABEL_WIDTH);
	render_doubt(view, &reply->totals);
	for (size_t i = 0; i < reply->notes.n; i++) {
		_cleanup_(freep) char *note = name_escape(reply->notes.v[i]);

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
	for (size_t i = 0; i < c->gaps.n; i++)
		render_gap(view, &c->gaps.v[i], c->used.start);
	render_missing(view, reply);
}

static bool gap_is_told(const struct wire_gaps *gaps, const struct wire_gap *gap)
{
	for (size_t i = 0; i < gaps->n; i++)
		if (gaps->v[i].start < gap->end && gaps->v[i].end > gap->start &&
		    strcmp(gaps->v[i].reason, gap->reason) == 0)
			return true;
	return false;
}

static bool note_is_told(const struct wire_strs *notes, const char *note)
{
	for (size_t i = 0; i < notes->n; i++)
		if (strcmp(notes->v[i], note) == 0)
			return true;
	return false;
}

static void render_too(const struct view *view, enum style style, const char *label,
		       const char *text)
{
	_cleanup_(freep) char *escaped = name_escape(text);

	page_wrap(&view->page, style, label, LABEL_WIDTH, "%s", escaped);
}

void render_missing_too(const struct view *view, const char *label,
			const struct wire_snapshot_reply *first,
			const struct wire_snapshot_reply *second)
{
	const struct wire_gaps *gaps = &second->coverage.gaps;
	char range[3 * TERM_TIME_MAX];

	for (size_t i = 0; i < gaps->n; i++) {
		_cleanup_(freep) char *text = NULL;

		if (gap_is_told(&first->coverage.gaps, &gaps->v[i]))
			continue;
		clock_range_text(gaps->v[i].start, gaps->v[i].end, second->coverage.used.start,
				 range, sizeof range);
		if (asprintf(&text, "gap, %s (%s): %s", range,
			     ns_text(gaps->v[i].end - gaps->v[i].start), gaps->v[i].reason) < 0)
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
		if (!note_is_told(&first->notes, second->notes.v[i]))
			render_too(view, STYLE_PLAIN, label, second->notes.v[i]);
}

void render_moment(const struct view *view, const struct wire_snapshot_reply *reply)
{
	const struct wire_coverage *c = &reply->coverage;
	char end[TERM_TIME_MAX];

	time_format(c->used.end, TIME_FULL, end);
	page_wrap(&view->page, STYLE_BOLD, "time", LABEL_WIDTH, "%s", end);
	for (size_t i = 0; i < c->gaps.n; i++)
		if (c->gaps.v[i].start >= c->used.end)
			render_gap(view, &c->gaps.v[i], c->used.start);
	render_missing(view, reply);
}

static void render_total(const struct view *view, const char *label, int64_t ns, int64_t whole,
			 const char *meaning)
{
	page_wrap(&view->page, STYLE_PLAIN, label, LABEL_WIDTH, "%-12s %5s  %s", ns_text(ns),
		  share_text(ns, whole), meaning);
}

/* 0.04, 1.6, 48: so many of something, at any time. */
void average_text(int64_t ns, int64_t length, char text[static 32])
{
	double average = length > 0 ? (double)ns / (double)length : 0;

	if (ns > 0 && average < 0.01)
		snprintf(text, 32, "<0.01");
	else
		snprintf(text, 32,
			 average < 0.1	? "%.2f"
			 : average < 10 ? "%.1f"
					: "%.0f",
			 average);
}

/* Ready for all that is known; what cannot be sure is in no average, and in no sum beside it. */
static int64_t doubtful_time(const struct wire_totals *t)
{
	return t->unseen_ns != WIRE_ABSENT && t->unseen_ns <= t->runnable_ns ? t->unseen_ns : 0;
}

void render_totals(const struct view *view, const struct wire_snapshot_reply *reply)
{
	const struct wire_totals *t = &reply->totals;
	int64_t doubt = doubtful_time(t), sure = t->runnable_ns - doubt;
	int64_t whole = t->on_cpu_ns + sure + t->blocked_ns;
	int64_t length = coverage_length(&reply->coverage);
	char busy[32], ready[32], running[96], waiting[96];

	average_text(t->on_cpu_ns, length, busy);
	average_text(sure, length, ready);
	if (t->cpus > 0)
		snprintf(running, sizeof running, "running: %s of %s CPU%s busy", busy,
			 count_text(t->cpus), t->cpus == 1 ? "" : "s");
	else
		snprintf(running, sizeof running, "running: %s CPUs busy", busy);
	snprintf(waiting, sizeof waiting, "ready: %s threads waited for a CPU, on average", ready);
	page_wrap(&view->page, STYLE_PLAIN, "seen", LABEL_WIDTH,
		  "%s thread%s of %s process%s, together for %s:", count_text(t->threads),
		  t->threads == 1 ? "" : "s", count_text(t->processes),
		  t->processes == 1 ? "" : "es", ns_text(whole));
	render_total(view, "on CPU", t->on_cpu_ns, whole, running);
	render_total(view, "runnable", sure, whole, waiting);
	if (t->throttled_ns > 0)
		render_total(view, "throttled", t->throttled_ns, whole,
			     "of that: no CPU quota left in its cgroup");
	render_total(view, "blocked", t->blocked_ns, whole,
		     "waiting for something: disk, lock, timer, peer");
	if (doubt > 0)
		page_wrap(&view->page, STYLE_PLAIN, "in doubt", LABEL_WIDTH,
			  "%-12s        ready for so long, or over: not in these sums",
			  ns_text(doubt));
	if (view->picks_waits)
		page_wrap(&view->page, STYLE_PLAIN, "", LABEL_WIDTH,
			  "sums of all waits of these threads; only the rows are picked");
	page_wrap(&view->page, STYLE_PLAIN, "waits", LABEL_WIDTH, "%s%s%s", count_text(t->waits),
		  t->open_waits > 0 ? ", not ended yet: " : "",
		  t->open_waits > 0 ? count_text(t->open_waits) : "");
	if (t->short_waits > 0)
		page_wrap(&view->page, STYLE_PLAIN, "", LABEL_WIDTH,
			  "%s more under %s, %s together, are counted without a stack",
			  count_text(t->short_waits), ns_text(reply->min_wait_ns),
			  ns_text(t->short_ns));
}

void moment_text(int64_t moment, int64_t day, char text[static TERM_TIME_MAX])
{
	time_format(moment, time_same_day(moment, day) ? TIME_MILLI : TIME_DAY_MILLI, text);
}

/*
 * "2.1 s, ended 03:12:04.123, thread 4250 (io)", "12 min, still waiting since ..., thread ..."; or
 * "262 us or more", where a filter of times left none that is known exactly.
 */
static char *longest_text(const struct wire_row *row, const struct wire_range *used)
{
	_cleanup_(freep) char *comm = row->max_comm ? name_escape(row->max_comm) : NULL;
	bool has_ended = row->max_end != WIRE_ABSENT, is_open = !has_ended && row->open > 0;
	char moment[TERM_TIME_MAX] = "", who[64] = "", *text = NULL;
	int r;

	if (has_ended || is_open)
		moment_text(has_ended ? row->max_end : used->end - row->max_ns, used->start,
			    moment);
	if (row->max_tid != WIRE_ABSENT)
		snprintf(who, sizeof who, ", thread %" PRId64, row->max_tid);
	r = asprintf(&text, "%s%s%s%s%s%s%s", ns_text(row->max_ns),
		     has_ended		   ? ", ended "
		     : !is_open		   ? " or more"
		     : row->process.exited ? ", beyond this range, since "
					   : ", still waiting since ",
		     moment, who, comm ? " (" : "", comm ? comm : "", comm ? ")" : "");
	return must(r < 0 ? NULL : text);
}

/* The split of a row's time, where it has more than one part worth a word. */
static void render_split(const struct view *view, const struct wire_row *row)
{
	if (strcmp(row->state, "mixed") != 0 && row->blocked_ns > 0 &&
	    row->runnable_ns > row->total_ns / 100)
		page_wrap(&view->page, STYLE_PLAIN, "", ROW_INDENT,
			  "%s blocked, then %s ready and waiting for a CPU",
			  ns_text(row->blocked_ns), ns_text(row->runnable_ns));
	if (row->throttled_ns > 0)
		page_wrap(&view->page, STYLE_PLAIN, "", ROW_INDENT,
			  "%s throttled: no CPU quota left in its cgroup",
			  ns_text(row->throttled_ns));
}

/* How many, how long; what of it has not ended. count is of waits that ended. */
static void render_waits(const struct view *view, const struct wire_row *row, const char *longest)
{
	int64_t n = row->count + row->open, average = n > 0 ? row->total_ns / n : 0;
	bool has_longest = row->max_ns > 0 && !view->by_max;

	if (n == 1 && has_longest)
		page_wrap(&view->page, row->open > 0 ? STYLE_WARN : STYLE_PLAIN, "", ROW_INDENT,
			  "1 wait: %s", longest);
	else
		page_wrap(&view->page, STYLE_PLAIN, "", ROW_INDENT,
			  "%s wait%s, %s in all, average %s%s%s", count_text(n), n == 1 ? "" : "s",
			  ns_text(row->total_ns), ns_text(average), has_longest ? "; longest " : "",
			  has_longest ? longest : "");
	if (row->open > 0 && n > 1)
		page_wrap(&view->page, STYLE_WARN, "", ROW_INDENT,
			  row->process.exited
				  ? "%s of them went on beyond this range, %s of that in it"
				  : "%s of them still waiting, %s of that in this range",
			  count_text(row->open), ns_text(row->open_ns));
	else if (row->open > 0 && row->open_ns < row->max_ns)
		page_wrap(&view->page, STYLE_PLAIN, "", ROW_INDENT, "%s of it in this range",
			  ns_text(row->open_ns));
}

static void render_row(const struct view *view, const struct wire_row *row, int64_t whole,
		       const struct wire_range *used)
{
	_cleanup_(freep) char *title = row_title(view, row), *state = state_words(row);
	_cleanup_(freep) char *longest = longest_text(row, used), *right = NULL;
	const char *idle = row->idle ? ", idle" : "";
	int r;

	r = view->by_max ? asprintf(&right, "%s longest", ns_text(row->max_ns))
			 : asprintf(&right, "%s  %5s", ns_text(row->total_ns),
				    share_text(row->total_ns, whole));
	must(r < 0 ? NULL : right);
	page_break(&view->page);
	page_pair(&view->page, STYLE_BOLD, title, right);
	page_wrap(&view->page, STYLE_PLAIN, "", ROW_INDENT, "%s%s", state, idle);
	if (view->by_max && row->max_ns > 0)
		page_wrap(&view->page, STYLE_PLAIN, "", ROW_INDENT, "longest: %s", longest);
	render_waits(view, row, longest);
	render_split(view, row);
	if (row_is_in_doubt(row))
		page_wrap(&view->page, STYLE_PLAIN, "", ROW_INDENT, "%s", DOUBT_WORDS);
	if (view->chain)
		render_chain(view, row);
	render_waker(view, row);
	render_frames(view, row, FRAME_INDENT, 0);
}

static void render_rest(const struct view *view, const struct wire_snapshot_reply *reply,
			int64_t whole)
{
	page_break(&view->page);
	if (reply->rows.n == 0)
		page_wrap(&view->page, STYLE_PLAIN, "", 0,
			  reply->idle.rows > 0 ? "no waits but idle ones"
			  : reply_has_wakers(reply)
				  ? "no waits that ended; stackctl stuck shows who "
				    "waits still"
				  : "no waits");
	if (reply->rest.rows > 0)
		page_wrap(&view->page, STYLE_PLAIN, "", 0, "%s more, %s: -n 0 shows all",
			  count_text(reply->rest.rows), share_text(reply->rest.total_ns, whole));
	if (reply->idle.rows > 0)
		page_wrap(&view->page, STYLE_PLAIN, "", 0, "idle: %s thread%s, --idle shows",
			  count_text(reply->idle.threads), reply->idle.threads == 1 ? "" : "s");
}

void render_text(const struct view *view, const struct wire_snapshot_reply *reply)
{
	int64_t whole = reply->shown.total_ns + reply->rest.total_ns;

	render_coverage(view, reply);
	if (reply_has_ios(reply)) {
		(view->over_time   ? render_heats
		 : view->breakdown ? render_breakdown
				   : render_ios)(view, reply);
		return;
	}
	if (reply_has_calls(reply)) {
		render_calls(view, reply);
		return;
	}
	if (reply_is_sampled(reply)) {
		render_samples(view, reply);
		return;
	}
	if (reply_has_wakers(reply))
		render_wake_totals(view, reply);
	else
		render_totals(view, reply);
	if (reply->rows.n > 0 && !view->by_max)
		page_wrap(&view->page, STYLE_PLAIN, "rows", LABEL_WIDTH, "%% of %s, %s",
			  ns_text(whole),
			  reply->idle.rows > 0 ? "the waits that are not idle" : "all waits");
	for (size_t i = 0; i < reply->rows.n; i++)
		render_row(view, &reply->rows.v[i], whole, &reply->coverage.used);
	render_rest(view, reply, whole);
}
