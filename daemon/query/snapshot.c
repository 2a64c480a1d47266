/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base.h"
#include "common/note_words.h"
#include "daemon/holder/holder.h"
#include "daemon/query/absent.h"
#include "daemon/query/answer.h"
#include "daemon/query/answer_holders.h"
#include "daemon/query/answer_iolat.h"
#include "daemon/query/answer_pressure.h"
#include "daemon/query/answer_spawns.h"
#include "daemon/query/answer_stacks.h"
#include "daemon/query/notes.h"
#include "daemon/query/session_request.h"
#include "daemon/query/snapshot_internal.h"
#include "daemon/query/stored_sessions.h"
#include "daemon/query/turns.h"
#include "daemon/session/recorder.h"
#include "daemon/store/reader.h"
#include "daemon/window/reason_find.h"

/* How often rows are made again at most because waits turn out to be idle. */
enum { IDLE_ROUNDS = 4 };

/* For how long an answer about threads that were not seen is put off at most. */
#define PUT_OFF_NS NS_PER_S

/*
 * Sets what was lost of the slice. Waits that are open at its end are all in its last window, so
 * with open_only only that one counts.
 */
static int losses_make(struct answer *answer, const struct slice *slice)
{
	struct wire_snapshot_reply *reply = &answer->reply.snapshot;
	bool is_of_end = answer->slices->question.options.open_only && slice->end > slice->first;
	uint64_t lost[WINDOW_LOST_N] = {};
	int r;

	r = timeline_losses(answer->timeline, is_of_end ? slice->end - 1 : slice->first, slice->end,
			    lost);
	if (r)
		return r;
	r = answer_losses(answer->arena, lost, &reply->lost);
	reply->coverage.complete = reply->coverage.gaps.n == 0 && reply->lost.n == 0;
	return r;
}

static int64_t value_if(bool is_known, uint64_t value)
{
	return is_known ? (int64_t)value : WIRE_ABSENT;
}

static void totals_make(struct answer *answer, enum probe_kind kind)
{
	const struct aggregate_totals *totals = aggregate_totals(answer->aggregate);
	bool has_waits = probe_kind_has_waits(kind);
	bool has_open_waits = probe_kind_has(kind, PROBE_OPEN_WAITS);
	uint64_t throttled_ns = totals->throttled_ns < totals->runnable_ns ? totals->throttled_ns
									   : totals->runnable_ns;

	answer->reply.snapshot.totals = (struct wire_totals){
		.processes = (int64_t)totals->processes,
		.threads = (int64_t)totals->threads,
		.on_cpu_ns = (int64_t)totals->on_cpu_ns,
		.cpus = sysconf(_SC_NPROCESSORS_ONLN),
		.runnable_ns = value_if(has_waits, totals->runnable_ns),
		.blocked_ns = value_if(has_waits, totals->blocked_ns),
		.waits = value_if(has_waits, totals->waits),
		.throttled_ns = value_if(has_open_waits, throttled_ns),
		.short_waits = value_if(has_open_waits, totals->short_waits),
		.short_ns = value_if(has_open_waits, totals->short_ns),
		.sampled_ns = value_if(totals->sampled_ns > 0, totals->sampled_ns),
		.open_waits = value_if(has_open_waits, totals->open_waits),
		.unseen = value_if(totals->unseen > 0, totals->unseen),
		.unseen_ns = value_if(totals->unseen_ns > 0, totals->unseen_ns),
		.samples = value_if(probe_kind_has(kind, PROBE_SAMPLES), totals->samples),
		.calls = value_if(probe_kind_has(kind, PROBE_COUNTS), totals->samples),
		.ios = value_if(probe_kind_has(kind, PROBE_IO), totals->operations),
		.excluded_ns = value_if(totals->excluded_ns > 0, totals->excluded_ns),
	};
}

/*
 * Sets answer->aggregate to the sums of the slice. `newer` are those of the slices after it; NULL
 * if there are none.
 */
