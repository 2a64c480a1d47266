/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/base/message.h"
#include "client/base/term.h"
#include "client/render/iolat.h"
#include "client/render/render.h"

const char *row_about(const struct wire_row *row)
{
	return row->estimated == 1 ? "~" : "";
}

static bool has_estimates(const struct wire_snapshot_reply *reply)
{
	for (size_t i = 0; i < reply->rows.n; i++)
		if (reply->rows.v[i].estimated == 1)
			return true;
	return false;
}

const char *sum_about(const struct view *view, const struct wire_snapshot_reply *reply,
		      int64_t sampled_ns)
{
	bool has_exact_sum = !reply_has_wakers(reply) && !reply_is_iolat(reply);

	if (view->picks_waits && has_estimates(reply))
		return "~";
	if (sampled_ns <= 0)
		return "";
	return has_exact_sum && !view->picks_waits && reply->idle.sampled_ns <= 0 ? "" : "~";
}

bool report_estimates(const struct wire_snapshot_reply *reply)
{
	if (!has_estimates(reply))
		return false;
	if (reply->sample_below_ns > 0)
		print_message("some figures are estimates: of what was shorter than %s, only some "
			      "was recorded with stacks, and stands for the rest",
			      ns_text(reply->sample_below_ns));
	else
		print_message("some figures are estimates: of waits both inside and outside of the "
			      "lengths asked for");
	return true;
}
