/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "daemon/query/answer.h"
#include "daemon/query/overview_part.h"
#include "daemon/query/snapshot_internal.h"

int query_overview(struct recorder *recorder, const struct query_peer *peer, const void *params,
		   struct answer **out, struct wire_error *error)
{
	struct wire_snapshot_request waits;
	struct wire_filter filter;
	int r;

	overview_part_request(params, PROBE_OFFCPU, (struct wire_range){}, &filter, &waits);
	r = snapshot_answer(recorder, peer, &waits, SNAPSHOT_OF_OVERVIEW, out, error);
	if (r)
		return r;
	(*out)->overview_kind = PROBE_OFFCPU;
	(*out)->has_next = true;
	return 0;
}

/*
 * Sets *out to an answer without rows in place of the one of a probe. It says what is missing; if
 * only the filter's threads are in no window, it says what the probe cannot see. Returns 0 or
 * -ENOMEM.
 */
static int missing_make(struct recorder *recorder, enum probe_kind kind,
			const struct wire_error *error, struct answer **out)
{
	bool is_of_filter =
		error->code == ERROR_NO_DATA && error->what && strcmp(error->what, "filter") == 0;
	_cleanup_(answer_freep) struct answer *answer = answer_new();
	struct wire_snapshot_reply *reply;

	if (!answer)
		return -ENOMEM;
	reply = &answer->reply.snapshot;
	overview_part_missing(kind, reply);
	if (is_of_filter) {
		answer->session = session_ref(sessions_always(recorder->sessions, kind));
		if (snapshot_blind_notes(answer))
			return -ENOMEM;
	} else {
		reply->missing = arena_strdup(answer->arena, error->message ? error->message : "");
		if (!reply->missing)
			return -ENOMEM;
	}
	*out = TAKE(answer);
	return 0;
}

/*
 * Makes the answer of the probe `kind` for the time `used`. The request need not outlive this call:
 * the rows of an answer do not refer to it.
 */
static int part_answer(struct recorder *recorder, const struct query_peer *peer,
		       const struct wire_overview_request *request, enum probe_kind kind,
		       struct wire_range used, struct answer **out)
{
	struct wire_error error = { .limit = WIRE_ABSENT };
	struct wire_snapshot_request part;
	struct wire_filter filter;
	int r;

	overview_part_request(request, kind, used, &filter, &part);
	r = snapshot_answer(recorder, peer, &part, SNAPSHOT_OF_OVERVIEW, out, &error);
	if (r < 0 && error.code != ERROR_NONE) {
		r = missing_make(recorder, kind, &error, out);
		wire_error_clear(&error);
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
