/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"
#include "client/render/comments.h"
#include "client/render/coverage.h"
#include "client/render/diff.h"
#include "client/render/flame.h"
#include "client/render/flame_svg.h"
#include "client/render/formats.h"
#include "client/render/measures.h"
#include "client/render/parts.h"
#include "client/render/path.h"
#include "common/base.h"

/* A picture has its size at its beginning, so that all frames are in memory before it is drawn. */
struct svg {
	const struct view *view;
	bool is_overview;
	bool has_samples;
	bool has_calls;
	int64_t on_cpu_ns; /* of an overview: the time on CPUs that the waits say */
	int64_t idle_ns, idle_threads;
	struct path path;
	struct flame flame;
	char *title; /* NULL until the first reply has come */
	char *summaries[2];
};

static void *stream_new(const struct view *view, enum stream_kind kind)
{
	struct svg *s = must(calloc(1, sizeof(*s)));

	s->view = view;
	s->is_overview = kind == STREAM_OVERVIEW;
	flame_init(&s->flame);
	return s;
}

static void set_title(struct svg *s, const struct wire_snapshot_reply *reply)
{
	char when[3 * TERM_TIME_MAX];
	_cleanup_(freep) char *text = NULL;

	range_text(&reply->coverage.used, when, sizeof when);
	if (asprintf(&text, "%s%s%s, %s", s->is_overview ? "overview" : reply->probe,
		     reply->session ? ", session " : "", reply->session ? reply->session : "",
		     when) < 0)
		text = NULL;
	s->title = name_escape(must(text));
	s->has_calls = reply_has_calls(reply);
	s->on_cpu_ns = reply->totals.on_cpu_ns;
}

/* Adds what the first reply of an answer has for the whole answer. */
static void add_answer(struct svg *s, const struct wire_snapshot_reply *reply)
{
	size_t i = s->summaries[0] ? 1 : 0;

	if (!s->title)
		set_title(s, reply);
	if (!s->summaries[i])
		s->summaries[i] = comments_summary(reply, true);
	s->idle_ns += reply->idle.total_ns;
	if (reply->idle.threads > s->idle_threads)
		s->idle_threads = reply->idle.threads;
}

/* Adds a value to the frames of a row, below `parent`. */
static void add_value(struct svg *s, size_t parent, const struct wire_row *row, int64_t value)
{
	size_t frame = parent;

	if (value <= 0)
		return;
	path_fill(&s->path, s->view, row, PATH_COMM | PATH_WAKER);
	for (size_t i = 0; i < s->path.n; i++) {
		const struct path_frame *from = &s->path.v[i];
		enum flame_kind kind = from->is_kernel ? FLAME_KERNEL
				       : from->module  ? FLAME_USER
				       : i == 0	       ? FLAME_NAME
						       : FLAME_USER;

		frame = flame_child(&s->flame, frame, from->name, kind);
	}
	flame_add(&s->flame, frame, FLAME_NEW, value);
}

/* Adds the time of a row to each part of the overview that it belongs to. */
static void add_parts(struct svg *s, const struct wire_row *row, bool is_of_waits)
{
	for (size_t i = 0; i < PARTS; i++) {
		int64_t ns = parts[i].is_of_waits == is_of_waits ? parts[i].time(row) : 0;

		if (ns > 0)
			add_value(s, flame_child(&s->flame, 0, parts[i].name, FLAME_NAME), row, ns);
	}
}

static void stream_add(void *opaque, const struct wire_snapshot_reply *reply, bool is_first)
{
	bool is_of_samples = strcmp(reply->probe, "oncpu") == 0;
	struct svg *s = opaque;

	if (is_first)
		add_answer(s, reply);
	if (is_of_samples && !reply->missing && reply->coverage.windows > 0)
		s->has_samples = true;
	for (size_t i = 0; i < reply->rows.n; i++) {
		const struct wire_row *row = &reply->rows.v[i];

		if (s->is_overview)
			add_parts(s, row, !is_of_samples);
		else
			add_value(s, 0, row,
				  s->has_calls ? row->count
				  : row->io    ? measure_io_time(row)
					       : row->total_ns);
	}
}

