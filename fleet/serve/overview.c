/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "daemon/query/overview_part.h"
#include "fleet/serve/answer.h"

/* Makes an answer without rows in place of the one of a probe, which says what is missing. */
static int missing_make(struct fleet_answer *answer, enum probe_kind kind, const char *message)
{
	struct wire_snapshot_reply *reply = &answer->reply.snapshot;

	*reply = (struct wire_snapshot_reply){
		.missing = arena_strdup(answer->arena, message ? message : ""),
	};
	overview_part_missing(kind, reply);
	reply->shown = reply->rest = reply->idle = wire_rest_absent();
	return reply->missing ? 0 : -ENOMEM;
}

/* True if there are samples of threads that the filter selects. Sets answer->reply. */
static bool has_samples(struct fleet_answer *answer, const struct wire_overview_request *request)
{
	struct wire_snapshot_request part;
	const struct fleet_question question = { .request = &part };
	struct wire_error error = { .limit = WIRE_ABSENT };
	struct wire_filter filter;
	int r;

	overview_part_request(request, PROBE_ONCPU, (struct wire_range){}, &filter, &part);
	part.window_ns = request->window_ns;
	part.since_ns = request->since_ns;
	part.until_ns = request->until_ns;
	part.top = 1;
	r = fleet_snapshot(answer, &question, &error);
	wire_error_clear(&error);
	return !r;
}

int fleet_overview(struct fleet_answer *answer, const struct wire_overview_request *request,
		   enum probe_kind kind, struct wire_range used, struct wire_error *error)
{
	struct wire_snapshot_request part;
	struct fleet_question question = { .request = &part, .is_of_overview = true };
	struct wire_filter filter;
	int r;

	if (kind == PROBE_IOLAT)
		return missing_make(answer, kind,
				    "hosts send no I/O to a fleet; ask the host itself");
	overview_part_request(request, kind, used, &filter, &part);
	part.build_ids = WIRE_BOOL_ABSENT; /* the frames of a fleet have none */
	r = fleet_snapshot(answer, &question, error);
	/* What uses a CPU all the time has few waits, which may have been sent in sums. */
	if (r == -ENODATA && kind == PROBE_OFFCPU && has_samples(answer, request)) {
		wire_error_clear(error);
		answer->reply = (union wire_reply){};
		question.may_lack_threads = true;
		r = fleet_snapshot(answer, &question, error);
	}
	if (r < 0 && kind != PROBE_OFFCPU && error->code != ERROR_NONE) {
		r = missing_make(answer, kind, error->message);
		wire_error_clear(error);
	}
	return r;
}
