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

struct order {
	const struct wire_row *row;
	bool reverse;
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
	const struct order *x = a, *y = b;
	int by_state = row_is_uninterruptible(y->row) - row_is_uninterruptible(x->row);
	int by_age = compare_int(y->row->max_ns, x->row->max_ns);

	if (by_state != 0)
		return by_state;
	if (by_age != 0)
		return x->reverse ? -by_age : by_age;
	return compare_int(x->row->tid, y->row->tid);
}

static struct order *sort_rows(const struct view *view, const struct wire_rows *rows)
{
	struct order *order = must(calloc(rows->n + 1, sizeof *order));

	for (size_t i = 0; i < rows->n; i++)
		order[i] = (struct order){ &rows->v[i], view->reverse };
	qsort(order, rows->n, sizeof *order, compare_rows);
	return order;
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
	_cleanup_(freep) struct order *order = sort_rows(view, &reply->rows);
	size_t n = reply->rows.n, uninterruptible = 0;

	while (uninterruptible < n && row_is_uninterruptible(order[uninterruptible].row))
		uninterruptible++;
	render_coverage(view, reply);
	render_summary(view, reply, uninterruptible);
	if (view->top > 0 && n > (size_t)view->top)
		n = (size_t)view->top;
	for (size_t i = 0; i < n; i++)
		render_row(view, order[i].row);
	page_break(&view->page);
	if (n < reply->rows.n)
		page_wrap(&view->page, STYLE_PLAIN, "", 0, "%s more: -n 0 shows all",
			  count_text((long long)(reply->rows.n - n)));
	if (reply->idle.rows > 0)
		page_wrap(&view->page, STYLE_PLAIN, "", 0, "idle: %s thread%s, --idle shows",
			  count_text(reply->idle.threads), reply->idle.threads == 1 ? "" : "s");
}
