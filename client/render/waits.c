/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"
#include "client/render/coverage.h"
#include "client/render/render.h"
#include "common/base.h"

enum { LABEL_WIDTH = RENDER_LABEL_WIDTH, ROW_INDENT = 2, FRAME_INDENT = RENDER_FRAME_INDENT };

static void render_total(const struct view *view, const char *label, int64_t ns, int64_t whole,
			 const char *meaning)
{
	page_wrap(&view->page, STYLE_PLAIN, label, LABEL_WIDTH, "%-12s %5s  %s", ns_text(ns),
		  share_text(ns, whole), meaning);
}
void render_totals(const struct view *view, const struct wire_snapshot_reply *reply)
{
	const struct wire_totals *t = &reply->totals;
	int64_t doubt = totals_doubt(t), sure = t->runnable_ns - doubt;
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
		  "%s%s thread%s of %s process%s, together for %s:", fold_at_most(reply->folded),
		  count_text(t->threads), t->threads == 1 ? "" : "s", count_text(t->processes),
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
			  "%-12s        maybe ready, maybe over: not in these sums",
			  ns_text(doubt));
	if (view->picks_waits)
		page_wrap(&view->page, STYLE_PLAIN, "", LABEL_WIDTH,
			  "sums of all waits of these threads; only the rows are picked");
	page_wrap(&view->page, STYLE_PLAIN, "waits", LABEL_WIDTH, "%s%s%s", count_text(t->waits),
		  t->open_waits > 0 ? ", not ended yet: " : "",
		  t->open_waits > 0 ? count_text(t->open_waits) : "");
	if (reply->sample_below_ns > 0)
		page_wrap(&view->page, STYLE_PLAIN, "", LABEL_WIDTH,
			  "%s of them under %s, %s together: only some of these are recorded, and "
			  "stand for all; ~ marks what they tell",
			  count_text(t->short_waits), ns_text(reply->sample_below_ns),
			  ns_text(t->short_ns));
	else if (t->short_waits > 0)
		page_wrap(&view->page, STYLE_PLAIN, "", LABEL_WIDTH,
			  "%s more under %s, %s together, are counted without a stack",
			  count_text(t->short_waits), ns_text(reply->min_wait_ns),
			  ns_text(t->short_ns));
}

/*
 * Returns the longest wait of a row as "2.1 s, ended 03:12:04.123, thread 4250 (io)" or "12 min,
 * still waiting since ..., thread ...". If a filter by length has left only waits whose exact
 * length is not known, the text is like "262 us or more".
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
	if (row->max_tid > 0)
		snprintf(who, sizeof who, ", thread %" PRId64, row->max_tid);
	r = asprintf(&text, "%s%s%s%s%s%s%s", ns_text(row->max_ns),
		     has_ended			   ? ", ended "
		     : !is_open			   ? " or more"
		     : process_fate(&row->process) ? ", beyond this range, since "
						   : ", still waiting since ",
		     moment, who, comm ? " (" : "", comm ? comm : "", comm ? ")" : "");
	return must(r < 0 ? NULL : text);
}

/*
 * Prints how much of a row's time was blocked and how much was ready, unless less than 1 % was
 * ready. In any case prints how much of the time was throttled, if any was.
 */
static void render_split(const struct view *view, const struct wire_row *row)
{
	if (strcmp(row->state, "mixed") != 0 && row->blocked_ns > 0 &&
	    row->runnable_ns > row->total_ns / 100)
		page_wrap(&view->page, STYLE_PLAIN, "", ROW_INDENT,
			  "%s%s blocked, then %s%s ready and waiting for a CPU", row_about(row),
			  ns_text(row->blocked_ns), row_about(row), ns_text(row->runnable_ns));
	if (row->throttled_ns > 0)
		page_wrap(&view->page, STYLE_PLAIN, "", ROW_INDENT,
			  "%s throttled: no CPU quota left in its cgroup",
			  ns_text(row->throttled_ns));
}

char *culprit_name(const struct wire_culprit *culprit, bool has_tid)
{
	_cleanup_(freep) char *comm = name_escape(culprit->comm), *process = NULL;

	if (!culprit->process || culprit->tid == culprit->pid)
		return must_printf("%s(%" PRId64 ")", comm, culprit->tid);
	process = name_escape(culprit->process);
	if (has_tid)
		return must_printf("%s(%" PRId64 ")/%s(%" PRId64 ")", process, culprit->pid, comm,
				   culprit->tid);
	if (strcmp(comm, process) == 0)
		return must_printf("%s(%" PRId64 ")", process, culprit->pid);
	return must_printf("%s(%" PRId64 ")/%s", process, culprit->pid, comm);
}