static int snapshot_aggregate(struct recorder *recorder, struct answer *answer,
			      const struct slice *slice, struct aggregate *newer)
{
	const struct filter *filter = &answer->slices->question.filter;
	struct stack *unread = stack_table_get(recorder->stacks, STACK_UNREAD, true);
	int r = aggregate_new_part(timeline_range(answer->timeline), slice->first, slice->end,
				   timeline_later(answer->timeline), newer, filter,
				   &answer->slices->question.options, unread, &answer->aggregate);

	stack_unref(unread);
	/* The rows of this slice are read before the windows of the next one. */
	timeline_pause(answer->timeline);
	return r;
}

/* Returns how many events were lost, as their rows, records or threads had no room. */
static uint64_t lost_events(const uint64_t *lost)
{
	uint64_t n = 0;

	for (size_t i = 0; i < WINDOW_LOST_N; i++)
		if (i != LOST_STACK_RING && i != LOST_STACK_SEEN && i != LOST_MAPPING_RING &&
		    i != LOST_IO_PROCESS && i != WINDOW_LOST_STACK_FRAMES)
			n += lost[i];
	return n;
}

/*
 * Returns the length below which some waits of the answer were not recorded with their threads; 0:
 * there is none. offcpu has the sums of all threads in any case.
 */
static int64_t all_from(const struct answer *answer)
{
	const struct session_info *info = session_info(answer->session);
	const int64_t below = aggregate_sample_below(answer->aggregate);

	if (!probe_kind_has_waits(info->kind) || probe_kind_has(info->kind, PROBE_OPEN_WAITS))
		return 0;
	return below > info->min_wait_ns ? below : info->min_wait_ns;
}

/*
 * Sets *out to which I/O the probe of answer->session does not record, without the command that
 * records it; to NULL if it records all. Returns 0 or -ENOMEM.
 */
static int io_above(const struct answer *answer, const char **out)
{
	struct probe_status status;
	const char *above;

	*out = NULL;
	session_probe_status(answer->session, &status);
	above = probe_status_above(&status);
	if (!above)
		return 0;
	*out = arena_strndup(answer->arena, above, strcspn(above, ":"));
	return *out ? 0 : -ENOMEM;
}

/*
 * Sets *out to what was not recorded of the slice. To be called after query_slice_coverage().
 * Returns 0 or -ENOMEM.
 */
static int absent_range_make(struct recorder *recorder, struct answer *answer,
			     const struct slice *slice, struct absent_range *out)
{
	const struct session_info *info = session_info(answer->session);
	const struct wire_gaps *gaps = &answer->reply.snapshot.coverage.gaps;
	uint64_t lost[WINDOW_LOST_N] = {};
	int r = timeline_losses(answer->timeline, slice->first, slice->end, lost);

	*out = (struct absent_range){
		.kind = info->kind,
		.is_live = !recorder->is_serve_only,
		.is_always = info->is_always,
		.all_from_ns = all_from(answer),
		.is_late = answer->slices->question.range.is_late,
		.late_ns = answer->slices->question.range.late_ns,
		.lost = lost_events(lost),
		.shared = lost[LOST_IO_PROCESS],
	};
	if (io_above(answer, &out->above))
		return -ENOMEM;
	for (size_t i = 0; i < gaps->n; i++)
		out->gaps_ns += gaps->v[i].end - gaps->v[i].start;
	return r;
}

/* Puts a query off until the current window may be ended, unless that was done. True if it is. */
static bool put_off(const struct recorder *recorder, const struct query_peer *peer)
{
	int64_t young_ns = recorder->config->window_min_length_ns;

	if (!peer->again_ns || *peer->again_ns)
		return false;
	*peer->again_ns =
		clock_ns(CLOCK_MONOTONIC) + (young_ns < PUT_OFF_NS ? young_ns : PUT_OFF_NS);
	return true;
}

/*
 * Makes a filter that selects no thread an error, which says why. Returns -ERESTART if threads of
 * the current window are not in the answer, as another question has ended a window a moment ago.
 */
