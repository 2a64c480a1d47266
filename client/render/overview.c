/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"
#include "client/render/coverage.h"
#include "client/render/head.h"
#include "client/render/iolat.h"
#include "client/render/overview_lines.h"
#include "client/render/parts.h"
#include "client/render/pressure.h"
#include "client/render/render.h"
#include "client/render/spawns.h"
#include "client/render/table.h"
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
	int r = asprintf(&right, "%s%s  %5s", row_about(ranked->row), ns_text(ranked->ns),
			 share_text(ranked->ns, whole));

	must(r < 0 ? NULL : right);
	page_pair(&view->page, STYLE_PLAIN, title, right);
	if (part->is_of_waits) {
		_cleanup_(freep) char *state = state_words(ranked->row);

		page_wrap(&view->page, STYLE_PLAIN, "", 2, "%s%s",
			  part->after && row_was_blocked(ranked->row) ? part->after : "", state);
	}
	render_frames(view, ranked->row, RENDER_FRAME_INDENT, view->verbose ? 0 : FRAMES_MAX);
}

/*
 * Sets *n to the number of rows that have time in one part of the overview, and *ns to the sum of
 * this time, over all rows that the daemon has, and *sampled_ns to the part of it that stands for
 * sampled waits. reply->rows may have only the first of them. If reply->parts does not have the
 * part, changes nothing.
 */
static void part_sums(const struct part *part, const struct wire_snapshot_reply *reply, size_t *n,
		      int64_t *ns, int64_t *sampled_ns)
{
	const struct wire_part *sums = part_find(reply, part->name);

	if (!sums)
		return;
	*n = (size_t)sums->rows;
	*ns = sums->total_ns;
	*sampled_ns = sums->sampled_ns;
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
	int64_t whole = 0, sampled_ns = WIRE_ABSENT;

	for (size_t i = 0; i < reply->rows.n; i++) {
		int64_t ns = part->time(&reply->rows.v[i]);

		if (ns <= 0)
			continue;
		ranked[n++] = (struct ranked){ &reply->rows.v[i], ns };
		whole += ns;
	}
	n_all = n;
	part_sums(part, reply, &n_all, &whole, &sampled_ns);
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
			  "%s%s%s, %zu of %zu stack%s", sum_about(view, reply, sampled_ns),
			  ns_text(whole), part->is_of_waits ? "" : " by samples", shown, n_all,
			  n_all == 1 ? "" : "s");
	for (size_t i = 0; i < shown; i++)
		render_ranked(view, part, &ranked[i], whole);
	free(ranked);
}

/* Prints a row of I/O: the process, the operation and where it went to; and its figures. */
static void render_operation(const struct view *view, const struct wire_row *row, int64_t whole)
{
	const struct wire_io *io = row->io;
	_cleanup_(freep) char *who = row_title(view, row), *place = io_target(io), *title = NULL,
			      *op = name_escape(io->op), *right = NULL;
	char p50[32], p99[32], longest[32];
	int r = asprintf(&title, "%s  %s  %s", who, op, place);

	must(r < 0 ? NULL : title);
	r = asprintf(&right, "%s  %5s", ns_text(row->total_ns), share_text(row->total_ns, whole));
	must(r < 0 ? NULL : right);
	page_pair(&view->page, STYLE_PLAIN, title, right);
	page_wrap(&view->page, STYLE_PLAIN, "", 2,
		  "%s times: half within %s, 99 %% within %s, "
		  "longest %s%s",
		  count_text(row->count), io_figure(io->p50_ns, false, p50),
		  io_figure(io->p99_ns, false, p99), io_figure(row->max_ns, false, longest),
		  io->open > 0 ? "; some have not ended" : "");
}