/* Prints a thread that is to blame for a wait, which may be NULL, and what it is to blame for. */
static void render_culprit(const struct view *view, const struct wire_culprit *culprit,
			   const char *what)
{
	_cleanup_(freep) char *name = NULL;

	if (!culprit)
		return;
	name = culprit_name(culprit, true);
	page_wrap(&view->page, STYLE_PLAIN, "", ROW_INDENT, "up to %s %s: %s", ns_text(culprit->ns),
		  what, name);
}

/* Prints the times of a row's reasons, if it has several. */
static void render_reasons(const struct view *view, const struct wire_row *row)
{
	_cleanup_(freep) char *words = reasons_words(row, true);

	if (row->reasons.n > 0)
		page_wrap(&view->page, STYLE_PLAIN, "", ROW_INDENT, "for %s", words);
}

/*
 * Prints the number of waits in a row, their total and average, and how many have not ended.
 * row->count is the number of those that have ended.
 */
static void render_lengths(const struct view *view, const struct wire_row *row, const char *longest)
{
	int64_t n = row->count + row->open, average = n > 0 ? row->total_ns / n : 0;
	bool has_longest = row->max_ns > 0 && !view->by_max;
	const char *about = row_about(row);

	if (n == 1 && has_longest && !*about)
		page_wrap(&view->page, row->open > 0 ? STYLE_WARN : STYLE_PLAIN, "", ROW_INDENT,
			  "1 wait: %s", longest);
	else
		page_wrap(&view->page, STYLE_PLAIN, "", ROW_INDENT,
			  "%s%s wait%s, %s%s in all, average %s%s%s%s", about, count_text(n),
			  n == 1 ? "" : "s", about, ns_text(row->total_ns), about, ns_text(average),
			  has_longest ? "; longest " : "", has_longest ? longest : "");
	if (row->open > 0 && n > 1 && row->open_ns == WIRE_ABSENT)
		page_wrap(&view->page, STYLE_WARN, "", ROW_INDENT, "%s of them %s",
			  count_text(row->open),
			  process_fate(&row->process) ? "went on beyond this range"
						      : "still waiting");
	else if (row->open > 0 && n > 1)
		page_wrap(&view->page, STYLE_WARN, "", ROW_INDENT,
			  process_fate(&row->process)
				  ? "%s of them went on beyond this range, %s of that in it"
				  : "%s of them still waiting, %s of that in this range",
			  count_text(row->open), ns_text(row->open_ns));
	else if (row->open > 0 && row->open_ns != WIRE_ABSENT && row->open_ns < row->max_ns)
		page_wrap(&view->page, STYLE_PLAIN, "", ROW_INDENT, "%s of it in this range",
			  ns_text(row->open_ns));
}

/* Prints why a row has no stacks, if its waits had some. */
static void render_no_stacks(const struct view *view, const struct wire_row *row)
{
	bool has_stacks = row->kernel || row->user || view->by || row->own == 1;

	if (!has_stacks && strcmp(row->state, "-") != 0)
		page_wrap(&view->page, STYLE_DIM, "", FRAME_INDENT,
			  "[small waits, whose stacks were not kept]");
}

static void render_row(const struct view *view, const struct wire_row *row, int64_t whole,
		       const struct wire_range *used)
{
	_cleanup_(freep) char *title = row_title(view, row), *state = state_words(row);
	_cleanup_(freep) char *longest = longest_text(row, used), *right = NULL;
	const char *idle = row->idle ? ", idle" : "";
	int r;

	r = view->by_max ? asprintf(&right, "%s longest", ns_text(row->max_ns))
			 : asprintf(&right, "%s%s  %5s", row_about(row), ns_text(row->total_ns),
				    share_text(row->total_ns, whole));
	must(r < 0 ? NULL : right);
	page_break(&view->page);
	page_pair(&view->page, STYLE_BOLD, title, right);
	page_wrap(&view->page, STYLE_PLAIN, "", ROW_INDENT, "%s%s", state, idle);
	if (view->by_max && row->max_ns > 0)
		page_wrap(&view->page, STYLE_PLAIN, "", ROW_INDENT, "longest: %s", longest);
	render_lengths(view, row, longest);
	render_split(view, row);
	render_culprit(view, row->ran_before, "ready; ran before it");
	render_culprit(view, row->held_up_by, "asleep; held up by");
	render_reasons(view, row);
	if (row_is_in_doubt(row))
		page_wrap(&view->page, STYLE_PLAIN, "", ROW_INDENT, "%s", DOUBT_WORDS);
	render_holders(view, row, row->count + row->open > 1 ? "the longest: " : "", used);
	if (view->chain)
		render_chain(view, row);
	render_waker(view, row);
	render_no_stacks(view, row);
	render_frames(view, row, FRAME_INDENT, 0);
}

