/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/query/answer.h"
#include "daemon/query/answer_iolat.h"
#include "daemon/query/group_rows.h"
#include "daemon/query/notes.h"
#include "daemon/query/range_windows.h"
#include "daemon/query/stored_sessions.h"
#include "daemon/query/time_range.h"
#include "daemon/query/unseen.h"
#include "daemon/session/recorder.h"

static int losses_make(struct answer *answer)
{
	struct wire_snapshot_reply *reply = &answer->snapshot;
	uint64_t lost[WINDOW_LOST_N] = {};
	unsigned int k;
	size_t i;
	int r;

	for (i = 0; i < answer->list.n; i++) {
		const struct store_entry entry = history_list_entry(&answer->list, i);

		for (k = 0; k < WINDOW_LOST_N && !entry.is_bad; k++)
			lost[k] += entry.lost[k];
	}
	r = answer_losses(answer->arena, lost, &reply->lost);
	reply->coverage.complete = reply->coverage.gaps.n == 0 && reply->lost.n == 0;
	return r;
}

struct order {
	int (*compare)(const void *a, const void *b);
	int (*compare_rows)(const void *a, const void *b); /* of rows by key */
};

static uint64_t group_total(const struct merge_group *group)
{
	return group->on_ns + group->blocked_ns + group->runnable_ns;
}

static int compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? 1 : a > b ? -1 : 0;
}

/* Equal ones in a stable order, so that the same question has the same answer. */
static int compare_keys(const struct merge_group *a, const struct merge_group *b)
{
	return memcmp(&a->key, &b->key, sizeof(a->key));
}

static int by_total(const void *x, const void *y)
{
	const struct merge_group *const *a = x, *const *b = y;
	int r = compare_u64(group_total(*a), group_total(*b));

	return r ? r : compare_keys(*a, *b);
}

static int by_max(const void *x, const void *y)
{
	const struct merge_group *const *a = x, *const *b = y;
	int r = compare_u64((*a)->max_ns, (*b)->max_ns);

	return r ? r : by_total(x, y);
}

static int by_count(const void *x, const void *y)
{
	const struct merge_group *const *a = x, *const *b = y;
	int r = compare_u64((*a)->count, (*b)->count);

	return r ? r : by_total(x, y);
}

static int row_order(int64_t a, int64_t b)
{
	return a < b ? 1 : a > b ? -1 : 0;
}

/* Rows of a grouped answer stand by key. */
static int rows_by_total(const void *x, const void *y)
{
	const struct wire_row *a = x, *b = y;
	int r = row_order(a->total_ns, b->total_ns);

	if (!r)
		r = strcmp(a->key, b->key);
	return r ? r : (int)a->idle - (int)b->idle;
}

static int rows_by_max(const void *x, const void *y)
{
	const struct wire_row *a = x, *b = y;
	int r = row_order(a->max_ns, b->max_ns);

	return r ? r : rows_by_total(x, y);
}

static int rows_by_count(const void *x, const void *y)
{
	const struct wire_row *a = x, *b = y;
	int r = row_order(a->count, b->count);

	return r ? r : rows_by_total(x, y);
}

static int order_parse(const char *text, struct order *order, struct wire_error *error)
{
	if (!text || strcmp(text, "total") == 0)
		*order = (struct order){ by_total, rows_by_total };
	else if (strcmp(text, "max") == 0)
		*order = (struct order){ by_max, rows_by_max };
	else if (strcmp(text, "count") == 0)
		*order = (struct order){ by_count, rows_by_count };
	else
		return wire_error_set(error, -EINVAL, "io.stackd.InvalidFilter", "sort",
				      "%.40s is no order: total, max or count", text);
	return 0;
}

/* What rows of I/O are. */
static int by_parse_ios(const char *text, enum merge_by *by, struct wire_error *error)
{
	if (!text || strcmp(text, "operation") == 0)
		*by = MERGE_BY_OPERATION;
	else if (strcmp(text, "process") == 0)
		*by = MERGE_BY_PROCESS;
	else if (strcmp(text, "stack") == 0)
		*by = MERGE_BY_STACK;
	else if (strcmp(text, "window") == 0)
		*by = MERGE_BY_WINDOW;
	else
		return wire_error_set(error, -EINVAL, "io.stackd.InvalidFilter", "by",
				      "%.40s: iolat has rows by operation, process, window or "
				      "stack (of slow operations)",
				      text);
	return 0;
}

