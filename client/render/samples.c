/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/base/term.h"
#include "client/render/coverage.h"
#include "client/render/render.h"
#include "common/base.h"

static void render_head(const struct view *view, const struct wire_snapshot_reply *reply)
{
	const struct wire_totals *t = &reply->totals;
	_cleanup_(freep) char *hook = name_escape(reply->hook);
	char busy[32];

	average_text(t->on_cpu_ns - reply->idle.total_ns, coverage_length(&reply->coverage), busy);
	page_wrap(&view->page, STYLE_PLAIN, "seen", RENDER_LABEL_WIDTH,
		  "%s%s thread%s of %s process%s", fold_at_most(reply->folded),
		  count_text(t->threads), t->threads == 1 ? "" : "s", count_text(t->processes),
		  t->processes == 1 ? "" : "es");
	if (t->cpus > 0)
		page_wrap(&view->page, STYLE_PLAIN, "on CPU", RENDER_LABEL_WIDTH,
			  "%s: %s of %s CPU%s busy", ns_text(t->on_cpu_ns), busy,
			  count_text(t->cpus), t->cpus == 1 ? "" : "s");
	else
		page_wrap(&view->page, STYLE_PLAIN, "on CPU", RENDER_LABEL_WIDTH, "%s",
			  ns_text(t->on_cpu_ns));
	page_wrap(&view->page, STYLE_PLAIN, "samples", RENDER_LABEL_WIDTH, "%s, one each %s%s%s",
		  count_text(t->samples), ns_text(reply->period_ns),
		  strcmp(reply->hook, "none") == 0 ? "" : " by ",
		  strcmp(reply->hook, "none") == 0 ? "" : hook);
}

static void render_row(const struct view *view, const struct wire_row *row, int64_t whole)
{
	_cleanup_(freep) char *title = row_title(view, row), *right = NULL;

	if (asprintf(&right, "%s%s  %5s", row_about(row), ns_text(row->total_ns),
		     share_text(row->total_ns, whole)) < 0)
		right = NULL;
	must(right);
	page_break(&view->page);
	page_pair(&view->page, STYLE_BOLD, title, right);
	page_wrap(&view->page, STYLE_PLAIN, "", 2, "%s%s sample%s%s", row_about(row),
		  count_text(row->count), row->count == 1 ? "" : "s", row->idle ? ", idle" : "");
	render_frames(view, row, RENDER_FRAME_INDENT, 0);
}

void render_samples(const struct view *view, const struct wire_snapshot_reply *reply)
{
	int64_t whole = reply->shown.total_ns + reply->rest.total_ns;
	struct view inner = *view;

	inner.keeps_scheduler = true;
	if (view->verbose) {
		render_head(view, reply);
		render_kept(view, reply, reply->totals.on_cpu_ns);
	}
	if (reply->rows.n > 0)
		page_wrap(&view->page, STYLE_PLAIN, "rows", RENDER_LABEL_WIDTH, "%% of %s on a CPU",
			  ns_text(whole));
	for (size_t i = 0; i < reply->rows.n; i++)
		render_row(&inner, &reply->rows.v[i], whole);
	page_break(&view->page);
	if (reply->rows.n == 0)
		page_wrap(&view->page, STYLE_PLAIN, "", 0, "no samples");
	if (reply->rest.rows > 0)
		page_wrap(&view->page, STYLE_PLAIN, "", 0, "%s more, %s%s",
			  count_text(reply->rest.rows), share_text(reply->rest.total_ns, whole),
			  view->has_keys ? "" : ": -n 0 shows all");
	if (reply->idle.rows > 0)
		page_wrap(&view->page, STYLE_PLAIN, "", 0, "idle: %s, %s shows",
			  ns_text(reply->idle.total_ns), view->has_keys ? "i" : "--idle");
	if (view->by_stack && reply->rows.n > 1)
		page_wrap(&view->page, STYLE_PLAIN, "", 0,
			  view->has_keys ? "whole processes, functions: g"
					 : "whole processes: --by process; functions: --by "
					   "function");
}