/* Prints the processes with the most time in one layer of I/O. */
static void render_io_layer(const struct view *view, const char *label, const char *meaning,
			    const struct wire_part *part, const struct wire_rows *rows)
{
	int64_t top = view->top, shown = top > 0 && top < part->rows ? top : part->rows;

	page_break(&view->page);
	page_wrap(&view->page, STYLE_BOLD, label, RENDER_LABEL_WIDTH, "%s %s, %s of %s row%s",
		  ns_text(part->total_ns), meaning, count_text(shown), count_text(part->rows),
		  part->rows == 1 ? "" : "s");
	for (size_t i = 0; i < rows->n && shown > 0; i++) {
		if (strcmp(rows->v[i].io->layer, part->name) != 0)
			continue;
		render_operation(view, &rows->v[i], part->total_ns);
		shown--;
	}
}

/*
 * Prints the processes that did I/O: in the uppermost layer that is recorded, and at the disks. The
 * times of layers overlap.
 */
static void render_io(const struct view *view, const struct overview *overview)
{
	_cleanup_(freep) char *why =
		overview_no_io(overview) ? name_escape(overview_no_io(overview)) : NULL;
	static const struct wire_parts nothing;
	const struct wire_parts *layers = overview->io ? &overview->io->parts : &nothing;
	bool has_upper = false;

	for (size_t i = 0; i < layers->n; i++) {
		const struct wire_part *part = &layers->v[i];

		if (strcmp(part->name, "block") == 0)
			render_io_layer(view, "disks", "in requests to disks", part,
					&overview->io->rows);
		else if (!has_upper)
			render_io_layer(view, "I/O",
					strcmp(part->name, "syscall") == 0 ? "in system calls"
									   : "in files",
					part, &overview->io->rows);
		has_upper = true;
	}
	if (has_upper)
		return;
	page_break(&view->page);
	page_wrap(&view->page, STYLE_BOLD, "I/O", RENDER_LABEL_WIDTH, "%s%s",
		  why ? "not known: " : "none", why ? why : "");
}

/* Prints all that is known about the range, for -v. */
static void render_all_known(const struct view *view, const struct overview *overview)
{
	const struct wire_snapshot_reply *waits = overview->waits;
	_cleanup_(freep) char *spawns = spawns_line(waits->spawns);
	struct wire_snapshot_reply io;

	render_coverage(view, waits);
	if (overview->samples)
		render_missing_too(view, "samples", waits, overview->samples);
	if (overview->io) {
		/* Its notes, what the probe cannot see, are left to `snapshot iolat`. */
		io = *overview->io;
		io.notes = (struct wire_strs){};
		render_missing_too(view, "I/O", waits, &io);
	}
	render_totals(view, waits);
	render_pressure(view, waits->pressure);
	if (spawns)
		page_wrap(&view->page, STYLE_PLAIN, "processes", RENDER_LABEL_WIDTH, "%s", spawns);
}

void render_overview(const struct view *view, const struct overview *overview)
{
	const struct wire_snapshot_reply *waits = overview->waits, *samples = overview->samples;
	static const struct wire_snapshot_reply no_rows;
	_cleanup_(freep) char *reason =
		overview_no_samples(overview) ? name_escape(overview_no_samples(overview)) : NULL;
	const struct head spawns_head = { .answers = { { "", waits } }, .is_of_spawns = true };
	struct view inner = *view;
	size_t used;

	if (view->by && strcmp(view->by, "parent") == 0) {
		used = head_print(view, &spawns_head);
		if (view->height > 0)
			inner.height = view->height > used ? view->height - used : 1;
		render_spawns(&inner, waits->spawns);
		return;
	}
	if (view->has_lines) {
		render_overview_lines(view, overview);
		return;
	}
	if (view->verbose)
		render_all_known(view, overview);
	else
		render_overview_head(view, overview);
	inner.keeps_scheduler = true;
	render_part(&inner, &parts[0], samples ? samples : &no_rows, reason);
	for (size_t i = 1; i < PARTS; i++)
		render_part(view, &parts[i], waits, NULL);
	render_io(view, overview);
	page_break(&view->page);
	render_idle(view, waits);
	page_wrap(&view->page, STYLE_PLAIN, "", 0,
		  "more: stackctl snapshot offcpu, stackctl snapshot oncpu%s",
		  waits->fleet ? "" : ", stackctl snapshot iolat");
}
