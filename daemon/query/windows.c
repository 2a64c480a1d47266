/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/query/answer.h"
#include "daemon/query/session_request.h"
#include "daemon/query/stored_sessions.h"
#include "daemon/query/time_range.h"
#include "daemon/session/recorder.h"

/*
 * The state while an answer to Windows is made: the windows of each session, and the gaps between
 * them.
 */
struct listing {
	struct recorder *recorder;
	struct answer *answer;
	int64_t since_ns;
	int64_t until_ns;
	struct wire_window *windows;
	size_t n_windows;
	struct wire_gap *gaps;
	size_t n_gaps;
};

static int window_wire(struct answer *answer, const struct store_entry *entry,
		       struct wire_window *out)
{
	const struct session_info *info = session_info(answer->session);

	*out = (struct wire_window){
		.seq = (int64_t)entry->seq,
		.start = store_entry_start(entry),
		.end = store_entry_end(entry),
		.length_ns = entry->end_ns - entry->start_ns,
		.rows = (int64_t)entry->rows,
		.threads = (int64_t)entry->threads,
		.open = (int64_t)entry->opens,
		.bytes = (int64_t)entry->bytes,
		.probe = probe_kind_name(info->kind),
		.session = arena_strdup(answer->arena, info->id_text),
	};
	if (!out->session || answer_folded(answer->arena, &entry->folded, &out->folded))
		return -ENOMEM;
	return answer_losses(answer->arena, entry->lost, &out->lost);
}

static int windows_add(struct listing *listing)
{
	struct answer *answer = listing->answer;
	const struct timeline_list *list = timeline_range(answer->timeline);
	struct wire_window *windows =
		arena_array(answer->arena, listing->n_windows + list->n + 1, sizeof(*windows));
	size_t i;
	int r = 0;

	if (!windows)
		return -ENOMEM;
	for (i = 0; i < listing->n_windows; i++)
		windows[i] = listing->windows[i];
	for (i = 0; i < list->n && !r; i++)
		r = window_wire(answer, &list->entries[i], &windows[listing->n_windows + i]);
	listing->windows = windows;
	listing->n_windows += list->n;
	return r;
}

/*
 * Adds the gaps between the windows of the session. If the request has no start or end, gaps before
 * the first or after the last window are left out.
 */
static int gaps_add(struct listing *listing)
{
	struct answer *answer = listing->answer;
	const struct timeline_list *list = timeline_range(answer->timeline);
	struct timeline_coverage coverage;
	int64_t since = listing->since_ns, until = listing->until_ns;
	struct wire_gap *gaps;
	size_t i;
	int r;

	if (since == INT64_MIN)
		since = timeline_first_start(answer->timeline);
	if (until == INT64_MAX)
		until = store_entry_end(&list->entries[list->n - 1]);
	if (since >= until)
		return 0;
	r = timeline_coverage(answer->timeline, answer->arena, since, until, &coverage);
	if (r)
		return r;
	gaps = arena_array(answer->arena, listing->n_gaps + coverage.n_gaps + 1, sizeof(*gaps));
	if (!gaps)
		return -ENOMEM;
	for (i = 0; i < listing->n_gaps; i++)
		gaps[i] = listing->gaps[i];
	for (i = 0; i < coverage.n_gaps; i++) {
		gaps[listing->n_gaps++] = (struct wire_gap){
			.start = coverage.gaps[i].start_ns,
			.end = coverage.gaps[i].end_ns,
			.reason = coverage.gaps[i].reason,
			.session =
				arena_strdup(answer->arena, session_info(answer->session)->id_text),
		};
	}
	listing->gaps = gaps;
	return 0;
}

/* Adds the windows and gaps of the answer's session. */
static int session_add(struct listing *listing)
{
	struct answer *answer = listing->answer;
	bool has_windows;
	int r = query_timeline_open(listing->recorder, answer, listing->since_ns,
				    listing->until_ns);

	if (r)
		return r;
	has_windows = timeline_range(answer->timeline)->n > 0;
	if (has_windows)
		r = gaps_add(listing);
	if (!r && has_windows)
		r = windows_add(listing);
	answer->timeline = timeline_close(answer->timeline);
	return r;
}

static int probe_add(struct listing *listing, enum probe_kind kind)
{
	struct answer *answer = listing->answer;
	int r;

	answer->session = session_ref(sessions_always(listing->recorder->sessions, kind));
	r = session_add(listing);
	answer->session = session_unref(answer->session);
	return r;
}

static int order(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

static int window_order(const void *x, const void *y)
{
	const struct wire_window *a = x, *b = y;
	int r = order(a->start, b->start);

	if (r)
		return r;
	r = strcmp(a->probe, b->probe);
	if (r)
		return r;
	return order(a->seq, b->seq);
}

static int gap_order(const void *x, const void *y)
{
	const struct wire_gap *a = x, *b = y;

	return order(a->start, b->start);
}

static int listing_make(struct listing *listing, const struct wire_windows_request *request,
			struct wire_error *error)
{
	enum probe_kind kind;
	int r = 0;

	if (request->session) {
		r = query_session_find(listing->recorder, listing->answer, request->session, error);
		return r ? r : session_add(listing);
	}
	if (request->probe) {
		r = query_kind(request->probe, &kind, error);
		return r ? r : probe_add(listing, kind);
	}
	for (kind = 0; kind < PROBE_KIND_N && !r; kind++)
		r = probe_add(listing, kind);
	return r;
}

static int request_check(const struct wire_windows_request *request, const struct listing *listing,
			 struct wire_error *error)
{
	int r = query_range_check(request->since_ns, request->until_ns, error);

	if (r)
		return r;
	if (listing->since_ns >= listing->until_ns)
		return wire_error_set(error, -EINVAL, ERROR_INVALID_TIME, "since_ns",
				      "since_ns: must be before until_ns");
	if (request->hosts.n)
		return wire_error_set(
			error, -EINVAL, ERROR_INVALID_FILTER, "hosts",
			"all windows are of this host; hosts are for the gateway of a "
			"fleet (stackctl --fleet, stackd-fleet serve)");
	if (request->probe && request->session)
		return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, "probe",
				      "a probe or a session: not both");
	return 0;
}

int query_windows(struct recorder *recorder, const struct query_peer *peer, const void *params,
		  struct answer **out, struct wire_error *error)
{
	const struct wire_windows_request *request = params;
	_cleanup_(answer_freep) struct answer *answer = answer_new();
	struct listing listing = {
		.recorder = recorder,
		.answer = answer,
		.since_ns = request->since_ns == WIRE_ABSENT ? INT64_MIN : request->since_ns,
		.until_ns = request->until_ns == WIRE_ABSENT ? INT64_MAX : request->until_ns,
	};
	int r;

	if (!answer)
		return -ENOMEM;
	r = request_check(request, &listing, error);
	if (r)
		return r;
	r = listing_make(&listing, request, error);
	if (r)
		return r;
	store_reader_rest(answer->reader);
	if (listing.n_windows)
		qsort(listing.windows, listing.n_windows, sizeof(*listing.windows), window_order);
	if (listing.n_gaps)
		qsort(listing.gaps, listing.n_gaps, sizeof(*listing.gaps), gap_order);
	answer->reply.windows.windows =
		(struct wire_windows){ .v = listing.windows, .n = listing.n_windows };
	answer->reply.windows.gaps = (struct wire_gaps){ .v = listing.gaps, .n = listing.n_gaps };
	*out = TAKE(answer);
	return 0;
}
