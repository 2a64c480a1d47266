/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"
#include "client/render/coverage.h"
#include "client/render/head.h"
#include "client/render/lines.h"
#include "client/render/render.h"
#include "client/render/stuck_entries.h"
#include "client/render/stuck_roots.h"
#include "common/base.h"

enum {
	LABEL_WIDTH = 11,
	ROW_INDENT = 2,
	FRAME_INDENT = 6,
	FRAMES_MAX = 8,	  /* maximum of frames per stack: enough to see why the thread waits */
	THREADS_MAX = 24, /* maximum number of threads listed for one entry */
};

static char *entry_title(const struct view *view, const struct stuck_entry *entry)
{
	const struct wire_row *row = entry->rows[0];
	const char *fate = process_fate(&row->process);
	_cleanup_(freep) char *comm = NULL;
	char *title = NULL;
	int r;

	if (entry->n == 1)
		return row_title(view, row);
	comm = name_escape(row->process.comm[0] ? row->process.comm : row->comm);
	r = asprintf(&title, "%s (pid %" PRId64 "%s%s): %s threads", comm, row->process.pid,
		     fate ? ", " : "", fate ? fate : "", count_text((long long)entry->n));
	return must(r < 0 ? NULL : title);
}

/*
 * Prints the threads of an entry with several threads, as "21087 21088 21089, the same stack". Adds
 * the name of a thread if it differs from that of the process.
 */
static void render_threads(const struct view *view, const struct stuck_entry *entry)
{
	size_t limit = view->verbose || entry->n <= THREADS_MAX + 1 ? entry->n : THREADS_MAX;
	_cleanup_(freep) char *text = NULL;
	int64_t oldest = entry->rows[0]->max_ns, youngest = entry->rows[entry->n - 1]->max_ns;
	size_t size;
	FILE *out = must(open_memstream(&text, &size));

	for (size_t i = 0; i < limit; i++) {
		const struct wire_row *row = entry->rows[i];
		_cleanup_(freep) char *comm = name_escape(row->comm);

		fprintf(out, "%s%" PRId64, i == 0 ? "" : " ", row->tid);
		if (strcmp(row->comm, row->process.comm) != 0)
			fprintf(out, " (%s)", comm);
	}
	if (limit < entry->n)
		fprintf(out, " and %zu more, %s", entry->n - limit,
			view->has_keys ? "g: a row for each" : "-v shows all");
	fputs(", the same stack", out);
	/*
	 * The title has the length of the longest wait. Print the range of the waits' lengths only
	 * if the longest and the shortest differ by more than 5 %.
	 */
	if (oldest - youngest > oldest / 20)
		fprintf(out, ", for %s to %s", ns_text(youngest), ns_text(oldest));
	must(fclose(out) == 0 ? text : NULL);
	page_wrap(&view->page, STYLE_PLAIN, "  threads ", 10, "%s", text);
}

static void render_entry(const struct view *view, const struct stuck_entry *entry,
			 const struct wire_range *used)
{
	const struct wire_row *row = entry->rows[0];
	_cleanup_(freep) char *title = entry_title(view, entry), *state = state_words(row);
	_cleanup_(freep) char *right = NULL;
	char since[TERM_TIME_MAX];
	int r;

	r = asprintf(&right, "for %s", ns_text(row->max_ns));
	must(r < 0 ? NULL : right);
	moment_text(used->end - row->max_ns, used->end, since);
	page_break(&view->page);
	page_pair(&view->page, STYLE_BOLD, title, right);
	page_wrap(&view->page, entry->urgency == URGENT_NOW ? STYLE_WARN : STYLE_PLAIN, "",
		  ROW_INDENT, "%s%s, since %s", state, row->idle ? ", idle" : "", since);
	if (entry->n > 1)
		render_threads(view, entry);
	render_holders(view, row, "", used);
	if (entry->urgency == URGENT_DOUBT)
		page_wrap(&view->page, STYLE_PLAIN, "", ROW_INDENT, "%s", DOUBT_WORDS);
	render_frames(view, row, FRAME_INDENT, view->verbose ? 0 : FRAMES_MAX);
}

static void render_summary(const struct view *view, const struct wire_snapshot_reply *reply,
			   const struct stuck_entries *entries)
{
	if (reply->rows.n == 0) {
		page_wrap(&view->page, STYLE_BOLD, "waiting", LABEL_WIDTH,
			  reply->idle.rows > 0 ? "nobody but idle threads" : "nobody matches");
		return;
	}
	page_wrap(&view->page, STYLE_BOLD, "waiting", LABEL_WIDTH, "%s thread%s",
		  count_text((long long)entries->waits), entries->waits == 1 ? "" : "s");
	if (entries->urgent > 0)
		page_wrap(&view->page, STYLE_WARN, "", LABEL_WIDTH,
			  "%s uninterruptible (D) for 5 s or more: not even kill -9 ends these; "
			  "shown first",
			  count_text((long long)entries->urgent));
	else
		page_wrap(
			&view->page, STYLE_PLAIN, "", LABEL_WIDTH,
			"none is uninterruptible (D) for 5 s or more; waits for locks come first, "
			"then the oldest");
	render_stuck_roots(view, reply);
}

/*
 * Prints one note if there are user stacks that have not been read yet, instead of a line for each
 * of them.
 */
