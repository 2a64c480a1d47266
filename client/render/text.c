/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/render/coverage.h"
#include "client/render/diff.h"
#include "client/render/formats.h"
#include "client/render/iolat.h"
#include "client/render/render.h"
#include "client/render/status.h"

void render_text(const struct view *view, const struct wire_snapshot_reply *reply)
{
	render_coverage(view, reply);
	if (reply->missing)
		render_no_data(view, reply->missing);
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
	.functions = render_functions,
	.sessions = render_sessions,
	.windows = render_windows,
};