char *idle_threads(const struct wire_snapshot_reply *reply, const char *noun)
{
	if (reply->idle.threads == WIRE_ABSENT)
		return must_printf("%ss", noun);
	return must_printf("%s%s %s%s", count_text(reply->idle.threads), reply->folded ? "+" : "",
			   noun, reply->idle.threads == 1 ? "" : "s");
}

void render_idle(const struct view *view, const struct wire_snapshot_reply *reply)
{
	_cleanup_(freep) char *threads = idle_threads(reply, "thread");

	if (reply->idle.rows > 0)
		page_wrap(&view->page, STYLE_PLAIN, "", 0, "idle: %s, %s shows", threads,
			  view->has_keys ? "i" : "--idle");
}

static void render_rest(const struct view *view, const struct wire_snapshot_reply *reply,
			int64_t whole)
{
	page_break(&view->page);
	if (reply->rows.n == 0)
		page_wrap(&view->page, STYLE_PLAIN, "", 0,
			  reply->idle.rows > 0 ? "no waits but idle ones"
			  : reply_has_wakers(reply)
				  ? view->has_keys ? "no waits that ended; 6 shows who waits still"
						   : "no waits that ended; stackctl stuck shows "
						     "who waits still"
				  : "no waits");
	if (reply->rest.rows > 0)
		page_wrap(&view->page, STYLE_PLAIN, "", 0, "%s more, %s%s",
			  count_text(reply->rest.rows), share_text(reply->rest.total_ns, whole),
			  view->has_keys ? "" : ": -n 0 shows all");
	render_idle(view, reply);
}

const char *whole_about(const struct view *view, const struct wire_snapshot_reply *reply)
{
	int64_t shown = reply->shown.sampled_ns, rest = reply->rest.sampled_ns;

	return sum_about(view, reply, (shown > 0 ? shown : 0) + (rest > 0 ? rest : 0));
}

void render_kept(const struct view *view, const struct wire_snapshot_reply *reply, int64_t of)
{
	int64_t excluded = reply->totals.excluded_ns > 0 ? reply->totals.excluded_ns : 0;
	int64_t kept = reply->shown.total_ns + reply->rest.total_ns + reply->idle.total_ns;

	if ((!view->picks_waits && excluded == 0) || of <= 0)
		return;
	page_wrap(&view->page, STYLE_PLAIN, "kept", LABEL_WIDTH,
		  "%s of %s (%s)%s: the filter leaves out the rest", ns_text(kept),
		  ns_text(of + excluded), share_text(kept, of + excluded),
		  reply->idle.total_ns > 0 ? ", with idle waits" : "");
}

void render_waits(const struct view *view, const struct wire_snapshot_reply *reply)
{
	int64_t whole = reply->shown.total_ns + reply->rest.total_ns;

	if (view->verbose && reply_has_wakers(reply))
		render_wake_totals(view, reply);
	else if (view->verbose)
		render_totals(view, reply);
	if (view->verbose && !reply_has_wakers(reply))
		render_kept(view, reply, reply->totals.runnable_ns + reply->totals.blocked_ns);
	if (reply->rows.n > 0 && !view->by_max)
		page_wrap(&view->page, STYLE_PLAIN, "rows", LABEL_WIDTH, "%% of %s%s, %s",
			  whole_about(view, reply), ns_text(whole),
			  reply->idle.rows > 0 ? "the waits that are not idle" : "all waits");
	for (size_t i = 0; i < reply->rows.n; i++)
		render_row(view, &reply->rows.v[i], whole, &reply->coverage.used);
	render_rest(view, reply, whole);
}
