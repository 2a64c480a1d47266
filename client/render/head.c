/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/render/head.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/local_times.h"
#include "client/base/term.h"
#include "client/render/comments.h"
#include "client/render/coverage.h"
#include "client/render/iolat.h"
#include "client/render/pressure.h"
#include "client/render/table.h"
#include "common/base.h"
#include "common/note_words.h"

enum { LABEL_WIDTH = RENDER_LABEL_WIDTH };

void head_line(const struct page *page, enum style style, const char *label, const char *format,
	       ...)
{
	_cleanup_(freep) char *text = NULL, *line = NULL, *begin = NULL, *fit = NULL;
	va_list ap;

	va_start(ap, format);
	text = must_format(format, ap);
	va_end(ap);
	line = must_printf("%-*s%s", LABEL_WIDTH, label, text);
	if (!page->cuts_names || text_columns(line) <= page->width) {
		page_line(page, style, line);
		return;
	}
	begin = text_begin(line, page->width - strlen("..."));
	fit = must_printf("%s...", begin);
	page_line(page, style, fit);
}

/* Returns the longest of the gaps that end after `from`; NULL if there is none. */
static const struct wire_gap *longest_gap(const struct wire_gaps *gaps, int64_t from)
{
	const struct wire_gap *longest = NULL;

	for (size_t i = 0; i < gaps->n; i++)
		if (gaps->v[i].end > from &&
		    (!longest || gaps->v[i].end - gaps->v[i].start > longest->end - longest->start))
			longest = &gaps->v[i];
	return longest;
}

/* Prints the longest gap of an answer that ends after `from`, and how many more gaps there are. */
static void put_gaps(const struct view *view, const char *of, const struct wire_gaps *gaps,
		     int64_t from)
{
	const struct wire_gap *gap = longest_gap(gaps, from);
	_cleanup_(freep) char *reason = NULL;
	char start[TERM_TIME_MAX];
	long long more = -1;

	if (!gap)
		return;
	for (size_t i = 0; i < gaps->n; i++)
		more += gaps->v[i].end > from;
	moment_text(gap->start, gap->start, start);
	reason = name_escape(gap->reason);
	head_line(&view->page, STYLE_WARN, "gap", "%s%s from %s%s%s%s: %s", of,
		  ns_text(gap->end - gap->start), start, more > 0 ? ", and " : "",
		  more > 0 ? count_text(more) : "", more > 0 ? " more" : "", reason);
}

/* Prints how many events an answer lacks, and the first reason, if there are any. */
static void put_lost(const struct view *view, const char *of, const struct wire_losts *lost)
{
	int64_t all = lost_count(lost);
	_cleanup_(freep) char *reason = NULL;
	size_t i = 0;

	if (all == 0)
		return;
	while (lost->v[i].count == 0)
		i++;
	reason = name_escape(lost->v[i].reason);
	head_line(&view->page, STYLE_WARN, "lost", "%s%s: %s%s", of, count_text(all), reason,
		  lost->v[i].count < all ? " and other reasons (-v)" : "");
}

static bool is_lost(const struct head *head)
{
	for (size_t i = 0; i < ARRAY_SIZE(head->answers); i++)
		if (head->answers[i].reply && lost_count(&head->answers[i].reply->lost) > 0)
			return true;
	return false;
}

/* Returns which time the answer is about, and how much of what was asked for is covered. */
static char *time_words(const struct head *head, bool *is_whole_out)
{
	const struct wire_coverage *c = &head->answers[0].reply->coverage;
	_cleanup_(freep) char *covered = NULL;
	char range[3 * TERM_TIME_MAX];

	*is_whole_out = true;
	if (head->is_of_moment) {
		time_format(c->used.end, TIME_FULL, range);
		return must(strdup(range));
	}
	range_text(&c->used, range, sizeof range);
	*is_whole_out = coverage_is_whole(c);
	covered = coverage_words(c);
	return must_printf("%s: %s", range, covered);
}

/* Prints which time the answer is about, and that nothing was lost, or what. */
static void put_time(const struct view *view, const struct head *head)
{
	const struct wire_coverage *c = &head->answers[0].reply->coverage;
	int64_t from = head->is_of_moment ? c->used.end : INT64_MIN;
	bool is_whole, has_lost = is_lost(head), fits;
	_cleanup_(freep) char *words = time_words(head, &is_whole);

	fits = LABEL_WIDTH + text_columns(words) + strlen(", lost nothing") <= view->page.width;
	head_line(&view->page, is_whole ? STYLE_BOLD : STYLE_WARN, "time", "%s%s", words,
		  !has_lost && fits ? ", lost nothing" : "");
	if (!has_lost && !fits)
		head_line(&view->page, STYLE_PLAIN, "lost", "nothing");
	for (size_t i = 0; i < ARRAY_SIZE(head->answers); i++) {
		const struct wire_snapshot_reply *reply = head->answers[i].reply;

		if (!reply)
			continue;
		/* The windows of another probe may begin a moment later. */
		if (i == 0 || reply->coverage.gaps.n > c->gaps.n)
			put_gaps(view, head->answers[i].of, &reply->coverage.gaps, from);
		else if (reply->coverage.covered_ns < c->covered_ns - NS_PER_S)
			head_line(&view->page, STYLE_WARN, "gap", "%sonly %s covered",
				  head->answers[i].of, ns_text(reply->coverage.covered_ns));
		put_lost(view, head->answers[i].of, &reply->lost);
	}
}

