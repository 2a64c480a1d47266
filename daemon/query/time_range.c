/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/time_range.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base.h"
#include "daemon/query/unseen.h"

#define DEFAULT_WINDOW_NS (30 * NS_PER_S)

/* How long a query waits, and keeps a worker busy, for the cut it asked for and its names. */
#define CUT_TIMEOUT_NS (5 * NS_PER_S)
#define END_TIMEOUT_NS (30 * NS_PER_S) /* less than clients wait for an answer */

/* Between what a session says of its start and end, and its windows. */
#define SESSION_SLACK_NS (5 * NS_PER_MS)

static int invalid_time(struct wire_error *error, const char *field, const char *text)
{
	return wire_error_set(error, -EINVAL, ERROR_INVALID_TIME, field, "%s: %s", field, text);
}

int query_range_check(int64_t since_ns, int64_t until_ns, struct wire_error *error)
{
	static const char *const text = "a negative time: nanoseconds since 1970 are wanted";

	if (since_ns != WIRE_ABSENT && since_ns < 0)
		return invalid_time(error, "since_ns", text);
	if (until_ns != WIRE_ABSENT && until_ns < 0)
		return invalid_time(error, "until_ns", text);
	return 0;
}

int query_range_resolve(const struct wire_snapshot_request *request, struct session *session,
			struct query_range *range, struct wire_error *error)
{
	const struct session_info *info = session_info(session);
	int64_t now = clock_ns(CLOCK_REALTIME), length = DEFAULT_WINDOW_NS;
	int64_t ended = session_ended(session), since = request->since_ns;
	bool has_since = since != WIRE_ABSENT;
	int r = query_range_check(since, request->until_ns, error);

	if (r)
		return r;
	if (request->window_ns != WIRE_ABSENT) {
		if (has_since || request->until_ns != WIRE_ABSENT)
			return invalid_time(error, "window_ns",
					    "either a length up to now, or since and until");
		if (request->window_ns <= 0)
			return invalid_time(error, "window_ns", "must be more than 0");
		length = request->window_ns;
	} else if (!has_since && !info->is_always) {
		/* All of a session that somebody started. */
		since = info->since_real_ns;
		range->is_whole = request->until_ns == WIRE_ABSENT;
		has_since = true;
	}
	if (range->is_whole && since >= (ended < now ? ended : now))
		/* The clock was set back meanwhile; it becomes what the windows are. */
		since = (ended < now ? ended : now) - 1;
	if (has_since && since > now)
		return invalid_time(error, "since_ns", "is in the future");
	if (ended < now)
		now = ended;
	range->is_to_now = request->until_ns == WIRE_ABSENT || request->until_ns >= now;
	range->until = range->is_to_now ? now : request->until_ns;
	range->is_length = !has_since;
	range->since = has_since ? since : range->until > length ? range->until - length : 0;
	if (range->since >= range->until)
		return invalid_time(error, "since_ns",
				    ended == now ? "must be before the session's end"
						 : "must be before until_ns");
	return 0;
}

/* When the newest window ended, in ns since the epoch; 0 where there is none. */
static int64_t newest_end(struct recorder *recorder, struct session *session)
{
	struct history_list list;
	int64_t end = 0;

	if (session_info(session)->run)
		return 0;
	if (history_range(recorder->history, session_info(session)->id, INT64_MIN, INT64_MAX,
			  &list))
		return 0;
	if (list.n > 0)
		end = list.windows[list.n - 1]->end_ns + list.windows[list.n - 1]->real_offset_ns;
	history_list_fini(&list);
	return end;
}

/*
 * Up to now means up to the newest window: less than [window] min_length ago none is cut for a
 * question. A length of time is counted back from there.
 */
static void range_align(struct recorder *recorder, struct session *session,
			struct query_range *range)
{
	int64_t newest = newest_end(recorder, session);

	/* Older than that, the drain is late: then there is a gap, and it is said. */
	if (newest >= range->until ||
	    range->until - newest > recorder->config->window_min_length_ns ||
	    (!range->is_length && newest <= range->since))
		return;
	if (range->is_length)
		range->since -= range->until - newest;
	range->until = newest;
}

/*
 * A range that reaches into the open window ends it first. Where that takes too long the answer is
 * made of what there is: somebody asks because the host is in trouble. A session that has ended is
 * asked for what it recorded, which is on its way: a recording of two seconds would have nothing
 * else.
 */
static int range_cut(struct recorder *recorder, struct session *session, struct query_range *range)
{
	int64_t until, timeout;
	uint64_t seq;
	int r;

	if (!range->is_to_now && range->until <= newest_end(recorder, session))
		return 0;
	if (session_info(session)->is_always && !session_is_on(session))
		return 0;
	timeout = session_ended(session) == INT64_MAX ? CUT_TIMEOUT_NS : END_TIMEOUT_NS;
	until = clock_ns(CLOCK_MONOTONIC) + timeout;
	r = session_cut(session, timeout, &seq);
	if (!r)
		r = history_wait(recorder->history, seq, until - clock_ns(CLOCK_MONOTONIC));
	if (r == -ETIMEDOUT) {
		range->is_late = true;
		return 0;
	}
	if (!r)
		range_align(recorder, session, range);
	return r;
}

