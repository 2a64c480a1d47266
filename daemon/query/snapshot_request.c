/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/base.h"
#include "daemon/query/snapshot_internal.h"
#include "daemon/session/filter_fields.h"

static int order_parse(const char *text, bool is_io, enum snapshot_order *order,
		       struct wire_error *error)
{
	if (strcmp(text, "total") == 0)
		*order = SNAPSHOT_BY_TOTAL;
	else if (strcmp(text, "max") == 0)
		*order = SNAPSHOT_BY_MAX;
	else if (strcmp(text, "count") == 0)
		*order = SNAPSHOT_BY_COUNT;
	else if (strcmp(text, "bytes") == 0 && is_io)
		*order = SNAPSHOT_BY_BYTES;
	else if (strcmp(text, "bytes") == 0)
		return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, "sort",
				      "bytes: only iolat has bytes");
	else
		return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, "sort",
				      "%.40s: the order is total, max, count or, of iolat, bytes",
				      text);
	return 0;
}

/*
 * Returns the order of the rows if the request names none. Calls have no time to be sorted by, so
 * they are sorted by count.
 */
static enum snapshot_order order_default(enum probe_kind kind, enum aggregate_by by)
{
	if (probe_kind_has(kind, PROBE_COUNTS))
		return SNAPSHOT_BY_COUNT;
	return by == AGGREGATE_BY_WINDOW ? SNAPSHOT_BY_WINDOW : SNAPSHOT_BY_TOTAL;
}

/*
 * The allowed values of `by` in a request, and whether each is for rows of I/O, for other rows, or
 * for both.
 */
static const struct {
	const char *text;
	enum aggregate_by by;
	bool is_for_io;
	bool is_for_others;
} by_words[] = {
	{ "stack", AGGREGATE_BY_STACK, true, true },
	{ "process", AGGREGATE_BY_PROCESS, true, true },
	{ "thread", AGGREGATE_BY_THREAD, false, true },
	{ "comm", AGGREGATE_BY_THREAD, false, true },
	{ "cgroup", AGGREGATE_BY_THREAD, false, true },
	{ "unit", AGGREGATE_BY_THREAD, false, true },
	{ "container", AGGREGATE_BY_THREAD, false, true },
	{ "user", AGGREGATE_BY_THREAD, false, true },
	{ "module", AGGREGATE_BY_STACK, false, true },
	{ "function", AGGREGATE_BY_STACK, false, true },
	{ "reason", AGGREGATE_BY_STACK, false, true },
	{ "line", AGGREGATE_BY_STACK, false, true },
	{ "operation", AGGREGATE_BY_OPERATION, true, false },
	{ "window", AGGREGATE_BY_WINDOW, true, false },
};

static int by_parse(const char *text, enum probe_kind kind, bool has_layer,
		    struct snapshot_question *question, struct wire_error *error)
{
	bool is_io = probe_kind_has(kind, PROBE_IO);
	size_t i;

	/* A client that prints lines need not know of which kind a session is. */
	if (strcmp(text, "line") == 0 && is_io) {
		question->options.by = AGGREGATE_BY_PROCESS;
		question->has_requests_once = !has_layer;
		return 0;
	}
	if (strcmp(text, "line") == 0 && !probe_kind_has(kind, PROBE_WAITS) &&
	    !probe_kind_has(kind, PROBE_SAMPLES))
		return 0;