static int by_parse(const char *text, struct merge_options *options, enum query_group *group,
		    struct wire_error *error)
{
	enum merge_by *by = &options->by;

	*group = query_group_parse(text);
	if (*group == QUERY_GROUP_COMM || *group == QUERY_GROUP_CGROUP)
		*by = MERGE_BY_THREAD;
	else if (*group != QUERY_GROUP_NONE)
		*by = MERGE_BY_STACK;
	else if (!text || strcmp(text, "stack") == 0)
		*by = MERGE_BY_STACK;
	else if (strcmp(text, "thread") == 0)
		*by = MERGE_BY_THREAD;
	else if (strcmp(text, "process") == 0)
		*by = MERGE_BY_PROCESS;
	else if (strcmp(text, "operation") == 0 || strcmp(text, "window") == 0)
		return wire_error_set(error, -EINVAL, "io.stackd.InvalidFilter", "by",
				      "%s: of iolat only", text);
	else
		return wire_error_set(error, -EINVAL, "io.stackd.InvalidFilter", "by",
				      "%.40s: stack, thread, process, comm, cgroup, module or "
				      "function",
				      text);
	return 0;
}

/* Sorts groups; idle ones that are not wanted go behind the others. Returns how many are wanted. */
static size_t groups_sort(struct merge_group **groups, size_t n, const struct order *order,
			  bool with_idle)
{
	struct merge_group *group;
	size_t i, wanted = 0;

	for (i = 0; i < n; i++) {
		if (groups[i]->is_idle && !with_idle)
			continue;
		group = groups[wanted];
		groups[wanted++] = groups[i];
		groups[i] = group;
	}
	qsort(groups, wanted, sizeof(*groups), order->compare);
	return wanted;
}

static void groups_reverse(struct merge_group **groups, size_t n)
{
	struct merge_group *group;
	size_t i;

	for (i = 0; i < n / 2; i++) {
		group = groups[i];
		groups[i] = groups[n - 1 - i];
		groups[n - 1 - i] = group;
	}
}

static void rest_add(struct wire_rest *rest, const struct merge_group *group)
{
	rest->rows++;
	rest->total_ns += (int64_t)group_total(group);
}

static int rows_make(struct answer *answer, const struct wire_snapshot_request *request,
		     const struct order *order, const struct answer_row_options *options)
{
	struct wire_snapshot_reply *reply = &answer->snapshot;
	size_t n, i, wanted, top;
	struct merge_group **groups = merge_groups(answer->merge, &n);

	wanted = groups_sort(groups, n, order, request->idle == 1);
	top = request->top != WIRE_ABSENT && request->top > 0 && (uint64_t)request->top < wanted
		      ? (size_t)request->top
		      : wanted;
	for (i = 0; i < n; i++)
		rest_add(i < top      ? &reply->shown
			 : i < wanted ? &reply->rest
				      : &reply->idle,
			 groups[i]);
	reply->idle.threads = (int64_t)merge_totals(answer->merge)->idle_threads;
	if (request->idle == 1)
		reply->idle.threads = 0;
	if (request->reverse == 1)
		groups_reverse(groups, top);
	return answer_rows(answer, groups, top, options);
}

static void totals_make(struct answer *answer, enum probe_kind kind)
{
	const struct merge_totals *totals = merge_totals(answer->merge);
	struct wire_totals *out = &answer->snapshot.totals;

	*out = (struct wire_totals){
		.processes = (int64_t)totals->processes,
		.threads = (int64_t)totals->threads,
		.on_cpu_ns = (int64_t)totals->on_cpu_ns,
		.samples = WIRE_ABSENT,
		.runnable_ns = (int64_t)totals->runnable_ns,
		.throttled_ns =
			(int64_t)(totals->throttled_ns < totals->runnable_ns ? totals->throttled_ns
									     : totals->runnable_ns),
		.blocked_ns = (int64_t)totals->blocked_ns,
		.waits = (int64_t)totals->waits,
		.short_waits = (int64_t)totals->short_waits,
		.short_ns = (int64_t)totals->short_ns,
		.open_waits = (int64_t)totals->open_waits,
		.cpus = sysconf(_SC_NPROCESSORS_ONLN),
		.unseen = totals->unseen ? (int64_t)totals->unseen : WIRE_ABSENT,
		.unseen_ns = totals->unseen_ns ? (int64_t)totals->unseen_ns : WIRE_ABSENT,
		.ios = kind == PROBE_IOLAT ? (int64_t)totals->ios : WIRE_ABSENT,
	};
	if (kind == PROBE_OFFWAKE)
		out->short_waits = out->short_ns = out->open_waits = out->throttled_ns =
			WIRE_ABSENT;
	out->calls = WIRE_ABSENT;
	if (probe_kind_has_waits(kind))
		return;
	if (probe_kind_has_calls(kind))
		out->calls = (int64_t)totals->samples;
	else if (kind == PROBE_ONCPU)
		out->samples = (int64_t)totals->samples;
	out->runnable_ns = out->throttled_ns = out->blocked_ns = out->waits = WIRE_ABSENT;
	out->short_waits = out->short_ns = out->open_waits = WIRE_ABSENT;
}