static int threads_check(struct recorder *recorder, const struct query_peer *peer,
			 struct answer *answer, const struct slice *slice, struct wire_error *error)
{
	const struct filter *filter = &answer->slices->question.filter;
	struct absent_range range;
	int r;

	if (!filter_selects_threads(filter) || aggregate_totals(answer->aggregate)->threads)
		return 0;
	if (answer->slices->question.range.is_before_now && put_off(recorder, peer))
		return -ERESTART;
	r = absent_range_make(recorder, answer, slice, &range);
	return r ? r : absent_error(answer->aggregate, filter->wire, &range, error);
}

/*
 * Sets answer->session to the session that the request names, or to the always-on session of the
 * probe that the request names.
 */
static int session_find(struct recorder *recorder, const struct wire_snapshot_request *request,
			struct answer *answer, struct wire_error *error)
{
	enum probe_kind kind;
	int r;

	if (!request->probe == !request->session)
		return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, "probe",
				      "name either a probe or a session");
	if (request->session)
		return query_session_find(recorder, answer, request->session, error);
	r = query_kind(request->probe, &kind, error);
	if (!r)
		answer->session = session_ref(sessions_always(recorder->sessions, kind));
	return r;
}

/*
 * Returns the minimum length of waits or of slow operations if some in the answer were sampled
 * although the settings do not ask for it: to keep within the budget. Otherwise returns 0.
 */
static int64_t budget_from(const struct recorder *recorder, const struct session_info *info,
			   int64_t below)
{
	const int64_t setting = probe_sample_below_setting(info->kind, recorder->config);
	const int64_t least =
		info->kind == PROBE_IOLAT ? recorder->config->iolat_slow_ns : info->min_wait_ns;

	return probe_kind_has(info->kind, PROBE_PICKS) && !setting && below > least ? least : 0;
}

/*
 * Sets the cost of the answer. No budget holds the session of a client: of what was left out, it
 * lacks only what is not its own, the files of brief processes.
 */
static int cost_make(struct answer *answer)
{
	struct window_cost cost = *aggregate_cost(answer->aggregate);

	if (!session_info(answer->session)->is_always)
		cost.shed_ns[WINDOW_SHED_SAMPLES] = cost.shed_ns[WINDOW_SHED_CALLS] =
			cost.shed_ns[WINDOW_SHED_FRAMES] = 0;
	return answer_cost(answer->arena, &cost, &answer->reply.snapshot.cost);
}

static void reply_head(struct answer *answer)
{
	const struct session_info *info = session_info(answer->session);
	struct wire_snapshot_reply *reply = &answer->reply.snapshot;
	bool has_waits = probe_kind_has_waits(info->kind);
	struct probe_status status;

	session_probe_status(answer->session, &status);
	reply->probe = probe_kind_name(info->kind);
	reply->session = info->id_text;
	reply->hook = status.hook ? status.hook : "none";
	reply->min_wait_ns = has_waits ? info->min_wait_ns : WIRE_ABSENT;
	reply->sample_below_ns = value_if(aggregate_sample_below(answer->aggregate) > 0,
					  (uint64_t)aggregate_sample_below(answer->aggregate));
	reply->period_ns = value_if(probe_kind_has(info->kind, PROBE_SAMPLES), info->period_ns);
}

int snapshot_blind_notes(struct answer *answer)
{
	const char *notes[PROBE_MAX_BLIND];
	struct probe_status status;
	size_t i;

	session_probe_status(answer->session, &status);
	for (i = 0; i < status.n_blind; i++) {
		notes[i] = arena_printf(answer->arena, NOTE_BLIND "%s", status.blind[i]);
		if (!notes[i])
			return -ENOMEM;
	}
	return notes_append(answer->arena, &answer->reply.snapshot.notes, notes, status.n_blind);
}

/*
 * Adds a note if operations of several processes were counted in one row, because a window had no
 * room for a row of each process.
 */