static bool has_folded(const struct wire_snapshot_reply *reply)
{
	for (size_t i = 0; i < reply->rows.n; i++)
		if (reply->rows.v[i].folded > 0)
			return true;
	return false;
}

void head_folded(const struct page *page, const struct wire_folded *folded)
{
	if (folded)
		head_line(page, STYLE_PLAIN, "folded",
			  "%s small rows are in sums, by process or by name",
			  count_text(folded->rows));
}

/* Prints which figures of the rows are estimates, and which rows are sums of small ones, if so. */
static void put_accuracy(const struct view *view, const struct wire_snapshot_reply *reply)
{
	if (reply->sample_below_ns > 0 && reply_has_estimates(reply))
		head_line(&view->page, STYLE_PLAIN, "accuracy",
			  "~ (2 sigma): %s under %s sampled%s%s",
			  reply_is_iolat(reply) ? "operations" : "waits",
			  ns_text(reply->sample_below_ns), reply->fleet ? "" : "; exact: record ",
			  reply->fleet ? "" : reply->probe);
	if (has_folded(reply))
		head_folded(&view->page, reply->folded);
}

/* True if an answer of the head has rows that lack what was not recorded, of a struct wire_shed. */
static bool shed_touches(const struct head *head, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(head->answers); i++) {
		const struct wire_snapshot_reply *reply = head->answers[i].reply;

		if (reply && (strcmp(name, "samples") == 0 ? reply_is_sampled(reply)
			      : strcmp(name, "calls") == 0
				      ? reply_is_iolat(reply) && !above_is_disks(reply_above(reply))
				      : !reply_is_iolat(reply)))
			return true;
	}
	return false;
}

/*
 * Prints what was not recorded to keep within the budget, in one line, and whether that was so for
 * a part of the range only.
 */
static void put_shed(const struct view *view, const struct head *head,
		     const struct wire_sheds *sheds)
{
	const int64_t whole = coverage_length(&head->answers[0].reply->coverage);
	_cleanup_(freep) char *text = must(strdup(""));
	bool is_partly = false;

	for (size_t i = 0; i < sheds->n; i++) {
		_cleanup_(freep) char *words = name_escape(shed_brief(sheds->v[i].name));
		char *more;

		if (!shed_touches(head, sheds->v[i].name))
			continue;
		/* An edge of the range may be off by a second. */
		is_partly |= sheds->v[i].length_ns != WIRE_ABSENT &&
			     sheds->v[i].length_ns < whole - NS_PER_S;
		more = must_printf("%s%s%s", text, text[0] ? ", " : "", words);
		free(text);
		text = more;
	}
	if (text[0])
		head_line(&view->page, STYLE_WARN, "budget", "%snot recorded: %s (-v)",
			  is_partly ? "at times " : "", text);
}

/* Prints what stackd cost if a minute cost more than its budget, and what it did not record. */
static void put_cost(const struct view *view, const struct head *head)
{
	const struct wire_cost *cost = head->answers[0].reply->cost;
	char beyond[192];

	if (!cost)
		return;
	if (cost_beyond_text(cost, beyond, sizeof(beyond)))
		page_wrap(&view->page, STYLE_WARN, "cost", LABEL_WIDTH, "%s", beyond);
	put_shed(view, head, &cost->shed);
}

static void put_notes(const struct view *view, const struct wire_strs *notes)
{
	for (size_t i = 0; i < notes->n; i++) {
		_cleanup_(freep) char *local = NULL, *note = NULL;

		if (note_is_of_detail(notes->v[i]))
			continue;
		local = local_times(notes->v[i], clock_ns(CLOCK_REALTIME));
		note = name_escape(local);
		page_wrap(&view->page, STYLE_PLAIN, "note", LABEL_WIDTH, "%s", note);
	}
}

/* True if rows of requests to disks stand beside rows of their parts, such as the queue. */
static bool has_parts_of_requests(const struct wire_snapshot_reply *reply)
{
	for (size_t i = 0; i < reply->rows.n; i++)
		if (reply->rows.v[i].io && io_is_part_of_request(reply->rows.v[i].io->layer))
			return true;
	return false;
}

bool totals_are_of_rows(const struct wire_snapshot_reply *reply)
{
	return reply->fleet && reply->totals.cpus == WIRE_ABSENT;
}

