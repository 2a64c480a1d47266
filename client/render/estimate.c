/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/message.h"
#include "client/base/term.h"
#include "client/render/render.h"
#include "client/render/table.h"
#include "common/base.h"

const char *row_about(const struct wire_row *row)
{
	return row->estimated == 1 ? "~" : "";
}

bool reply_has_estimates(const struct wire_snapshot_reply *reply)
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

	if (view->picks_waits && reply_has_estimates(reply))
		return "~";
	if (sampled_ns <= 0)
		return "";
	return has_exact_sum && !view->picks_waits && reply->idle.sampled_ns <= 0 ? "" : "~";
}

bool report_estimates(const struct wire_snapshot_reply *reply)
{
	if (!reply_has_estimates(reply))
		return false;
	if (reply->sample_below_ns > 0)
		print_message("some figures are estimates: of what was shorter than %s, only some "
			      "was recorded with stacks, and stands for the rest",
			      ns_text(reply->sample_below_ns));
	else if (reply_is_sampled(reply))
		print_message("all figures are estimates: most samples were not recorded, to keep "
			      "within the budget, and each of the others stands for several");
	else
		print_message("some figures are estimates: of waits both inside and outside of the "
			      "lengths asked for");
	return true;
}

/*
 * Returns the error of a time that is an estimate, as a part of it: twice the standard deviation,
 * so that the truth lies within it 19 times of 20. It is at most the square root of the part of the
 * time that stands for sampled waits, times the length below which they were sampled (Sampled waits
 * in io.stackd.varlink). Returns 0 if the time is exact.
 */
static double relative_error(const struct wire_snapshot_reply *reply, const struct wire_row *row,
			     int64_t ns)
{
	if (row->estimated != 1 || row->sampled_ns <= 0 || reply->sample_below_ns <= 0 || ns <= 0)
		return 0;
	return 2 * sqrt((double)row->sampled_ns * (double)reply->sample_below_ns) / (double)ns;
}

char *error_text(const struct wire_snapshot_reply *reply, const struct wire_row *row, int64_t ns)
{
	double percent = 100 * relative_error(reply, row, ns);

	if (percent <= 0)
		return NULL;
	if (percent < 1)
		return must(strdup("<1 %"));
	if (percent > 100)
		return must(strdup(">100 %"));
	return must_printf("%.0f %%", percent);
}

char *time_estimate(const struct wire_snapshot_reply *reply, const struct wire_row *row, int64_t ns)
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	double error = relative_error(reply, row, ns), value, step = 1;
	int digits = error > 0.5 ? 1 : 2;
	size_t unit = 0;

	if (error < 0.05 || ns >= 999 * NS_PER_S)
		return table_time(row_about(row), ns, "");
	while (step * (digits == 1 ? 10 : 100) <= (double)ns)
		step *= 10;
	value = floor((double)ns / step + 0.5) * step;
	for (; value >= 1000 && unit + 1 < ARRAY_SIZE(units); unit++)
		value /= 1000;
	return must_printf("%s%.*f%s", row_about(row), digits == 2 && value < 9.95, value,
			   units[unit]);
}
