/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/time_range.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base.h"
#include "daemon/query/moment.h"
#include "daemon/query/snapshot_internal.h"
#include "daemon/store/store.h"

#define DEFAULT_WINDOW_NS (30 * NS_PER_S)

/*
 * The longest time that a query waits until the current window has ended and the names of the
 * functions in its stacks were looked up. The worker thread does nothing else meanwhile.
 */
#define CUT_TIMEOUT_NS (5 * NS_PER_S)
/*
 * the longest time that a query waits for the last window of a session that has ended; the time
 * limit of clients is longer
 */
#define END_TIMEOUT_NS (30 * NS_PER_S)

/*
 * The start of a session may differ from the start of its first window by up to this time, and its
 * end from the end of its last window.
 */
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

int query_range_resolve(const struct wire_snapshot_request *request,
			const struct session_info *info, int64_t ended_ns, int64_t now_ns,
			struct query_range *range, struct wire_error *error)
{
	int64_t end = ended_ns < now_ns ? ended_ns : now_ns;
	int64_t since = request->since_ns, length = DEFAULT_WINDOW_NS;
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
		/*
		 * The request is about a client's session and does not say when the range starts:
		 * it starts when the session began.
		 */
		since = info->since_real_ns;
		range->is_whole = request->until_ns == WIRE_ABSENT;
		has_since = true;
	}
	/*
	 * The clock was set back since the session began: use any valid start, because the range is
	 * later fitted to the windows.
	 */
	if (range->is_whole && since >= end)
		since = end - 1;
	if (has_since && since > now_ns)
		return invalid_time(error, "since_ns", "is in the future");
	range->is_to_now = request->until_ns == WIRE_ABSENT || request->until_ns >= end;
	range->until = range->is_to_now ? end : request->until_ns;
	range->is_length = !has_since;
	range->since = has_since ? since : range->until > length ? range->until - length : 0;
	if (range->since >= range->until)
		return invalid_time(error, "since_ns",
				    ended_ns == end ? "must be before the session's end"
						    : "must be before until_ns");
	return 0;
}

/*
 * Returns when the session's newest window in memory ended, in ns since the epoch; 0 if it has no
 * window there.
 */
static int64_t newest_end(struct recorder *recorder, const struct session_info *info)
{
	return info->run ? 0 : history_newest_end(recorder->history, info->id);
}

void query_range_align(struct query_range *range, int64_t newest_ns, int64_t min_length_ns)
{
	if (newest_ns >= range->until || range->until - newest_ns > min_length_ns ||
	    (!range->is_length && newest_ns <= range->since))
		return;
	if (range->is_length)
		range->since -= range->until - newest_ns;
	range->until = newest_ns;
	range->is_before_now = range->is_to_now && !range->is_late;
}

void query_range_fall_back(struct query_range *range, int64_t newest_ns)
{
	if (newest_ns && range->is_to_now && range->is_length && newest_ns <= range->since)
		query_range_align(range, newest_ns, INT64_MAX);
}

/*
 * Asks for an end of the current windows of samples and of I/O, without waiting for it. Where waits
 * have a window that ends early for any question, so have these: else a later overview of this
 * time, whose parts are of whole windows, would be of more time in one part than in the other.
 */
static void others_cut(struct recorder *recorder)
{
	static const enum probe_kind kinds[] = { PROBE_ONCPU, PROBE_IOLAT };
	uint64_t seq;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct session *session = sessions_always(recorder->sessions, kinds[i]);

		if (session_is_on(session))
			session_cut(session, 0, &seq);
	}
}

/* Makes do with the newest window, which ended at newest_ns; 0 stands for no window. */
static void range_late(struct query_range *range, int64_t newest_ns)
{
	range->is_late = true;
	if (newest_ns)
		range->late_ns = clock_ns(CLOCK_REALTIME) - newest_ns;
	query_range_fall_back(range, newest_ns);
}

/*
 * Ends the current window if the range reaches into it, and waits until that is done. After
 * CUT_TIMEOUT_NS, gives up and returns 0: the answer is made without this window, because clients
 * need an answer above all when the host is in trouble. If the session has ended, the timeout is
 * END_TIMEOUT_NS, because a short session has no other window.
 */
static int range_cut(struct recorder *recorder, struct session *session, struct query_range *range)
{
	int64_t until, timeout;
	uint64_t seq;
	int r;

	if (!range->is_to_now && range->until <= newest_end(recorder, session_info(session)))
		return 0;
	if (session_info(session)->is_always && !session_is_on(session))
		return 0;
	if (session_info(session)->is_always && session_info(session)->kind == PROBE_OFFCPU)
		others_cut(recorder);
	timeout = session_ended(session) == INT64_MAX ? CUT_TIMEOUT_NS : END_TIMEOUT_NS;
	until = clock_ns(CLOCK_MONOTONIC) + timeout;
	r = session_cut(session, timeout, &seq);
	if (!r)
		r = history_wait(recorder->history, seq, until - clock_ns(CLOCK_MONOTONIC));
	if (r == -ETIMEDOUT) {
		range_late(range, newest_end(recorder, session_info(session)));
		return 0;
	}
	if (!r)
		query_range_align(range, newest_end(recorder, session_info(session)),
				  recorder->config->window_min_length_ns);
	return r;
}