static int shared_note_add(struct answer *answer, const struct slice *slice)
{
	uint64_t lost[WINDOW_LOST_N] = {};
	const char *note;

	timeline_losses(answer->timeline, slice->first, slice->end, lost);
	if (!lost[LOST_IO_PROCESS])
		return 0;
	note = arena_printf(answer->arena,
			    "%" PRIu64
			    " operations are in rows for several processes: their windows "
			    "had no room for more rows ([probe.iolat] max_keys)",
			    lost[LOST_IO_PROCESS]);
	if (!note)
		return -ENOMEM;
	return notes_append(answer->arena, &answer->reply.snapshot.notes, &note, 1);
}

/*
 * True if the rows of the answer may lack waits of the threads that the filter selects for no other
 * reason than that they were folded or lost.
 */
static bool counts_missing(const struct answer *answer, const struct snapshot_question *question,
			   enum probe_kind kind)
{
	const struct wire_snapshot_reply *reply = &answer->reply.snapshot;

	if (!aggregate_folded(answer->aggregate)->rows && !reply->lost.n)
		return false;
	return probe_kind_has(kind, PROBE_OPEN_WAITS) && !question->options.open_only &&
	       filter_selects_threads(&question->filter) &&
	       filter_has_all_shorts(&question->filter);
}

static int notes_add(struct recorder *recorder, struct answer *answer,
		     const struct snapshot_question *question, const struct slice *slice,
		     const struct timeline_coverage *found)
{
	const struct session_info *info = session_info(answer->session);
	int64_t below = aggregate_sample_below(answer->aggregate);
	struct notes_facts facts = {
		.min_wait_ns = probe_kind_has_waits(info->kind) && !below ? info->min_wait_ns : 0,
		.short_waits = below ? 0 : aggregate_totals(answer->aggregate)->short_waits,
		.sample_below_ns = below,
		.budget_from_ns = budget_from(recorder, info, below),
		.kind = info->kind,
		.has_estimates = aggregate_estimated(answer->aggregate) > 0,
		.open_only = question->options.open_only,
		.step_waits = aggregate_totals(answer->aggregate)->step_waits,
		.has_folded = aggregate_folded(answer->aggregate)->rows > 0,
		.has_lost = answer->reply.snapshot.lost.n > 0,
		.has_others = aggregate_has_others(answer->aggregate),
		.waits_ns = aggregate_totals(answer->aggregate)->blocked_ns +
			    aggregate_totals(answer->aggregate)->runnable_ns,
		.is_late = question->range.is_late,
		.late_ns = question->range.late_ns,
		.kernel_names_error =
			recorder->resolver ? resolver_kernel_status(recorder->resolver) : 0,
		.merged = found->compacted,
		.bad = found->bad,
		.summaries = question->summaries,
		.others = aggregate_others(answer->aggregate),
		.max_memory = question->options.max_memory,
	};
	struct absent_range range;
	struct drain_stats drain;
	int r;

	if (counts_missing(answer, question, info->kind))
		facts.missing_ns = aggregate_missing_ns(answer->aggregate);
	r = session_note(answer->session, answer->arena, &facts.session);
	if (r)
		return r;
	r = absent_range_make(recorder, answer, slice, &range);
	if (r)
		return r;
	r = absent_note(answer->arena, answer->aggregate, question->filter.wire, &range,
			&facts.absent);
	if (r)
		return r;
	session_stats(answer->session, &drain);
	facts.unread = answer_unread(answer->arena, &drain.openwait);
	if (!facts.unread)
		return -ENOMEM;
	r = notes_make(answer->arena, &question->filter, &facts, &answer->reply.snapshot.notes);
	if (r || !probe_kind_has(info->kind, PROBE_IO))
		return r;
	return snapshot_blind_notes(answer);
}

/*
 * If some groups did not fit into the query's memory, adds the facts about them to the reply.
 * Returns 0 or -ENOMEM.
 */
static int others_make(struct answer *answer)
{
	struct aggregate_others others = aggregate_others(answer->aggregate);
	struct wire_others *wire;

	if (!others.groups)
		return 0;
	wire = arena_alloc(answer->arena, sizeof(*wire));
	if (!wire)
		return -ENOMEM;
	*wire = (struct wire_others){
		.groups = (int64_t)others.groups,
		.bound_ns = (int64_t)others.bound_ns,
		.bound_count = (int64_t)others.bound_count,
	};
	answer->reply.snapshot.others = wire;
	return 0;
}