static int merge_make(struct recorder *recorder, struct answer *answer, const struct filter *filter,
		      const struct merge_options *options, bool is_stream, struct wire_error *error)
{
	const struct session_info *info = session_info(answer->session);
	struct stack *unread = stack_table_get(recorder->stacks, STACK_UNREAD, true);
	int r = merge_run(&answer->list, &answer->later, filter, options, unread, &answer->merge);

	stack_unref(unread);
	if (!r && !is_stream && filter_selects_threads(filter) &&
	    !merge_totals(answer->merge)->threads)
		return who_error(answer->merge, filter->wire, info->kind, !recorder->is_serve_only,
				 error);
	return r;
}

static int request_check(const struct wire_snapshot_request *request, struct wire_error *error)
{
	if (request->top != WIRE_ABSENT && request->top < 0)
		return wire_error_set(error, -EINVAL, "io.stackd.InvalidFilter", "top",
				      "%" PRId64 ": a number of rows, 0 for all", request->top);
	return 0;
}

/* Whose windows: one of the two has to be given. */
static int session_find(struct recorder *recorder, const struct wire_snapshot_request *request,
			struct answer *answer, struct wire_error *error)
{
	enum probe_kind kind;
	int r;

	if (!request->probe == !request->session)
		return wire_error_set(error, -EINVAL, "io.stackd.InvalidFilter", "probe",
				      "a probe or a session: one of them");
	if (request->session)
		return query_past_find(recorder, answer, request->session, error);
	r = query_kind(request->probe, &kind, error);
	if (!r)
		answer->session = session_ref(sessions_always(recorder->sessions, kind));
	return r;
}

/* What operations do not have: they are known by process. */
static int ios_check(const struct wire_filter *filter, struct wire_error *error)
{
	if (filter && filter->tids.n)
		return wire_error_set(error, -EINVAL, "io.stackd.InvalidFilter", "tids",
				      "iolat keeps operations by process: a session can be "
				      "started of some threads only");
	if (filter && (filter->min_block_ns != WIRE_ABSENT || filter->max_block_ns != WIRE_ABSENT ||
		       filter->states.n))
		return wire_error_set(error, -EINVAL, "io.stackd.InvalidFilter", "min_block_ns",
				      "iolat has no waits that have a length or a state");
	return 0;
}

/* What only waits have is refused where there are none. */
static int kind_check(const struct session_info *info, const struct wire_snapshot_request *request,
		      struct wire_error *error)
{
	const struct wire_filter *filter = request->filter;
	const char *name = probe_kind_name(info->kind);

	if (filter && info->kind != PROBE_IOLAT && (filter->layer || filter->op || filter->disk))
		return wire_error_set(error, -EINVAL, "io.stackd.InvalidFilter",
				      filter->layer ? "layer"
				      : filter->op  ? "op"
						    : "disk",
				      "%s knows nothing of layers, operations and disks: iolat "
				      "does",
				      name);
	if (filter && filter->cpus.n)
		return wire_error_set(error, -EINVAL, "io.stackd.InvalidFilter", "cpus",
				      "CPUs are not kept: a session of oncpu can be started of "
				      "some only");
	if (info->kind == PROBE_OFFWAKE && request->open == 1)
		return wire_error_set(error, -EINVAL, "io.stackd.InvalidFilter", "open",
				      "offwake has waits that ended only: offcpu has the others");
	if (probe_kind_has_waits(info->kind))
		return 0;
	if (info->kind == PROBE_IOLAT && request->open != 1)
		return ios_check(filter, error);
	if (request->open == 1 || (request->sort && strcmp(request->sort, "max") == 0))
		return wire_error_set(error, -EINVAL, "io.stackd.InvalidFilter",
				      request->open == 1 ? "open" : "sort",
				      "%s has no waits, so none is open or the longest", name);
	if (filter && (filter->min_block_ns != WIRE_ABSENT || filter->max_block_ns != WIRE_ABSENT ||
		       filter->states.n))
		return wire_error_set(error, -EINVAL, "io.stackd.InvalidFilter", "min_block_ns",
				      "%s has no waits that have a length or a state", name);
	return 0;
}