static void render_unread(const struct view *view, const struct wire_rows *rows)
{
	for (size_t i = 0; !view->hides_user && i < rows->n; i++) {
		const struct wire_stack *user = rows->v[i].user;

		for (size_t f = 0; user && f < user->flags.n; f++) {
			if (strcmp(user->flags.v[f], "unread") != 0)
				continue;
			page_wrap(&view->page, STYLE_PLAIN, "note", LABEL_WIDTH,
				  "some threads have kernel frames only: their user frames are "
				  "read when the window or the wait ends");
			return;
		}
	}
}

/* Prints rows that each stand for the waits of several threads. */
static void render_stuck_by(const struct view *view, const struct wire_snapshot_reply *reply)
{
	const struct head head = { .answers = { { "", reply } }, .is_of_moment = true };
	struct wire_rows shown = reply->rows;
	int64_t waits = 0, more;

	if (view->top > 0 && shown.n > (size_t)view->top)
		shown.n = (size_t)view->top;
	more = reply->rest.rows + (int64_t)(reply->rows.n - shown.n);
	for (size_t i = 0; i < shown.n; i++)
		waits += shown.v[i].open;
	head_print(view, &head);
	if (reply->rows.n == 0)
		page_wrap(&view->page, STYLE_BOLD, "waiting", LABEL_WIDTH,
			  reply->idle.rows > 0 ? "nobody but idle threads" : "nobody matches");
	else
		page_wrap(&view->page, STYLE_BOLD, "waiting", LABEL_WIDTH, "%s thread%s%s",
			  count_text(waits), waits == 1 ? "" : "s",
			  more > 0 ? " in these rows" : "");
	render_stuck_groups(view, &shown);
	page_break(&view->page);
	if (more > 0)
		page_wrap(&view->page, STYLE_PLAIN, "", 0, "%s more: -n 0 shows all",
			  count_text(more));
	render_idle(view, reply);
}

/* Prints the entries as one line each: on a terminal, as many as fit on the screen. */
static void render_in_lines(const struct view *view, const struct wire_snapshot_reply *reply,
			    const struct stuck_entries *entries, size_t n)
{
	const struct head head = { .answers = { { "", reply } }, .is_of_moment = true };
	/* The lines that are no entries: the sum, the head of the columns, those below them. */
	size_t used = head_print(view, &head) + 3 + (reply->idle.rows > 0);
	_cleanup_(freep) char *idle = idle_threads(reply, "idle thread");

	used += render_stuck_roots(view, reply);
	if (view->height > 0 && n + used > view->height)
		n = view->height > used + 1 ? view->height - used : 1;
	if (reply->rows.n == 0)
		head_line(&view->page, STYLE_BOLD, "waiting", "%s",
			  reply->idle.rows > 0 ? "nobody but idle threads" : "nobody matches");
	else
		head_line(&view->page, STYLE_BOLD, "waiting",
			  entries->urgent > 0
				  ? "%s thread%s, %s in D for 5 s or more, which no signal ends: "
				    "first"
				  : "%s thread%s; first those for locks, then the oldest",
			  count_text((long long)entries->waits), entries->waits == 1 ? "" : "s",
			  count_text((long long)entries->urgent));
	render_stuck_lines(view, entries, n, reply->coverage.used.end);
	if (reply->idle.rows > 0)
		head_line(&view->page, STYLE_PLAIN, "hidden", "%s (--idle)", idle);
	if (reply->rows.n > 0)
		head_line(&view->page, STYLE_PLAIN, "rows", "%s of %s%s; stacks: --stacks",
			  count_text((long long)n), count_text((long long)entries->n),
			  n < entries->n ? "; all: -n 0" : "");
}

void render_stuck_rows(const struct view *view, const struct wire_rows *rows,
		       const struct wire_range *used)
{
	struct view inner = *view;
	struct stuck_entries entries;
	char moment[TERM_TIME_MAX];

	time_format(used->end, TIME_DAY, moment);
	page_pair(&view->page, STYLE_PLAIN, moment, "");
	inner.hides_unread = true;
	stuck_entries_init(&entries, view, rows);
	for (size_t i = 0; i < entries.n; i++)
		render_entry(&inner, &entries.v[i], used);
	stuck_entries_fini(&entries);
}

void render_stuck(const struct view *view, const struct wire_snapshot_reply *reply)
{
	const struct head head = { .answers = { { "", reply } }, .is_of_moment = true };
	struct stuck_entries entries;
	struct view inner = *view;
	size_t n;

	if (view->by) {
		render_stuck_by(view, reply);
		return;
	}
	stuck_entries_init(&entries, view, &reply->rows);
	n = view->top > 0 && entries.n > (size_t)view->top ? (size_t)view->top : entries.n;
	if (view->has_lines) {
		render_in_lines(view, reply, &entries, n);
		stuck_entries_fini(&entries);
		return;
	}
	if (view->verbose)
		render_moment(view, reply);
	else
		head_print(view, &head);
	render_unread(view, &reply->rows);
	render_summary(view, reply, &entries);
	inner.hides_unread = true;
	for (size_t i = 0; i < n; i++)
		render_entry(&inner, &entries.v[view->reverse ? n - 1 - i : i],
			     &reply->coverage.used);
	page_break(&view->page);
	if (n < entries.n)
		page_wrap(&view->page, STYLE_PLAIN, "", 0, "%s more: -n 0 shows all",
			  count_text((long long)(entries.n - n)));
	render_idle(view, reply);
	stuck_entries_fini(&entries);
}
