/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "client/render/coverage.h"
#include "client/render/diff.h"
#include "client/render/formats.h"
#include "client/render/head.h"
#include "client/render/iolat.h"
#include "client/render/lines.h"
#include "client/render/render.h"
#include "client/render/status.h"

/* True if the rows of the answer are one line each. */
static bool has_lines(const struct view *view, const struct wire_snapshot_reply *reply)
{
	if (!view->has_lines || reply_has_calls(reply))
		return false;
	return !reply_is_iolat(reply) || !view->by || strcmp(view->by, "process") == 0 ||
	       strcmp(view->by, "line") == 0;
}

/* Prints the rows of an answer: on a terminal, where they are lines, as many as fit on it. */
static void render_rows(const struct view *view, const struct wire_snapshot_reply *reply)
{
	if (has_lines(view, reply))
		render_lines(view, reply);
	else if (reply_is_iolat(reply) && view->over_time)
		render_heats(view, reply);
	else if (reply_is_iolat(reply) && view->breakdown)
		render_breakdown(view, reply);
	else if (reply_is_iolat(reply))
		render_iolat(view, reply);
	else if (reply_has_calls(reply))
		render_calls(view, reply);
	else if (reply_is_sampled(reply))
		render_samples(view, reply);
	else
		render_waits(view, reply);
}

void render_text(const struct view *view, const struct wire_snapshot_reply *reply)
{
	const struct head head = { .answers = { { "", reply } }, .has_totals = true };
	struct view rest = *view;
	size_t used = 0;

	if (view->verbose)
		render_coverage(view, reply);
	else
		used = head_print(view, &head);
	if (view->height > 0)
		rest.height = view->height > used ? view->height - used : 1;
	if (reply->missing)
		render_no_data(view, reply->missing);
	else
		render_rows(&rest, reply);
}

const struct format format_text = {
	.name = "text",
	.suffix = "txt",
	.is_for_people = true,
	.snapshot = render_text,
	.stuck = render_stuck,
	.overview = render_overview,
	.slices = render_slices,
	.diff = diff_print_text,
	.call = render_call,
	.status = render_status,
	.probes = render_probes,
	.settled = render_settled,
	.functions = render_functions,
	.sessions = render_sessions,
	.windows = render_windows,
};