/* If rows are by line, sets how much of each slot of the range is covered. Returns 0 or -ENOMEM. */
static int slots_make(struct answer *answer)
{
	int64_t *slots = arena_array(answer->arena, AGGREGATE_SLOTS, sizeof(*slots));
	const uint64_t *ns;
	size_t i, n;

	if (!slots)
		return -ENOMEM;
	ns = aggregate_slots(answer->aggregate, &n);
	for (i = 0; i < n; i++)
		slots[i] = (int64_t)ns[i];
	answer->reply.snapshot.slots_ns = (struct int_list){ .v = slots, .n = n };
	return 0;
}

/* If summaries were read, adds the facts about them to the reply. Returns 0 or -ENOMEM. */
static int summaries_make(struct answer *answer, const struct timeline_summaries *summaries)
{
	struct wire_summaries *wire;

	if (!summaries->n)
		return 0;
	wire = arena_alloc(answer->arena, sizeof(*wire));
	if (!wire)
		return -ENOMEM;
	*wire = (struct wire_summaries){
		.windows = (int64_t)summaries->windows,
		.read = (int64_t)summaries->n,
		.bound_ns = (int64_t)summaries->lacks_ns,
	};
	answer->reply.snapshot.coverage.summaries = wire;
	return 0;
}

/*
 * Looks up who holds what the threads of the answer wait for, and makes its rows again if some of
 * the waits turn out to be idle: then others may be rows, which are looked up, too. A row that
 * stands for more waits than the one that is looked up stays. Returns 0 or -ENOMEM.
 */
static int holders_look_up(struct answer *answer, const struct snapshot_question *question)
{
	size_t n_all, idle, idle_all = 0;
	int r = 0;

	for (size_t i = 0; i < IDLE_ROUNDS && !r; i++) {
		/* The rows are the first ones of all groups. */
		struct aggregate_group **groups = aggregate_groups(answer->aggregate, &n_all);

		r = answer_holders_find(answer, groups, answer->source.n, n_all);
		if (r || question->options.group || !question->options.open_only)
			return r;
		idle = answer_holders_idle(groups, n_all);
		if (!idle)
			break;
		idle_all += idle;
		r = snapshot_rows(answer, question);
	}
	if (!question->with_idle)
		answer->reply.snapshot.idle.threads += (int64_t)idle_all;
	return r;
}

/*
 * Adds the holders that were looked up when waits were recorded, and a note if there are too many.
 * Returns 0 or -ENOMEM.
 */
static int recorded_holders_make(struct answer *answer)
{
	const uint64_t dropped = aggregate_held(answer->aggregate)->dropped;
	const char *note;
	int r = answer_holders_recorded(answer, answer->source.groups, answer->source.n);

	if (r || !dropped)
		return r;
	note = arena_printf(answer->arena,
			    "recorded holders of some waits are left out: an answer reads at most "
			    "%d, the newest ones",
			    HELD_SUM_MAX);
	return note ? notes_append(answer->arena, &answer->reply.snapshot.notes, &note, 1)
		    : -ENOMEM;
}

/*
 * Adds a note if waits of the present were not looked up, neither now nor when they were recorded.
 * Returns 0 or -ENOMEM.
 */
static int left_out_note(struct answer *answer)
{
	size_t left_out;
	const char *note;
	int r = answer_holders_left(answer, answer->source.groups, answer->source.n, &left_out);

	if (r || !left_out)
		return r;
	note = arena_printf(answer->arena,
			    "holders of %zu waits were not looked up: at most %d are at once, for "
			    "half a second; ask again, or about one process",
			    left_out, HOLDER_LOOKUPS);
	return note ? notes_append(answer->arena, &answer->reply.snapshot.notes, &note, 1)
		    : -ENOMEM;
}

