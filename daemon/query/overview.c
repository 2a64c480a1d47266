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
		.each_ns = WIRE_ABSENT,
	};
}

int query_overview(struct recorder *recorder, const struct query_peer *peer, const void *params,
		   struct answer **out, struct wire_error *error)
{
	const struct wire_snapshot_request waits = waits_request(params);
	int r = snapshot_answer(recorder, peer, &waits, true, out, error);

	if (r)
		return r;
	(*out)->overview_kind = PROBE_OFFCPU;
	(*out)->has_next = true;
	return 0;
}

/*
 * Returns an answer without rows in place of the one of a probe; NULL when out of memory. It says
 * what is missing, unless only the filter's threads are in no window.
 */
static struct answer *missing_make(enum probe_kind kind, const struct wire_error *error)
{
	bool is_of_filter =
		error->code == ERROR_NO_DATA && error->what && strcmp(error->what, "filter") == 0;
	struct answer *answer = answer_new();
	struct wire_snapshot_reply *reply;

	if (!answer)
		return NULL;
	reply = &answer->reply.snapshot;
	reply->probe = probe_kind_name(kind);
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

/*
 * Makes the answer of the probe `kind` for the time `used`. `filter` has the filter's parts about
 * lengths and states of waits left out, which only waits have. It need not outlive this call: the
 * rows of an answer do not refer to it.
 */
static int part_answer(struct recorder *recorder, const struct query_peer *peer,
		       const struct wire_overview_request *request, enum probe_kind kind,
		       struct wire_range used, struct answer **out)
{
	struct wire_snapshot_request part = waits_request(request);
	struct wire_error error = { .limit = WIRE_ABSENT };
	struct wire_filter filter;
	int r;

	part.probe = probe_kind_name(kind);
	part.window_ns = WIRE_ABSENT;
	part.since_ns = used.start;
	part.until_ns = used.end;
	if (kind == PROBE_IOLAT) {
		part.by = "process";
		part.idle = WIRE_BOOL_ABSENT;
	}
	if (request->filter) {
		filter = *request->filter;
		filter.min_block_ns = filter.max_block_ns = WIRE_ABSENT;
		filter.states = (struct wire_strs){};
		part.filter = &filter;
	}
	r = snapshot_answer(recorder, peer, &part, true, out, &error);
	if (r < 0 && error.code != ERROR_NONE) {
		*out = missing_make(kind, &error);
		wire_error_clear(&error);
		r = *out ? 0 : -ENOMEM;
	}
	return r;
}

int query_overview_next(struct recorder *recorder, const struct query_peer *peer,
			const struct wire_overview_request *request, struct answer **answer)
{
	bool is_of_waits = (*answer)->overview_kind == PROBE_OFFCPU;
	enum probe_kind kind = is_of_waits ? PROBE_ONCPU : PROBE_IOLAT;
	const struct wire_range used =
		is_of_waits ? (*answer)->reply.snapshot.coverage.used : (*answer)->overview_range;
	struct answer *next = NULL;
	int r;

	if (!(*answer)->has_next)
		return 0;
	/* Gives up the memory of this answer before the next one is made. */
	answer_aggregate_free(*answer);
	r = part_answer(recorder, peer, request, kind, used, &next);
	if (r)
		return r;
	next->overview_kind = kind;
	next->overview_range = used;
	next->has_next = kind == PROBE_ONCPU && request->io == 1;
	answer_free(*answer);
	*answer = next;
	return 1;
}