/* Fills *error with the reason why the range has no windows. Returns -ENODATA. */
static int no_data(struct recorder *recorder, struct answer *answer,
		   const struct query_range *range, struct wire_error *error)
{
	struct session *session = answer->session;
	struct store_stats store = { .oldest_ns = INT64_MIN };
	const struct session_info *info = session_info(session);
	char ended[MOMENT_TEXT], began[MOMENT_TEXT], newest[MOMENT_TEXT];
	struct probe_status probe = {};
	bool is_evicted;

	moment_text(range->until, ended);
	/*
	 * If the probe is off, that is the reason to report. Which windows are on disk does not
	 * matter then.
	 */
	if (info->is_always && !session_is_on(session) && !recorder->is_serve_only) {
		session_probe_status(session, &probe);
		return wire_error_set(error, -ENODATA, ERROR_NO_DATA, "range",
				      "the probe %s is off, and no window of it in the range: "
				      "%.200s",
				      info->id_text,
				      probe.reason ? probe.reason : "stackctl probes says why");
	}
	if (recorder->store && info->is_always)
		store_stats_read(recorder->store, answer->reader, &store);
	if (store.problems[STORE_PROBLEM_FILE][0] && recorder->is_serve_only)
		return wire_error_set(error, -ENODATA, ERROR_NO_DATA, "range", "no window: %s",
				      store.problems[STORE_PROBLEM_FILE]);
	if (store.oldest_ns != INT64_MIN) {
		moment_text(store.oldest_ns, began);
		moment_text(store.newest_ns, newest);
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
	is_evicted = timeline_memory_evicted(answer->timeline) != 0;
	if (!timeline_has_memory(answer->timeline) && !is_evicted)
		return wire_error_set(error, -ENODATA, ERROR_NO_DATA, "range",
				      "no window is recorded yet");
	moment_text(info->since_real_ns, began);
	return wire_error_set(error, -ENODATA, ERROR_NO_DATA, "range",
			      "no window in the range, which ended %s; recording began %s%s", ended,
			      began, is_evicted ? ", and the oldest windows have gone" : "");
}

/*
 * Sets the range to the earliest start and the latest end of all windows in the list. The list may
 * not be in the order of these times, because the clock may have been set between windows.
 */
static void range_fit_whole(const struct timeline *timeline, struct query_range *range)
{
	const struct timeline_list *list = timeline_range(timeline);
	size_t i;

	if (!timeline_is_truncated(timeline))
		range->since = INT64_MAX;
	range->until = INT64_MIN;
	for (i = 0; i < list->n; i++) {
		if (store_entry_start(&list->entries[i]) < range->since)
			range->since = store_entry_start(&list->entries[i]);
		if (store_entry_end(&list->entries[i]) > range->until)
			range->until = store_entry_end(&list->entries[i]);
	}
}

/*
 * Moves the start of the range to the start of the first window if they differ by less than
 * SESSION_SLACK_NS, and likewise its end to the end of the last window.
 */
static void range_fit(const struct timeline *timeline, struct query_range *range)
{
	const struct timeline_list *list = timeline_range(timeline);
	int64_t start = store_entry_start(&list->entries[0]);
	int64_t end = store_entry_end(&list->entries[list->n - 1]);

	if (llabs(start - range->since) < SESSION_SLACK_NS)
		range->since = start;
	if (llabs(end - range->until) < SESSION_SLACK_NS)
		range->until = end;
}

int query_timeline_open(struct recorder *recorder, struct answer *answer, int64_t since_ns,
			int64_t until_ns)
{
	const struct session_info *info = session_info(answer->session);
	const struct timeline_source source = {
		.history = recorder->history,
		.reader = answer_reader(answer, recorder->store),
		.run = store_current_run(recorder->store),
		.boot_id = recorder->boot_id,
		.window_ns = recorder->config->window_length_ns,
	};
	const struct timeline_session session = {
		.id = info->id,
		.run = info->run,
		.probe = info->is_always ? probe_kind_name(info->kind) : NULL,
		.since_ns = info->since_real_ns,
		.is_recording = session_is_on(answer->session),
	};

	return timeline_open(&source, &session, since_ns, until_ns, &answer->timeline);
}

int query_range_open(struct recorder *recorder, struct answer *answer, struct query_range *range,
		     struct wire_error *error)
{
	int r = range_cut(recorder, answer->session, range);

	if (r)
		return r;
	r = query_timeline_open(recorder, answer, range->is_whole ? INT64_MIN : range->since,
				range->is_whole ? INT64_MAX : range->until);
	if (r)
		return r;
	if (timeline_range(answer->timeline)->n == 0)
		return no_data(recorder, answer, range, error);
	if (range->is_whole)
		range_fit_whole(answer->timeline, range);
	else if (!session_info(answer->session)->is_always)
		range_fit(answer->timeline, range);
	return timeline_read_later(answer->timeline, range->until);
}

int query_slice_coverage(struct answer *answer, const struct slice *slice,
			 struct timeline_coverage *found)
{
	struct wire_coverage *coverage = &answer->reply.snapshot.coverage;
	struct wire_gap *gaps;
	size_t i;
	int r = timeline_coverage_of(answer->timeline, answer->arena, slice->first, slice->end,
				     slice->since_ns, slice->until_ns, found);

	if (r)
		return r;
	gaps = arena_array(answer->arena, found->n_gaps + 1, sizeof(*gaps));
	if (!gaps)
		return -ENOMEM;
	for (i = 0; i < found->n_gaps; i++)
		gaps[i] = (struct wire_gap){
			.start = found->gaps[i].start_ns,
			.end = found->gaps[i].end_ns,
			.reason = found->gaps[i].reason,
		};
	coverage->asked = (struct wire_range){ slice->since_ns, slice->until_ns };
	coverage->used = (struct wire_range){ found->used_start_ns, found->used_end_ns };
	coverage->asked_ns = slice->until_ns - slice->since_ns;
	coverage->covered_ns = found->covered_ns;
	coverage->used_ns = found->used_ns;
	coverage->windows = (int64_t)found->windows;
	coverage->gaps = (struct wire_gaps){ .v = gaps, .n = found->n_gaps };
	return 0;
}