/*
 * True if holders are looked up for the answer: those of the present are, so of the newest slice of
 * a range that ends now. A row of several threads has no holder of its own; a row by line or by
 * thread has that of its longest wait.
 */
static bool wants_holders(const struct recorder *recorder, const struct snapshot_question *question,
			  bool is_newest, const struct answer_row_options *options)
{
	return is_newest && question->range.is_to_now && !recorder->is_serve_only &&
	       (question->options.group == GROUP_BY_LINE || options->by_thread ||
		(question->options.open_only && options->has_stacks));
}

/* is_newest: whether the answer is about the newest slice of the range. */
static int rows_make(struct recorder *recorder, const struct query_peer *peer,
		     const struct wire_snapshot_request *request,
		     const struct snapshot_question *question, bool is_newest,
		     struct answer *answer)
{
	const struct session_info *info = session_info(answer->session);
	int64_t below = aggregate_sample_below(answer->aggregate);
	const struct answer_row_options options = {
		.short_below_ns = below > info->min_wait_ns ? below : info->min_wait_ns,
		.by_thread =
			question->options.by == AGGREGATE_BY_THREAD && !question->options.group,
		.has_stacks = !question->options.group &&
			      (question->options.by == AGGREGATE_BY_STACK ||
			       (question->options.open_only &&
				question->options.by != AGGREGATE_BY_PROCESS)),
		.group = question->options.group,
		.kernel_addresses = peer->is_root,
		.build_ids = request->build_ids == 1,
		.groups = request->groups == 1,
		/* A filter that names threads may name those of stackd. */
		.marks_own = !filter_selects_threads(&question->filter),
		.finds_functions = probe_kind_has_waits(info->kind) &&
				   aggregate_needs_functions(&question->filter, &question->options),
		.processes = recorder->processes,
		.has_estimates =
			info->is_always && probe_kind_has(info->kind, PROBE_SAMPLES) &&
			aggregate_cost(answer->aggregate)->shed_ns[WINDOW_SHED_SAMPLES] > 0,
	};
	int r = answer_source_init(answer, &options);
	bool looks_up;

	if (r)
		return r;
	if (probe_kind_has(info->kind, PROBE_IO))
		r = answer_iolat_rows(answer, question);
	else
		r = snapshot_rows(answer, question);
	if (r)
		return r;
	looks_up = wants_holders(recorder, question, is_newest, &options);
	if (looks_up) {
		r = holders_look_up(answer, question);
		if (r)
			return r;
	}
	/* A row of several reasons or threads has no object of its own, and one of I/O none. */
	if (answer->source.groups &&
	    (question->options.group == GROUP_BY_LINE || options.has_stacks || options.by_thread)) {
		r = recorded_holders_make(answer);
		if (r)
			return r;
	}
	if (looks_up) {
		r = left_out_note(answer);
		if (r)
			return r;
	}
	if (request->lines != 1 || question->options.group)
		return 0;
	/* All source lines are looked up together, so all rows are made here. */
	r = answer_rows_make(answer);
	return r ? r : answer_lines(recorder, answer, answer->source.stacks);
}

/*
 * Sets up the reader of the store so that it reads only those parts of windows that the question
 * needs.
 */
static void reader_prepare(struct recorder *recorder, struct answer *answer,
			   const struct snapshot_question *question)
{
	const struct aggregate_options *options = &question->options;
	struct store_reader *reader = answer_reader(answer, recorder->store);
	struct store_query query = { .userdata = &question->filter };
	bool has_waits = probe_kind_has_waits(session_info(answer->session)->kind);

	if (!filter_is_empty(&question->filter))
		query.wants = aggregate_wants;
	if (aggregate_needs_functions(&question->filter, options))
		query.max_frames = GROUP_FRAMES;
	if (has_waits && aggregate_needs_reasons(&question->filter, options))
		query.max_frames = REASON_FRAMES;
	/* A function may be in any frame. The ids of functions come with the frames. */
	if (filter_selects_functions(&question->filter))
		query.max_frames = SIZE_MAX;
	else if (options->by_functions && !options->group)
		query.with_functions = true;
	query.skips_members = !question->filter.wire || !question->filter.wire->pids.n;
	if (reader)
		store_reader_set_query(reader, &query);
}