	for (i = 0; i < ARRAY_SIZE(by_words); i++) {
		if (strcmp(text, by_words[i].text) != 0)
			continue;
		if (!(is_io ? by_words[i].is_for_io : by_words[i].is_for_others))
			break;
		question->options.by = by_words[i].by;
		question->options.group = group_by_parse(text);
		question->options.by_reasons =
			probe_kind_has(kind, PROBE_WAITS) &&
			question->options.group != GROUP_BY_REASON &&
			question->options.group != GROUP_BY_LINE &&
			(question->options.group || question->options.by != AGGREGATE_BY_STACK);
		return 0;
	}
	if (strcmp(text, "host") == 0)
		return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, "by",
				      "all rows are of this host; the gateway of a fleet has rows "
				      "by host (stackctl --fleet, stackd-fleet serve)");
	if (is_io)
		return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, "by",
				      "%.40s: iolat has rows by operation, process, window or "
				      "stack (of slow operations)",
				      text);
	if (i < ARRAY_SIZE(by_words))
		return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, "by",
				      "only iolat has rows by %s", text);
	return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, "by",
			      "%.40s: rows are by stack, thread, process, comm, cgroup, unit, "
			      "container, user, module, function, reason or line",
			      text);
}

static enum aggregate_by by_default(bool is_io, bool open_only)
{
	if (is_io)
		return AGGREGATE_BY_OPERATION;
	return open_only ? AGGREGATE_BY_THREAD : AGGREGATE_BY_STACK;
}

/* Refuses a request that asks for data that this kind of probe does not record. */
static int kind_check(const struct session_info *info, const struct wire_snapshot_request *request,
		      struct wire_error *error)
{
	const char *name = probe_kind_name(info->kind);
	char others[64];
	int r = filter_fields_check(request->filter, info->kind, FILTER_OF_QUERY, error);

	if (r)
		return r;
	if (request->open == 1 && !probe_kind_has(info->kind, PROBE_OPEN_WAITS)) {
		probe_kinds_with(PROBE_OPEN_WAITS, " and ", others, sizeof(others));
		return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, "open",
				      "%s has no waits that have not ended; see %s", name, others);
	}
	if (request->sort && strcmp(request->sort, "max") == 0 &&
	    !probe_kind_has(info->kind, PROBE_WAITS) && !probe_kind_has(info->kind, PROBE_IO))
		return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, "sort",
				      "%s has no waits, so none is the longest", name);
	if (request->by && strcmp(request->by, "reason") == 0 &&
	    !probe_kind_has(info->kind, PROBE_WAITS)) {
		probe_kinds_with(PROBE_WAITS, " and ", others, sizeof(others));
		return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, "by",
				      "%s has no waits that have a reason; see %s", name, others);
	}
	return 0;
}

/* Refuses a request for callers whose rows have no stacks that begin with them. */
static int callers_check(const struct snapshot_question *question,
			 const struct wire_snapshot_request *request, struct wire_error *error)
{
	enum group_by group = question->options.group;

	if (!request->filter || !request->filter->callers.n)
		return 0;
	if (group == GROUP_BY_FUNCTION || group == GROUP_BY_MODULE)
		return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, "callers",
				      "rows by %s do not say who called it: by stack, which is the "
				      "default, they do",
				      request->by);
	if (request->lines == 1)
		return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, "callers",
				      "stacks that begin with a function have no source lines");
	return 0;
}

/*
 * Adds the filter of the session to that of the query, so that the query drops the waits and the
 * stacks that the session was asked not to record.
 */
static void filter_add_session(struct filter *filter, const struct filter *base)
{
	if (base->wire)
		filter->base = base;
	filter->drops_kernel |= base->drops_kernel;
	filter->drops_user |= base->drops_user;
}

/* True if the query or the session names the threads it is about, which may well be idle. */
static bool names_threads(const struct filter *filter)
{
	return filter_selects_threads(filter) ||
	       (filter->base && filter_selects_threads(filter->base));
}

/*
 * True if the filter, or that of the session, asks for certain processes or threads, so that each
 * of their functions is of interest.
 */
static bool names_few(const struct filter *filter)
{
	const struct wire_filter *wire = filter->wire;

	if (wire && (wire->pids.n || wire->tids.n || wire->comm || wire->comms.n))
		return true;
	return filter->base && names_few(filter->base);
}

/*
 * The maximum number of rows that are answered from summaries; a summary has several times as many.
 */