/* Prints the sums of the times of an answer's threads, or its number of operations. */
static void put_totals(const struct view *view, const struct wire_snapshot_reply *reply)
{
	const struct wire_totals *t = &reply->totals;
	int64_t doubt = totals_doubt(t);
	int64_t length = coverage_length(&reply->coverage);
	_cleanup_(freep) char *on = table_time("", t->on_cpu_ns, ""), *who = NULL,
			      *ready = table_time("", t->runnable_ns - doubt, ""),
			      *blocked = table_time("", t->blocked_ns, "");
	const char *about = t->sampled_ns > 0 ? "~" : "";

	/* Where rows were folded, it is only known how many threads there were at most. */
	who = reply->folded || totals_are_of_rows(reply)
		      ? must_printf("%s", "")
		      : must_printf("%s thread%s: ", count_text(t->threads),
				    t->threads == 1 ? "" : "s");
	if (reply_is_iolat(reply))
		head_line(&view->page, STYLE_PLAIN, "totals", "%s operation%s%s, %s a second",
			  count_text(t->ios), t->ios == 1 ? "" : "s",
			  has_parts_of_requests(reply) ? ", also those that are a part of others"
						       : "",
			  count_text(length > 0 ? (long long)((double)t->ios * NS_PER_S /
							      (double)length)
						: 0));
	else if (reply_has_wakers(reply))
		head_line(&view->page, STYLE_PLAIN, "totals",
			  "%s%s%s waits, blocked %s%s, runnable %s%s", who, about,
			  count_text(t->waits), about, blocked, about, ready);
	else if (reply_is_sampled(reply))
		head_line(&view->page, STYLE_PLAIN, "totals", "%son CPU %s%s, %s%s samples of %s",
			  who, reply_has_estimates(reply) ? "~" : "", on,
			  reply_has_estimates(reply) ? "~" : "", count_text(t->samples),
			  ns_text(reply->period_ns));
	else if (totals_are_of_rows(reply))
		head_line(&view->page, STYLE_PLAIN, "totals", "runnable %s, blocked %s", ready,
			  blocked);
	else
		head_line(&view->page, STYLE_PLAIN, "totals",
			  "%son CPU %s, runnable %s, blocked %s", who, on, ready, blocked);
}

/* Prints how busy the CPUs were and who waited for them, and the pressure. */
static void put_load(const struct view *view, const struct wire_snapshot_reply *reply)
{
	const struct wire_totals *t = &reply->totals;
	int64_t length = coverage_length(&reply->coverage);
	int64_t doubt = totals_doubt(t);
	int64_t idle = reply_is_sampled(reply) ? reply->idle.total_ns : 0;
	_cleanup_(freep) char *pressure = pressure_line(reply->pressure);
	char busy[32], ready[32];
	bool has_ready = !reply_is_sampled(reply);

	average_text(t->on_cpu_ns - idle, length, busy);
	average_text(t->runnable_ns - doubt, length, ready);
	head_line(&view->page, STYLE_PLAIN, "CPUs", "%s of %s %s%s%s%s; pressure %s", busy,
		  t->cpus > 0 ? count_text(t->cpus) : "?", view->names_threads ? "used" : "busy",
		  has_ready ? ", " : "", has_ready ? ready : "", has_ready ? " ready" : "",
		  pressure);
}

static void put_head(const struct view *view, const void *context)
{
	const struct head *head = context;
	const struct wire_snapshot_reply *reply = head->answers[0].reply;
	bool has_times = !reply_has_calls(reply);

	put_time(view, head);
	if (!head->is_of_moment)
		put_cost(view, head);
	if (!head->is_of_moment && !head->is_of_spawns && has_times)
		put_accuracy(view, reply);
	put_notes(view, &reply->notes);
	if (head->is_of_slices)
		return;
	if (reply_above(reply))
		head_line(&view->page, STYLE_PLAIN, "not seen", "%s", reply_above(reply));
	if (reply->missing || head->is_of_moment || !has_times)
		return;
	if (head->has_totals)
		put_totals(view, reply);
	if (reply_has_wakers(reply))
		return;
	if (head->has_totals && !reply_is_iolat(reply))
		render_kept(view, reply,
			    reply_is_sampled(reply)
				    ? reply->totals.on_cpu_ns
				    : reply->totals.runnable_ns + reply->totals.blocked_ns);
	if (!reply_is_iolat(reply) && !totals_are_of_rows(reply))
		put_load(view, reply);
}

size_t head_counted(const struct view *view,
		    void (*put)(const struct view *view, const void *context), const void *context)
{
	_cleanup_(freep) char *text = NULL;
	struct view inner = *view;
	size_t size, n = 0;

	inner.page.out = must(open_memstream(&text, &size));
	put(&inner, context);
	must(fclose(inner.page.out) == 0 ? text : NULL);
	fputs(text, view->page.out);
	for (const char *at = text; *at; at++)
		n += *at == '\n';
	return n;
}

size_t head_print(const struct view *view, const struct head *head)
{
	return head_counted(view, put_head, head);
}
