/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/render.h"
#include "client/term.h"
#include "proto/base.h"

enum {
	LABEL_WIDTH = 11,
	FRAME_INDENT = 6,
	FRAMES_MAX = 8, /* of a stack: enough to say what it waits for */
};

static int compare_int(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

/*
 * Uninterruptible waits first: they end neither by a signal nor by kill -9, and hold up whoever
 * needs the same lock or disk. A sleep, however old, is most often somebody's choice.
 */
static int compare_rows(const void *a, const void *b)
{
	const struct wire_row *x = *(const struct wire_row *const *)a;
	const struct wire_row *y = *(const struct wire_row *const *)b;
	int by_state = row_is_uninterruptible(y) - row_is_uninterruptible(x);
	int by_age = compare_int(y->max_ns, x->max_ns);

	if (by_state != 0)
		return by_state;
	return by_age != 0 ? by_age : compare_int(x->tid, y->tid);
}

static const struct wire_row **sort_rows(const struct wire_rows *rows)
{
	const struct wire_row **sorted = must(calloc(rows->n + 1, sizeof *sorted));

	for (size_t i = 0; i < rows->n; i++)
		sorted[i] = &rows->v[i];
	qsort(sorted, rows->n, sizeof *sorted, compare_rows);
	return sorted;
}

static void render_row(const struct view *view, const struct wire_row *row)
{
	_cleanup_(freep) char *title = row_title(view, row), *state = state_words(row);
	_cleanup_(freep) char *right = NULL;

	if (asprintf(&right, "for %s", ns_text(row->max_ns)) < 0)
		right = NULL;
	must(right);
	page_break(&view->page);
	page_pair(&view->page, STYLE_BOLD, title, right);
	page_wrap(&view->page, row_is_uninterruptible(row) ? STYLE_WARN : STYLE_PLAIN, "", 2,
		  "%s%s, still waiting", state, row->idle ? ", idle" : "");
	render_frames(view, row, FRAME_INDENT, view->verbose ? 0 : FRAMES_MAX);
}

static void render_summary(const struct view *view, const struct wire_snapshot_reply *reply,
			   size_t uninterruptible)
{
	char when[TERM_TIME_MAX];

	time_format(reply->coverage.asked.end, TIME_FULL, when);
	page_wrap(&view->page, STYLE_BOLD, "waiting", LABEL_WIDTH, "%s thread%s at %s",
		  count_text((long long)reply->rows.n), reply->rows.n == 1 ? "" : "s", when);
	if (uninterruptible > 0)
		page_wrap(&view->page, STYLE_WARN, "", LABEL_WIDTH,
			  "%s uninterruptible (D): not even kill -9 ends these; shown first",
			  count_text((long long)uninterruptible));
	else
		page_wrap(&view->page, STYLE_PLAIN, "", LABEL_WIDTH,
			  "none is uninterruptible (D); the oldest come first");
}

void render_stuck(const struct view *view, const struct wire_snapshot_reply *reply)
{
	_cleanup_(freep) const struct wire_row **rows = sort_rows(&reply->rows);
	size_t n = reply->rows.n, uninterruptible = 0;

	while (uninterruptible < n && row_is_uninterruptible(rows[uninterruptible]))
		uninterruptible++;
	render_coverage(view, reply);
	render_summary(view, reply, uninterruptible);
	if (view->top > 0 && n > (size_t)view->top)
		n = (size_t)view->top;
	for (size_t i = 0; i < n; i++)
		render_row(view, rows[view->reverse ? n - 1 - i : i]);
	page_break(&view->page);
	if (n < reply->rows.n)
		page_wrap(&view->page, STYLE_PLAIN, "", 0, "%s more: -n 0 shows all",
			  count_text((long long)(reply->rows.n - n)));
	if (reply->idle.rows > 0)
		page_wrap(&view->page, STYLE_PLAIN, "", 0, "idle: %s thread%s, --idle shows",
			  count_text(reply->idle.threads), reply->idle.threads == 1 ? "" : "s");
}
