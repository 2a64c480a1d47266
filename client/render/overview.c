/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"
#include "client/render/coverage.h"
#include "client/render/parts.h"
#include "client/render/pressure.h"
#include "client/render/render.h"
#include "common/base.h"

enum { FRAMES_MAX = 6 };

struct ranked {
	const struct wire_row *row;
	int64_t ns;
};

/* Compares rows for qsort(): the longest time comes first; equal rows keep their order. */
static int compare_ranked(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	return (x->row > y->row) - (x->row < y->row);
}

static void render_ranked(const struct view *view, const struct part *part,
			  const struct ranked *ranked, int64_t whole)
{
	_cleanup_(freep) char *title = row_title(view, ranked->row), *right = NULL;
	int r = asprintf(&right, "%s  %5s", ns_text(ranked->ns), share_text(ranked->ns, whole));

	must(r < 0 ? NULL : right);
	page_pair(&view->page, STYLE_PLAIN, title, right);
	if (part->is_of_waits) {
		_cleanup_(freep) char *state = state_words(ranked->row);

		page_wrap(&view->page, STYLE_PLAIN, "", 2, "%s", state);
	}
	render_frames(view, ranked->row, RENDER_FRAME_INDENT, view->verbose ? 0 : FRAMES_MAX);
}

/*
 * Sets *n to the number of rows that have time in one part of the overview, and *ns to the sum of
 * this time, over all rows that the daemon has. reply->rows may have only the first of them. If
 * reply->parts does not have the part, changes nothing.
 */
static void part_sums(const struct part *part, const struct wire_snapshot_reply *reply, size_t *n,
		      int64_t *ns)
{
	for (size_t i = 0; i < reply->parts.n; i++) {
		if (strcmp(reply->parts.v[i].name, part->name) != 0)
			continue;
		*n = (size_t)reply->parts.v[i].rows;
		*ns = reply->parts.v[i].total_ns;
	}
}

/*
 * Prints one part of the time, such as "blocked", and the stacks that took most of it. If no stack
 * has time in this part, prints the reason `why`, unless `why` is NULL.
 */
static void render_part(const struct view *view, const struct part *part,
			const struct wire_snapshot_reply *reply, const char *why)
{
	struct ranked *ranked = must(calloc(reply->rows.n + 1, sizeof *ranked));
	size_t n = 0, n_all = 0, shown;
	int64_t whole = 0;

	for (size_t i = 0; i < reply->rows.n; i++) {
		int64_t ns = part->time(&reply->rows.v[i]);

		if (ns <= 0)
			continue;
		ranked[n++] = (struct ranked){ &reply->rows.v[i], ns };
		whole += ns;
	}
	n_all = n;
	part_sums(part, reply, &n_all, &whole);
	qsort(ranked, n, sizeof *ranked, compare_ranked);
	shown = view->top > 0 && (uint64_t)view->top < n ? (size_t)view->top : n;
	if (n == 0 && !part->nothing) {
		free(ranked);
		return;
	}
	page_break(&view->page);
	if (n == 0)
		page_wrap(&view->page, STYLE_BOLD, part->name, RENDER_LABEL_WIDTH, "%s%s%s",
			  part->nothing, why ? ": " : "", why ? why : "");
	else
		page_wrap(&view->page, STYLE_BOLD, part->name, RENDER_LABEL_WIDTH,
			  "%s%s, %zu of %zu stack%s", ns_text(whole),
			  part->is_of_waits ? "" : " by samples", shown, n_all,
			  n_all == 1 ? "" : "s");
	for (size_t i = 0; i < shown; i++)
		render_ranked(view, part, &ranked[i], whole);
	free(ranked);
}

void render_overview(const struct view *view, const struct wire_snapshot_reply *waits,
		     const struct wire_snapshot_reply *samples, const char *why)
{
	static const struct wire_snapshot_reply no_rows;
	_cleanup_(freep) char *reason = why ? name_escape(why) : NULL;
	struct view inner = *view;

	render_coverage(view, waits);
	if (samples)
		render_missing_too(view, "samples", waits, samples);
	render_totals(view, waits);
	render_pressure(view, waits->pressure);
	inner.keeps_scheduler = true;
	render_part(&inner, &parts[0], samples ? samples : &no_rows, reason);
	for (size_t i = 1; i < PARTS; i++)
		render_part(view, &parts[i], waits, NULL);
	page_break(&view->page);
	if (waits->idle.rows > 0)
		page_wrap(&view->page, STYLE_PLAIN, "", 0, "idle: %s thread%s, --idle shows",
			  count_text(waits->idle.threads), waits->idle.threads == 1 ? "" : "s");
	page_wrap(&view->page, STYLE_PLAIN, "", 0,
		  "more: stackctl snapshot offcpu, stackctl snapshot oncpu");
}