/*
 * True if the answer has the processes that began and ended. They are those of the whole host, so
 * they do not belong to what a filter selects; and slices are about the time of threads.
 */
static bool wants_spawns(const struct snapshot_question *question,
			 const struct wire_snapshot_request *request)
{
	return filter_is_empty(&question->filter) && !question->options.open_only &&
	       !question->is_of_ranges && request->each_ns == WIRE_ABSENT;
}

/*
 * Reads the windows of the next slice, and makes the reply from them. `newer` is as in
 * snapshot_aggregate().
 */
static int reply_make(struct recorder *recorder, const struct query_peer *peer,
		      const struct wire_snapshot_request *request, struct aggregate *newer,
		      struct answer *answer, struct wire_error *error)
{
	const struct snapshot_question *question = &answer->slices->question;
	const struct slice *slice = &answer->slices->v[--answer->slices->n];
	bool is_alone =
		request->each_ns == WIRE_ABSENT && !peer->is_stream && !question->is_of_ranges;
	struct timeline_coverage found = {};
	int r = snapshot_aggregate(recorder, answer, slice, newer);

	if (r)
		return r;
	r = query_slice_coverage(answer, slice, &found);
	if (r)
		return r;
	r = losses_make(answer, slice);
	if (r)
		return r;
	/* Several slices or ranges may well have one without any thread. */
	if (is_alone) {
		r = threads_check(recorder, peer, answer, slice, error);
		if (r)
			return r;
	}
	answer->has_next = answer->slices->n > 0;
	reply_head(answer);
	r = answer_folded(answer->arena, aggregate_folded(answer->aggregate),
			  &answer->reply.snapshot.folded);
	if (r)
		return r;
	r = answer_pressure(answer->arena, aggregate_pressure(answer->aggregate),
			    &answer->reply.snapshot.pressure);
	if (r)
		return r;
	if (wants_spawns(question, request)) {
		r = answer_spawns(answer->arena, aggregate_spawns(answer->aggregate),
				  &answer->reply.snapshot.spawns);
		if (r)
			return r;
	}
	r = cost_make(answer);
	if (r)
		return r;
	totals_make(answer, session_info(answer->session)->kind);
	r = slots_make(answer);
	if (r)
		return r;
	r = notes_add(recorder, answer, question, slice, &found);
	if (r)
		return r;
	r = shared_note_add(answer, slice);
	if (r)
		return r;
	r = others_make(answer);
	if (r)
		return r;
	r = summaries_make(answer, &question->summaries);
	if (r)
		return r;
	return rows_make(recorder, peer, request, question, !newer, answer);
}

/*
 * Called if no window is in one of several ranges: sets reply.missing to the message of the error,
 * and clears the error. Returns 0 or -ENOMEM.
 */
static int range_is_missing(struct answer *answer, struct wire_error *error)
{
	answer->reply.snapshot.missing =
		arena_strdup(answer->arena, error->message ? error->message : "");
	wire_error_clear(error);
	return answer->reply.snapshot.missing ? 0 : -ENOMEM;
}

/*
 * Checks the request about answer->session, which must be set, and finds the windows of its range.
 * with_summaries: whether summaries may be read in place of windows.
 */
static int snapshot_open(struct recorder *recorder, const struct wire_snapshot_request *request,
			 enum snapshot_part part, bool with_summaries, struct answer *answer,
			 struct wire_error *error)
{
	struct snapshot_question *question;
	int r;