static int no_data(struct recorder *recorder, struct answer *answer, struct session *session,
		   const struct query_range *range, struct wire_error *error)
{
	struct store_stats store = { .oldest_ns = INT64_MIN };
	const struct session_info *info = session_info(session);
	struct history_stats stats;
	int64_t now = clock_ns(CLOCK_REALTIME);
	char ended[MOMENT_TEXT], began[MOMENT_TEXT], newest[MOMENT_TEXT];
	struct probe_status probe = {};

	history_stats(recorder->history, &stats);
	moment_text(range->until, now, ended);
	/* What else is on disk is none of its. */
	if (info->is_always && !session_is_on(session) && !recorder->is_serve_only) {
		session_probe_status(session, &probe);
		return wire_error_set(error, -ENODATA, ERROR_NO_DATA, "range",
				      "the probe %s is off, and no window of it in the range: "
				      "%.200s",
				      info->id_text,
				      probe.reason ? probe.reason : "stackctl probes says why");
	}
	if (recorder->store && info->is_always)
		query_store_stats(recorder, answer, &store);
	if (store.oldest_ns != INT64_MIN) {
		moment_text(store.oldest_ns, now, began);
		moment_text(store.newest_ns, now, newest);
		return wire_error_set(error, -ENODATA, ERROR_NO_DATA, "range",
				      "no window in the range, which ended %s; on disk are "
				      "windows that ended from %s to %s",
				      ended, began, newest);
	}
	if (info->run)
		return wire_error_set(error, -ENODATA, ERROR_NO_DATA, "range",
				      "no window in the range, which ended %s; the session began "
				      "after it, or its windows have gone",
				      ended);
	if (!newest_end(recorder, session) && !stats.evicted_real_ns)
		return wire_error_set(error, -ENODATA, ERROR_NO_DATA, "range",
				      "no window is recorded yet");
	moment_text(info->since_real_ns, now, began);
	return wire_error_set(error, -ENODATA, ERROR_NO_DATA, "range",
			      "no window in the range, which ended %s; recording began %s%s", ended,
			      began,
			      stats.evicted_real_ns ? ", and the oldest windows have gone" : "");
}

/* The clock may have been set meanwhile: their order is not that of their times. */
static void range_fit_whole(const struct answer *answer, struct query_range *range)
{
	struct store_entry entry;
	size_t i;

	if (!answer->list.is_cut)
		range->since = INT64_MAX;
	range->until = INT64_MIN;
	for (i = 0; i < answer->list.n; i++) {
		entry = history_list_entry(&answer->list, i);
		if (store_entry_start(&entry) < range->since)
			range->since = store_entry_start(&entry);
		if (store_entry_end(&entry) > range->until)
			range->until = store_entry_end(&entry);
	}
}

/* All of a session is what its windows are, to the hair between two clocks. */
static void range_fit(const struct answer *answer, struct query_range *range)
{
	const struct history_list *list = &answer->list;
	struct store_entry first = history_list_entry(list, 0);
	struct store_entry last = history_list_entry(list, list->n - 1);
	int64_t start = store_entry_start(&first), end = store_entry_end(&last);

	if (llabs(start - range->since) < SESSION_SLACK_NS)
		range->since = start;
	if (llabs(end - range->until) < SESSION_SLACK_NS)
		range->until = end;
}

int query_range_windows(struct recorder *recorder, struct session *session,
			struct query_range *range, struct answer *answer, struct wire_error *error)
{
	int r = range_cut(recorder, session, range);

	if (!r)
		r = query_history_range(recorder, answer,
					range->is_whole ? INT64_MIN : range->since,
					range->is_whole ? INT64_MAX : range->until, &answer->list);
	if (r)
		return r;
	if (answer->list.n == 0)
		return no_data(recorder, answer, session, range, error);
	if (range->is_whole)
		range_fit_whole(answer, range);
	else if (!session_info(session)->is_always)
		range_fit(answer, range);
	return query_history_later(recorder, answer, range->until, &answer->later);
}

/* After the merge, which is when it is known what could be read. */
int query_range_coverage(struct recorder *recorder, struct answer *answer,
			 const struct query_range *range, struct query_coverage *found)
{
	struct wire_coverage *coverage = &answer->reply.snapshot.coverage;
	int r = query_coverage(recorder, answer, range->since, range->until, found);

	if (r)
		return r;
	coverage->asked = (struct wire_range){ range->since, range->until };
	coverage->used = (struct wire_range){ found->used_start_ns, found->used_end_ns };
	coverage->asked_ns = range->until - range->since;
	coverage->covered_ns = found->covered_ns;
	coverage->windows = (int64_t)found->windows;
	coverage->gaps = found->gaps;
	return 0;
}
