/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/overview_part.h"

void overview_part_request(const struct wire_overview_request *request, enum probe_kind kind,
			   struct wire_range used, struct wire_filter *filter,
			   struct wire_snapshot_request *out)
{
	struct wire_snapshot_request part = wire_snapshot_request_absent();

	part.probe = probe_kind_name(kind);
	part.window_ns = request->window_ns;
	part.since_ns = request->since_ns;
	part.until_ns = request->until_ns;
	part.filter = request->filter;
	part.by = request->by;
	part.top = request->top;
	part.idle = request->idle;
	part.fold_own = request->fold_own;
	part.build_ids = request->build_ids;
	if (kind != PROBE_OFFCPU) {
		part.window_ns = WIRE_ABSENT;
		part.since_ns = used.start;
		part.until_ns = used.end;
	}
	if (kind == PROBE_IOLAT) {
		part.by = "process";
		part.idle = WIRE_BOOL_ABSENT;
	}
	if (kind != PROBE_OFFCPU && request->filter) {
		*filter = *request->filter;
		filter->min_block_ns = filter->max_block_ns = WIRE_ABSENT;
		filter->states = filter->reasons = (struct wire_strs){};
		filter->not_states = filter->not_reasons = (struct wire_strs){};
		part.filter = filter;
	}
	*out = part;
}

void overview_part_missing(enum probe_kind kind, struct wire_snapshot_reply *reply)
{
	reply->probe = probe_kind_name(kind);
	reply->hook = "none";
	reply->min_wait_ns = reply->sample_below_ns = reply->period_ns = WIRE_ABSENT;
	reply->totals = wire_totals_absent();
}