/* Returns the line about idle waits, which are in the picture only with --idle; NULL if there are
 * none. */
static char *idle_text(const struct svg *s)
{
	if (s->idle_ns <= 0)
		return NULL;
	/* A fleet does not say how many they are. */
	if (s->idle_threads == 0)
		return must_printf("idle waits are not shown: %s; --idle shows them",
				   ns_text(s->idle_ns));
	return must_printf("idle waits are not shown: %s of %s threads; --idle shows them",
			   ns_text(s->idle_ns), count_text(s->idle_threads));
}

static void draw(struct svg *s)
{
	_cleanup_(freep) char *idle = idle_text(s);
	struct flame_svg svg = {
		.out = s->view->page.out,
		.title = s->title,
		.is_count = s->has_calls,
	};
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(s->summaries); i++)
		if (s->summaries[i])
			svg.lines[n++] = s->summaries[i];
	if (idle)
		svg.lines[n++] = idle;
	/* Time on CPUs of which there are no samples. */
	if (s->is_overview && !s->has_samples)
		flame_add(&s->flame,
			  flame_child(&s->flame,
				      flame_child(&s->flame, 0, parts[0].name, FLAME_NAME),
				      "[no samples]", FLAME_NAME),
			  FLAME_NEW, s->on_cpu_ns);
	flame_place(&s->flame);
	flame_svg_draw(&svg, &s->flame);
}

static void stream_end(void *opaque, bool is_whole)
{
	struct svg *s = opaque;

	if (is_whole && s->title)
		draw(s);
	path_fini(&s->path);
	flame_fini(&s->flame);
	free(s->title);
	for (size_t i = 0; i < ARRAY_SIZE(s->summaries); i++)
		free(s->summaries[i]);
	free(s);
}

/* Adds the scaled base and the new value of a row to its frames. */
static void add_difference(struct flame *flame, const struct diff *diff, const struct diff_row *row)
{
	size_t frame = 0;

	for (size_t i = 0; i < diff_frames(diff, row); i++)
		frame = flame_child(flame, frame, diff_frame(diff, row, i), FLAME_USER);
	flame_add(flame, frame, FLAME_BASE, row->scaled);
	flame_add(flame, frame, FLAME_NEW, row->value[DIFF_NEW]);
}

/* Returns the range of an answer and how much of it is covered. */
static char *side_text(const struct diff *diff, enum diff_side side)
{
	const struct wire_snapshot_reply *reply = &diff->sides[side];
	_cleanup_(freep) char *summary = comments_summary(reply, true);
	char when[3 * TERM_TIME_MAX];
	char *text = NULL;

	range_text(&reply->coverage.used, when, sizeof when);
	if (asprintf(&text, "%s %s: %s", side == DIFF_BASE ? "before" : "now", when, summary) < 0)
		text = NULL;
	return must(text);
}

static void draw_difference(const struct diff *diff)
{
	_cleanup_(freep) char *base = side_text(diff, DIFF_BASE), *now = side_text(diff, DIFF_NEW);
	_cleanup_(freep) char *probe = name_escape(diff->sides[DIFF_NEW].probe), *title = NULL;
	struct flame_svg svg = {
		.out = diff->view->page.out,
		.lines = { now, base,
			   "What is before is scaled to the time that is covered now. Red: more "
			   "than before; blue: less. What is gone is in the graph of before only." },
		.is_count = diff_has_calls(diff),
		.is_comparison = true,
	};
	struct flame flame;

	if (asprintf(&title, "%s: what changed", probe) < 0)
		title = NULL;
	svg.title = must(title);
	flame_init(&flame);
	for (size_t i = 0; i < diff->n; i++)
		add_difference(&flame, diff, &diff->rows[i]);
	flame_place(&flame);
	flame_svg_draw(&svg, &flame);
	flame_fini(&flame);
}

const struct format format_svg = {
	.name = "svg",
	.suffix = "svg",
	.leaves_out_idle = true,
	.has_all_rows = true,
	.has_only_stacks = true,
	.has_one_answer = true,
	.stream_new = stream_new,
	.stream_add = stream_add,
	.stream_end = stream_end,
	.diff = draw_difference,
};
