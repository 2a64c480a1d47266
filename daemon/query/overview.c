/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "daemon/query/answer.h"
#include "daemon/query/snapshot_internal.h"

/* Returns a Snapshot request for the waits of an overview. */
static struct wire_snapshot_request waits_request(const struct wire_overview_request *request)
{
	return (struct wire_snapshot_request){
		.probe = probe_kind_name(PROBE_OFFCPU),
		.window_ns = request->window_ns,
		.since_ns = request->since_ns,
		.until_ns = request->until_ns,
		.filter = request->filter,
		.open = WIRE_BOOL_ABSENT,
		.reverse = WIRE_BOOL_ABSENT,
		.top = request->top,
		.idle = request->idle,
		.lines = WIRE_BOOL_ABSENT,
		.addresses = WIRE_BOOL_ABSENT,
	};
}

int query_overview(struct recorder *recorder, const struct query_peer *peer, const void *params,
		   struct answer **out, struct wire_error *error)
{
	const struct wire_snapshot_request waits = waits_request(params);
	int r = snapshot_answer(recorder, peer, &waits, true, out, error);

	if (!r)
		(*out)->has_next = true;
	return r;
}

/* Returns an answer that says why there are no samples; NULL when out of memory. */
static struct answer *missing_make(const struct wire_error *error)
{
	bool is_of_filter =
		error->code == ERROR_NO_DATA && error->what && strcmp(error->what, "filter") == 0;
	struct answer *answer = answer_new();
	struct wire_snapshot_reply *reply;

	if (!answer)
		return NULL;
	reply = &answer->reply.snapshot;
	reply->probe = probe_kind_name(PROBE_ONCPU);
	reply->hook = "none";
	reply->min_wait_ns = reply->sample_below_ns = reply->period_ns = WIRE_ABSENT;
	reply->totals = (struct wire_totals){
		.samples = WIRE_ABSENT,
		.runnable_ns = WIRE_ABSENT,
		.throttled_ns = WIRE_ABSENT,
		.blocked_ns = WIRE_ABSENT,
		.waits = WIRE_ABSENT,
		.short_waits = WIRE_ABSENT,
		.short_ns = WIRE_ABSENT,
		.sampled_ns = WIRE_ABSENT,
		.open_waits = WIRE_ABSENT,
		.cpus = WIRE_ABSENT,
		.unseen = WIRE_ABSENT,
		.unseen_ns = WIRE_ABSENT,
		.calls = WIRE_ABSENT,
		.ios = WIRE_ABSENT,
	};
	if (is_of_filter)
		return answer;
	reply->missing = arena_strdup(answer->arena, error->message ? error->message : "");
	if (!reply->missing)
		return answer_free(answer);
	return answer;
}

int query_overview_next(struct recorder *recorder, const struct query_peer *peer,
			const struct wire_overview_request *request, struct answer **answer)
{
	const struct wire_range used = (*answer)->reply.snapshot.coverage.used;
	struct wire_snapshot_request samples = waits_request(request);
	struct wire_error error = { .limit = WIRE_ABSENT };
	struct wire_filter filter;
	struct answer *next = NULL;
	int r;

	if (!(*answer)->has_next)
		return 0;
	samples.probe = probe_kind_name(PROBE_ONCPU);
	samples.window_ns = WIRE_ABSENT;
	samples.since_ns = used.start;
	samples.until_ns = used.end;
	if (request->filter) {
		/*
		 * Leave out the parts of the filter about lengths and states, which samples do not
		 * have.
		 */
		filter = *request->filter;
		filter.min_block_ns = filter.max_block_ns = WIRE_ABSENT;
		filter.states = (struct wire_strs){};
		samples.filter = &filter;
	}
	r = snapshot_answer(recorder, peer, &samples, true, &next, &error);
	if (r < 0 && error.code != ERROR_NONE) {
		next = missing_make(&error);
		wire_error_clear(&error);
		r = next ? 0 : -ENOMEM;
	}
	if (r)
		return r;
	/*
	 * The request from which `next` was made refers to the local variable `filter`. The caller
	 * may nevertheless use `next` later, because the rows of an answer do not refer to the
	 * filter.
	 */
	answer_free(*answer);
	*answer = next;
	return 1;
}