/* A request, checked. */
struct question {
	struct filter filter;
	struct order order;
	struct query_range range;
	struct merge_options options;
	enum query_group group;
};

static int question_parse(const struct wire_snapshot_request *request, struct session *session,
			  struct question *question, struct wire_error *error)
{
	const struct filter *base = session_info(session)->filter;
	const struct wire_filter *filter_io = request->filter;
	int r = request_check(request, error);

	if (!r)
		r = kind_check(session_info(session), request, error);
	if (!r)
		r = filter_init(&question->filter, request->filter, error);
	if (!r && filter_io)
		r = filter_io_check(filter_io, error);
	if (!r && session_info(session)->kind == PROBE_IOLAT)
		r = by_parse_ios(request->by, &question->options.by, error);
	else if (!r)
		r = by_parse(request->by, &question->options, &question->group, error);
	/* Calls have no time to be sorted by. */
	if (!r && !request->sort && probe_kind_has_calls(session_info(session)->kind))
		r = order_parse("count", &question->order, error);
	else if (!r)
		r = order_parse(request->sort, &question->order, error);
	if (!r)
		r = query_range_resolve(request, session, &question->range, error);
	if (base->wire)
		question->filter.base = base;
	question->filter.drops_kernel |= base->drops_kernel;
	question->filter.drops_user |= base->drops_user;
	question->options.by_functions =
		session_info(session)->kind == PROBE_ONCPU && request->addresses != 1;
	question->options.open_only = request->open == 1;
	if (!r && question->options.open_only && question->group)
		return wire_error_set(error, -EINVAL, "io.stackd.InvalidFilter", "by",
				      "%.40s: open waits are by stack, thread or process",
				      request->by);
	if (question->options.open_only && !request->by)
		question->options.by = MERGE_BY_THREAD;
	return r;
}

static void reply_head(struct answer *answer)
{
	const struct session_info *info = session_info(answer->session);
	struct wire_snapshot_reply *reply = &answer->snapshot;
	bool has_waits = probe_kind_has_waits(info->kind);
	struct probe_status status;

	session_probe_status(answer->session, &status);
	reply->probe = probe_kind_name(info->kind);
	reply->session = info->id_text;
	reply->hook = status.hook ? status.hook : "none";
	reply->min_wait_ns = has_waits ? info->min_wait_ns : WIRE_ABSENT;
	reply->period_ns = info->kind == PROBE_ONCPU ? (int64_t)info->period_ns : WIRE_ABSENT;
}