	answer->slices = calloc(1, sizeof(*answer->slices));
	if (!answer->slices)
		return -ENOMEM;
	question = &answer->slices->question;
	question->by_parts = part == SNAPSHOT_OF_OVERVIEW;
	question->follows_waits =
		question->by_parts && session_info(answer->session)->kind != PROBE_OFFCPU;
	question->is_of_ranges = part == SNAPSHOT_OF_RANGES;
	/* Each layer of I/O has the time of those below it: a row is a share of its layer's. */
	question->has_parts = part != SNAPSHOT_ALONE || request->each_ns != WIRE_ABSENT ||
			      probe_kind_has(session_info(answer->session)->kind, PROBE_IO);
	r = snapshot_question_init(question, request, answer->session, error);
	if (r)
		return r;
	question->options.max_memory = recorder->config->query_max_memory;
	reader_prepare(recorder, answer, question);
	r = query_range_open(recorder, answer, &question->range, error);
	if (r == -ENODATA && question->is_of_ranges && error->code == ERROR_NO_DATA)
		r = range_is_missing(answer, error);
	if (r)
		return r;
	if (with_summaries && request->each_ns == WIRE_ABSENT &&
	    snapshot_may_summarize(question, session_info(answer->session))) {
		r = timeline_summarize(answer->timeline, &question->summaries);
		if (r)
			return r;
	}
	return slices_make(timeline_range(answer->timeline), request->each_ns, answer->slices);
}

/* Does what aggregate_options.find_process() does, for an answer. */
static struct process *find_process(void *userdata, const struct aggregate_process *process)
{
	return answer_process(userdata, process);
}

static int snapshot_make(struct recorder *recorder, const struct query_peer *peer,
			 const struct wire_snapshot_request *request, struct aggregate *newer,
			 struct answer *answer, struct wire_error *error)
{
	struct aggregate_options *options = &answer->slices->question.options;
	int r = turn_wait(peer);

	if (r)
		return r;
	options->is_cancelled = peer->is_gone;
	options->find_process = find_process;
	options->userdata = answer;
	r = reply_make(recorder, peer, request, newer, answer, error);
	turn_end(peer);
	return r;
}

/*
 * Does what snapshot_answer() does. Returns -ESTALE if a summary could not be read, which does not
 * happen if with_summaries is false.
 */
static int answer_try(struct recorder *recorder, const struct query_peer *peer,
		      const struct wire_snapshot_request *request, enum snapshot_part part,
		      bool with_summaries, struct answer **out, struct wire_error *error)
{
	_cleanup_(answer_freep) struct answer *answer = answer_new();
	int r;

	if (!answer)
		return -ENOMEM;
	r = session_find(recorder, request, answer, error);
	if (r)
		return r;
	r = snapshot_open(recorder, request, part, with_summaries, answer, error);
	if (r)
		return r;
	r = snapshot_make(recorder, peer, request, NULL, answer, error);
	if (r)
		return r;
	if (timeline_has_bad_summary(answer->timeline))
		return -ESTALE;
	/* The rows are made while the client reads: for minutes, they need no windows. */
	if (!answer->has_next)
		answer->timeline = timeline_close(answer->timeline);
	*out = TAKE(answer);
	return 0;
}

int snapshot_answer(struct recorder *recorder, const struct query_peer *peer,
		    const struct wire_snapshot_request *request, enum snapshot_part part,
		    struct answer **out, struct wire_error *error)
{
	int r = answer_try(recorder, peer, request, part, true, out, error);

	return r == -ESTALE ? answer_try(recorder, peer, request, part, false, out, error) : r;
}

int snapshot_next(struct recorder *recorder, const struct query_peer *peer,
		  const struct wire_snapshot_request *request, struct answer **answer)
{
	struct wire_error error = { .limit = WIRE_ABSENT };
	struct answer *last = *answer, *next;
	struct aggregate *newer;
	int r;

	next = answer_new();
	if (!next)
		return -ENOMEM;
	next->session = session_ref(last->session);
	next->store = last->store;
	next->reader = TAKE(last->reader);
	next->timeline = TAKE(last->timeline);
	next->slices = TAKE(last->slices);
	newer = TAKE(last->aggregate);
	/* The next answer needs only what the last one knows about waits. */
	answer_free(last);
	*answer = next;
	r = snapshot_make(recorder, peer, request, newer, next, &error);
	aggregate_free(newer);
	wire_error_clear(&error);
	return r ? r : 1;
}