enum { SUMMARY_TOP_MAX = 100 };

bool snapshot_may_summarize(const struct snapshot_question *question,
			    const struct session_info *info)
{
	const struct aggregate_options *options = &question->options;
	bool is_io = probe_kind_has(info->kind, PROBE_IO);
	bool has_rows = options->by == AGGREGATE_BY_STACK;

	if (is_io)
		has_rows |= options->by == AGGREGATE_BY_OPERATION ||
			    (question->by_parts && options->by == AGGREGATE_BY_PROCESS);
	return info->is_always && filter_is_empty(&question->filter) && has_rows &&
	       (!options->group || options->group == GROUP_BY_LINE) && !options->open_only &&
	       question->top <= SUMMARY_TOP_MAX && question->order == SNAPSHOT_BY_TOTAL &&
	       !question->is_reversed;
}

static void question_set_options(struct snapshot_question *question,
				 const struct wire_snapshot_request *request, enum probe_kind kind)
{
	question->top = request->top > 0 ? (size_t)request->top : SIZE_MAX;
	question->is_reversed = request->reverse == 1;
	question->options.open_only = request->open == 1;
	question->options.by_functions =
		probe_kind_has(kind, PROBE_SAMPLES) && request->addresses != 1;
}

int snapshot_question_init(struct snapshot_question *question,
			   const struct wire_snapshot_request *request, struct session *session,
			   struct wire_error *error)
{
	const struct session_info *info = session_info(session);
	bool is_io = probe_kind_has(info->kind, PROBE_IO);
	int64_t ended = session_ended(session);
	int r;

	if (request->top != WIRE_ABSENT && request->top < 0)
		return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, "top",
				      "%" PRId64 " is not a number of rows; 0 means all",
				      request->top);
	if (request->each_ns != WIRE_ABSENT && request->each_ns < 0)
		return wire_error_set(error, -EINVAL, ERROR_INVALID_TIME, "each_ns",
				      "each_ns: a length, or 0 for each window");
	question_set_options(question, request, info->kind);

	r = kind_check(info, request, error);
	if (r)
		return r;
	r = filter_init(&question->filter, request->filter, error);
	if (r)
		return r;
	if (request->filter) {
		r = filter_io_check(request->filter, error);
		if (r)
			return r;
	}
	filter_add_session(&question->filter, info->filter);
	question->with_idle = request->idle == WIRE_BOOL_ABSENT ? names_threads(&question->filter)
								: request->idle == 1;
	question->has_idle_last = request->idle == WIRE_BOOL_ABSENT;

	/* A filter that names threads may name those of stackd. */
	question->options.folds_own = request->fold_own == 1 &&
				      (probe_kind_has(info->kind, PROBE_WAITS) ||
				       probe_kind_has(info->kind, PROBE_SAMPLES)) &&
				      !names_threads(&question->filter);
	question->options.by = by_default(is_io, question->options.open_only);
	if (request->by) {
		r = by_parse(request->by, info->kind, request->filter && request->filter->layer,
			     question, error);
		if (r)
			return r;
	}
	question->options.line_functions = names_few(&question->filter);
	question->order = order_default(info->kind, question->options.by);
	if (request->sort) {
		r = order_parse(request->sort, is_io, &question->order, error);
		if (r)
			return r;
	}
	if (question->order == SNAPSHOT_BY_MAX)
		question->options.rank = AGGREGATE_BY_MAX;
	else if (question->order == SNAPSHOT_BY_COUNT)
		question->options.rank = AGGREGATE_BY_COUNT;
	/* One of several ranges may begin after the end of the session: it has no window. */
	if (question->is_of_ranges && request->since_ns >= ended)
		ended = INT64_MAX;
	r = query_range_resolve(request, session_info(session), ended, clock_ns(CLOCK_REALTIME),
				&question->range, error);
	if (r)
		return r;
	return callers_check(question, request, error);
}