/* What of I/O is not seen is no small part: each answer says so. */
static int notes_add_blind(struct answer *answer)
{
	const struct wire_strs *notes = &answer->snapshot.notes;
	struct probe_status status;
	const char **all;
	size_t i, n = 0;

	session_probe_status(answer->session, &status);
	all = arena_array(answer->arena, notes->n + status.n_blind + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	for (i = 0; i < notes->n; i++)
		all[n++] = notes->v[i];
	for (i = 0; i < status.n_blind; i++) {
		all[n] = arena_printf(answer->arena, "not seen: %s", status.blind[i]);
		if (!all[n++])
			return -ENOMEM;
	}
	answer->snapshot.notes = (struct wire_strs){ .v = all, .n = n };
	return 0;
}

static int notes_add(struct recorder *recorder, struct answer *answer,
		     const struct question *question, const struct query_coverage *found)
{
	const struct session_info *info = session_info(answer->session);
	struct notes_facts facts = {
		.min_wait_ns = probe_kind_has_waits(info->kind) ? info->min_wait_ns : 0,
		.short_waits = merge_totals(answer->merge)->short_waits,
		.has_estimates = merge_estimated(answer->merge) > 0,
		.open_only = question->options.open_only,
		.is_late = question->range.is_late,
		.kernel_names_error =
			recorder->resolver ? resolver_kernel_status(recorder->resolver) : 0,
		.merged = found->merged,
		.bad = found->bad,
	};

	struct drain_stats drain;
	int r = who_note(answer->arena, answer->merge, question->filter.wire, info->kind,
			 !recorder->is_serve_only, &facts.unseen);

	if (r)
		return r;
	session_stats(answer->session, &drain);
	facts.unread = answer_unread(answer->arena, &drain.openwait);
	if (!facts.unread)
		return -ENOMEM;
	return notes_make(answer->arena, &question->filter, &facts, &answer->snapshot.notes);
}

static void rest_add_row(struct wire_rest *rest, const struct wire_row *row)
{
	rest->rows++;
	rest->total_ns += row->total_ns;
}

/* Sorted, with the idle ones taken out unless they are wanted, cut to the top. */
static void grouped_cut(struct answer *answer, const struct wire_snapshot_request *request,
			struct wire_row *rows, size_t n, const struct order *order)
{
	struct wire_snapshot_reply *reply = &answer->snapshot;
	size_t i, wanted = 0, top;

	for (i = 0; i < n; i++) {
		if (rows[i].idle && request->idle != 1)
			rest_add_row(&reply->idle, &rows[i]);
		else
			rows[wanted++] = rows[i];
	}
	qsort(rows, wanted, sizeof(*rows), order->compare_rows);
	top = request->top > 0 && (uint64_t)request->top < wanted ? (size_t)request->top : wanted;
	for (i = 0; i < wanted; i++)
		rest_add_row(i < top ? &reply->shown : &reply->rest, &rows[i]);
	for (i = 0; request->reverse == 1 && i < top / 2; i++) {
		struct wire_row row = rows[i];

		rows[i] = rows[top - 1 - i];
		rows[top - 1 - i] = row;
	}
	reply->rows = (struct wire_rows){ .v = rows, .n = top };
	if (request->idle != 1)
		reply->idle.threads = (int64_t)merge_totals(answer->merge)->idle_threads;
}

/* By something that rows have in common: all of them get their names first. */
static int grouped_make(struct answer *answer, const struct wire_snapshot_request *request,
			const struct question *question, const struct answer_row_options *options)
{
	struct merge_group **groups;
	struct wire_rows grouped;
	struct wire_row *rows;
	size_t n;
	int r;

	groups = merge_groups(answer->merge, &n);
	r = answer_rows(answer, groups, n, options);
	if (!r)
		r = query_group_rows(answer->arena, question->group, &answer->snapshot.rows,
				     &grouped);
	if (r)
		return r;
	rows = arena_array(answer->arena, grouped.n + 1, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	for (n = 0; n < grouped.n; n++)
		rows[n] = grouped.v[n];
	grouped_cut(answer, request, rows, n, &question->order);
	return 0;
}

/* The answer has its session. */
static int snapshot_make(struct recorder *recorder, const struct query_peer *peer,
			 const struct wire_snapshot_request *request, struct answer *answer,
			 struct wire_error *error)
{
	const struct session_info *info = session_info(answer->session);
	struct answer_row_options rows = { .min_wait_ns = info->min_wait_ns };
	struct query_coverage found = {};
	struct question question = {};
	int r = question_parse(request, answer->session, &question, error);

	if (!r)
		r = query_range_windows(recorder, answer->session, &question.range, answer, error);
	if (!r)
		r = merge_make(recorder, answer, &question.filter, &question.options,
			       peer->is_stream, error);
	if (!r)
		r = query_range_coverage(recorder, answer, &question.range, &found);
	if (!r)
		r = losses_make(answer);
	if (r)
		return r;
	reply_head(answer);
	rows.by_thread = question.options.by == MERGE_BY_THREAD && !question.group;
	rows.kernel_addresses = peer->is_root;
	if (request->lines == 1 && !question.group)
		rows.lines_of = recorder;
	totals_make(answer, info->kind);
	r = notes_add(recorder, answer, &question, &found);
	if (r)
		return r;
	if (info->kind == PROBE_IOLAT)
		r = notes_add_blind(answer);
	if (r)
		return r;
	if (info->kind == PROBE_IOLAT)
		return answer_ios(answer, request, &rows);
	if (question.group)
		return grouped_make(answer, request, &question, &rows);
	return rows_make(answer, request, &question.order, &rows);
}

int query_snapshot(struct recorder *recorder, const struct query_peer *peer,
		   const struct wire_snapshot_request *request, struct answer **out,
		   struct wire_error *error)
{
	_cleanup_(answer_freep) struct answer *answer = answer_new();
	int r;

	if (!answer)
		return -ENOMEM;
	r = session_find(recorder, request, answer, error);
	if (!r)
		r = snapshot_make(recorder, peer, request, answer, error);
	if (r)
		return r;
	store_reading_rest(answer->reading);
	*out = TAKE(answer);
	return 0;
}
