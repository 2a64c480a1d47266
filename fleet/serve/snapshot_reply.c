/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/base.h"
#include "common/duration.h"
#include "fleet/serve/internal.h"
#include "fleet/serve/stacks.h"

enum { NOTES_MAX = 8 };

struct note_list {
	const char *v[NOTES_MAX];
	size_t n;
	bool has_failed;
};

static void note_add(struct note_list *list, const char *note)
{
	if (note && list->n < NOTES_MAX)
		list->v[list->n++] = note;
	else
		list->has_failed = true;
}

/* Adds the losses of all windows, by reason. Returns 0 or -ENOMEM. */
static int losses_make(const struct snapshot *snapshot, struct wire_losts *out)
{
	const struct headers *headers = &snapshot->headers;
	struct wire_lost *lost = NULL;
	size_t i, k, m, n = 0, most = 0;

	for (i = 0; i < headers->n; i++)
		most += header_counts(&headers->v[i]) ? headers->v[i].lost.n : 0;
	lost = arena_array(snapshot->answer->arena, most + 1, sizeof(*lost));
	if (!lost)
		return -ENOMEM;
	for (i = 0; i < headers->n; i++) {
		const struct wire_losts *from = &headers->v[i].lost;

		for (k = 0; header_counts(&headers->v[i]) && k < from->n; k++) {
			for (m = 0; m < n && strcmp(lost[m].reason, from->v[k].reason) != 0; m++)
				;
			if (m == n)
				lost[n++] = (struct wire_lost){ .reason = from->v[k].reason };
			sum_add(&lost[m].count, from->v[k].count);
		}
	}
	*out = (struct wire_losts){ .v = lost, .n = n };
	return 0;
}

/* Adds what the header of a window says to the totals. Processes and threads are added apart. */
static void totals_add(struct wire_totals *sum, const struct wire_totals *from)
{
	sum_add(&sum->on_cpu_ns, from->on_cpu_ns);
	sum_add(&sum->samples, from->samples);
	sum_add(&sum->runnable_ns, from->runnable_ns);
	sum_add(&sum->throttled_ns, from->throttled_ns);
	sum_add(&sum->blocked_ns, from->blocked_ns);
	sum_add(&sum->waits, from->waits);
	sum_add(&sum->short_waits, from->short_waits);
	sum_add(&sum->short_ns, from->short_ns);
	sum_add(&sum->sampled_ns, from->sampled_ns);
	sum_add(&sum->unseen_ns, from->unseen_ns);
}

/* Adds the totals of one host: of its windows, and the greatest numbers of a window. */
static void totals_add_host(struct wire_totals *sum, const struct headers *headers,
			    const struct header_host *host)
{
	int64_t processes = 0, threads = 0, cpus = 0;
	size_t i;

	for (i = host->first; i < host->first + host->n; i++) {
		const struct header *header = &headers->v[i];

		if (!header_counts(header))
			continue;
		totals_add(sum, &header->totals);
		if (header->totals.processes > processes)
			processes = header->totals.processes;
		if (header->totals.threads > threads)
			threads = header->totals.threads;
		cpus = header->totals.cpus;
		if (header->start == host->last) {
			sum_add(&sum->open_waits, header->totals.open_waits);
			sum_add(&sum->unseen, header->totals.unseen);
		}
	}
	sum_add(&sum->processes, processes);
	sum_add(&sum->threads, threads);
	sum_add(&sum->cpus, cpus);
}

static int64_t positive(int64_t value)
{
	return value > 0 ? value : WIRE_ABSENT;
}

/* Sets the totals if the question selects no threads: they are those of the headers. */
static void totals_of_headers(const struct snapshot *snapshot, struct wire_totals *out)
{
	const struct headers *headers = &snapshot->headers;
	struct wire_totals sum = {};
	size_t i;

	for (i = 0; i < headers->n_hosts; i++)
		totals_add_host(&sum, headers, &headers->hosts[i]);
	sum.calls = sum.ios = sum.excluded_ns = WIRE_ABSENT;
	sum.sampled_ns = positive(sum.sampled_ns);
	sum.unseen = positive(sum.unseen);
	sum.unseen_ns = positive(sum.unseen_ns);
	if (snapshot->question.is_sampled)
		sum.runnable_ns = sum.throttled_ns = sum.blocked_ns = sum.waits = sum.short_waits =
			sum.short_ns = sum.open_waits = WIRE_ABSENT;
	else
		sum.samples = WIRE_ABSENT;
	*out = sum;
}

/*
 * Sets the totals if the question selects threads: they are sums of rows. What rows do not have is
 * absent or, where it has to be there, 0; a note says so.
 */
static void totals_of_groups(const struct snapshot *snapshot, struct group **groups, size_t n,
			     struct wire_totals *out)
{
	bool is_sampled = snapshot->question.is_sampled;
	struct wire_totals sum = wire_totals_absent();
	int64_t count = 0, total = 0;
	size_t i;

	sum.runnable_ns = sum.throttled_ns = sum.blocked_ns = 0;
	for (i = 0; i < n; i++) {
		sum_add(&sum.runnable_ns, groups[i]->runnable_ns);
		sum_add(&sum.throttled_ns, groups[i]->throttled_ns);
		sum_add(&sum.blocked_ns, groups[i]->blocked_ns);
		sum_add(&count, groups[i]->count);
		sum_add(&total, groups[i]->total_ns);
	}
	/* It is known that there are some: an answer about no thread is told by this number. */
	sum.processes = sum.threads = n > 0;
	if (is_sampled) {
		sum.samples = count;
		sum.on_cpu_ns = total;
		sum.runnable_ns = sum.throttled_ns = sum.blocked_ns = WIRE_ABSENT;
	}
	*out = sum;
}

/* True if the totals of the headers are not those of the question. */
static bool selects_threads(const struct snapshot *snapshot)
{
	const struct filter *filter = &snapshot->question.filter;
	const struct wire_filter *wire = filter->wire;

	return wire && (filter_selects_threads(filter) || wire->user_threads == 1 ||
			wire->kernel_threads == 1 || wire->not_pids.n || wire->not_comms.n ||
			wire->not_cgroups.n || wire->not_units.n);
}

/* Returns how many rows of the hosts are in none of the rows that the tables have of them. */
static int64_t folded_rows(const struct headers *headers)
{
	int64_t n = 0;
	size_t i;

	for (i = 0; i < headers->n; i++)
		if (header_counts(&headers->v[i]) && headers->v[i].of_rows > headers->v[i].rows)
			sum_add(&n, headers->v[i].of_rows - headers->v[i].rows);
	return n;
}

/* True if the filter asks for what sums of several processes do not have. */
static bool selects_processes(const struct snapshot *snapshot)
{
	const struct wire_filter *wire = snapshot->question.filter.wire;

	return wire && (wire->pids.n || wire->not_pids.n || wire->comm || wire->comms.n ||
			wire->not_comms.n);
}

bool snapshot_lacks_processes(const struct snapshot *snapshot)
{
	return folded_rows(&snapshot->headers) && selects_processes(snapshot);
}

/* Returns the note about rows that were sent as sums. NULL when out of memory. */
static const char *folded_note(const struct snapshot *snapshot, int64_t folded)
{
	if (selects_processes(snapshot))
		return "small rows were sent as sums of several processes, which have neither pids "
		       "nor names: a part of the time may be missing or, where processes are left "
		       "out, too much";
	return arena_printf(snapshot->answer->arena,
			    "%" PRId64 " rows were sent as sums, without stacks: their times are "
			    "exact",
			    folded);
}

/* Adds a note about the host whose clock is ahead by most, if it has windows. */
static void clock_note_add(const struct snapshot *snapshot, struct note_list *list)
{
	const struct headers *headers = &snapshot->headers;
	const struct header_host *most = NULL;
	char ahead[DURATION_TEXT_MAX];
	size_t n = 0;

	for (size_t i = 0; i < headers->n_hosts; i++) {
		const struct header_host *host = &headers->hosts[i];

		if (host->last < 0 || !headers_host_ahead(host, snapshot->now))
			continue;
		n++;
		if (!most || host->seen > most->seen)
			most = host;
	}
	if (!most)
		return;
	duration_format(headers_host_ahead(most, snapshot->now), ahead);
	note_add(list,
		 arena_printf(snapshot->answer->arena,
			      "the clock of %s is, or was, ahead by %s%s: what is shown of "
			      "it may be as much older than it says",
			      most->name, ahead, n > 1 ? ", and those of others by less" : ""));
}

static int notes_make(const struct snapshot *snapshot, const struct stacks *stacks,
		      struct wire_strs *out)
{
	struct arena *arena = snapshot->answer->arena;
	const struct headers *headers = &snapshot->headers;
	const char **notes = arena_array(arena, NOTES_MAX, sizeof(*notes));
	int64_t folded = folded_rows(headers);
	char behind[DURATION_TEXT_MAX];
	struct note_list list = {};

	if (snapshot->behind_ns) {
		duration_format(snapshot->behind_ns, behind);
		note_add(&list, arena_printf(arena,
					     "the newest window that was sent ended %s ago: the "
					     "range ends there",
					     behind));
	}
	clock_note_add(snapshot, &list);
	if (headers->n_double)
		note_add(&list, arena_printf(arena, "%zu windows were sent twice: each counts once",
					     headers->n_double));
	if (folded)
		note_add(&list, folded_note(snapshot, folded));
	if (snapshot->lacks_open && !snapshot->question.is_sampled)
		note_add(&list, "waits that had not ended are not counted in rows: the range has "
				"too many hosts");
	if (selects_threads(snapshot))
		note_add(&list, "of a part of the threads it is not known how many there are, and "
				"of waits not how long they were on a CPU: these are not counted");
	else if (headers->n_windows > headers->n_hosts)
		note_add(&list, "processes and threads: the most in one window of each host");
	if (stacks->n_ambiguous)
		note_add(&list, arena_printf(arena,
					     "%zu stacks are not what their ids say, and are not "
					     "shown",
					     stacks->n_ambiguous));
	if (list.has_failed || !notes)
		return -ENOMEM;
	memcpy(notes, list.v, list.n * sizeof(*notes));
	*out = (struct wire_strs){ .v = notes, .n = list.n };
	return 0;
}

/* Sets what the windows have in common: the hook, and the shortest wait that has a row. */
static void head_make(const struct snapshot *snapshot, struct wire_snapshot_reply *reply)
{
	const struct headers *headers = &snapshot->headers;
	int64_t least = WIRE_ABSENT, below = WIRE_ABSENT, period = WIRE_ABSENT;
	const char *hook = NULL;
	size_t i;

	for (i = 0; i < headers->n; i++) {
		const struct header *header = &headers->v[i];

		if (!header_counts(header))
			continue;
		if (header->min_wait_ns > least)
			least = header->min_wait_ns;
		if (header->sample_below_ns && header->sample_below_ns > below)
			below = header->sample_below_ns;
		if (header->period_ns && header->period_ns > period)
			period = header->period_ns;
		hook = !hook || strcmp(hook, header->hook) == 0 ? header->hook : "several";
	}
	reply->probe = snapshot->request->probe;
	reply->hook = hook && hook[0] ? hook : "none";
	reply->min_wait_ns = snapshot->question.is_sampled ? WIRE_ABSENT : least;
	reply->sample_below_ns = below;
	reply->period_ns = snapshot->question.is_sampled ? period : WIRE_ABSENT;
}

static void rest_add(struct wire_rest *rest, const struct group *group)
{
	rest->rows++;
	sum_add(&rest->total_ns, group->total_ns);
	if (!group->sampled_ns)
		return;
	if (rest->sampled_ns == WIRE_ABSENT)
		rest->sampled_ns = 0;
	sum_add(&rest->sampled_ns, group->sampled_ns);
}

static const struct wire_stack *pseudo_stack(struct arena *arena, const char *name)
{
	struct wire_stack *stack = arena_alloc(arena, sizeof(*stack));
	struct wire_frame *frame = arena_alloc(arena, sizeof(*frame));

	if (!stack || !frame || !name)
		return NULL;
	*frame = wire_frame_absent();
	frame->kind = "pseudo";
	frame->name = name;
	*stack = (struct wire_stack){ .id = "0x0",
				      .frames = { .v = frame, .n = 1 },
				      .scheduler = WIRE_ABSENT };
	return stack;
}

static const char *or_null(const char *text)
{
	return text[0] ? text : NULL;
}

/* Returns the text for waits that were only counted. NULL when out of memory. */
static const char *short_text(const struct snapshot *snapshot)
{
	const struct wire_snapshot_reply *reply = &snapshot->answer->reply.snapshot;
	int64_t below = reply->sample_below_ns > reply->min_wait_ns ? reply->sample_below_ns
								    : reply->min_wait_ns;

	return arena_printf(snapshot->answer->arena, "[waits under %" PRId64 "us]",
			    below / NS_PER_US);
}

/* Returns what a row is called if rows are by name. NULL when out of memory. */
static const char *row_key(const struct snapshot *snapshot, const struct group *group)
{
	enum group_by name = snapshot->question.name;

	if (group->name[0])
		return group->name;
	if (name == GROUP_BY_COMM)
		return "(others)";
	if (name != GROUP_BY_FUNCTION && name != GROUP_BY_MODULE && name != GROUP_BY_REASON)
		return group->name;
	if (strcmp(group->state, "-") == 0)
		return short_text(snapshot);
	return name == GROUP_BY_REASON ? "unknown" : "[stacks were not sent]";
}

/* If a row by line stands for several processes, says how many, and names only what they share. */
static void line_set_processes(const struct group *group, struct wire_row *row)
{
	row->processes = group->processes > group->folded ? group->processes : group->folded;
	if (row->processes < 2)
		return;
	row->process.pid = 0;
	row->process.start = 0;
	row->process.cgroup = NULL;
	row->process.exited = false;
	row->process.replaced = WIRE_BOOL_ABSENT;
}

/* Fills in whom a row is about. */
static void row_set_who(const struct snapshot *snapshot, const struct group *group,
			struct wire_row *row)
{
	const struct groups_question *question = &snapshot->question;
	bool is_of_one = question->by == GROUPS_BY_PROCESS || question->is_one_host;

	row->process.comm = group->pcomm;
	row->process.exe = or_null(group->exe);
	row->process.cgroup = or_null(group->cgroup);
	row->process.kernel = group->kernel;
	row->comm = question->by == GROUPS_BY_PROCESS ? group->pcomm : group->comm;
	if (is_of_one) {
		row->process.pid = group->pid;
		row->process.start = group->pstart;
		row->process.exited = group->exited;
	}
	if (question->by == GROUPS_BY_HOST || question->by == GROUPS_BY_NAME) {
		row->key = row_key(snapshot, group);
		row->comm = question->name == GROUP_BY_COMM ? row->key : group->max_comm;
	}
	if (!question->is_one_host && (is_of_one || question->by == GROUPS_BY_HOST))
		row->host = group->host;
	if (group->kind == KIND_REST)
		row->process.comm = row->comm = "(others)";
	/* Each thread of the kernel is a process: the row is for those of like names. */
	if (question->by == GROUPS_BY_LINE && group->kernel) {
		row->process.pid = 0;
		row->process.comm = row->comm;
	} else if (question->by == GROUPS_BY_LINE && !group->own) {
		line_set_processes(group, row);
	}
	if (groups_are_of_all_hosts(question))
		row->folded = positive(group->processes);
	else if (question->by != GROUPS_BY_HOST && question->by != GROUPS_BY_NAME)
		row->folded = positive(group->folded);
	if (!group->own)
		return;
	row->own = 1;
	row->host = row->key = NULL;
	row->folded = WIRE_ABSENT;
	row->process = (struct wire_process){ .comm = "stackd", .replaced = WIRE_BOOL_ABSENT };
	row->comm = row->process.comm;
	if (question->by == GROUPS_BY_HOST || question->by == GROUPS_BY_NAME)
		row->key = row->comm;
}

/* Fills in what only rows of waits have. Returns 0 or -ENOMEM. */
static int row_set_waits(const struct snapshot *snapshot, const struct group *group,
			 struct wire_row *row)
{
	int64_t *buckets = arena_array(snapshot->answer->arena, WAIT_BUCKETS, sizeof(*buckets));
	size_t n = WAIT_BUCKETS, i;

	if (!buckets)
		return -ENOMEM;
	while (n > 0 && !group->buckets[n - 1])
		n--;
	for (i = 0; i < n; i++)
		buckets[i] = group->buckets[i];
	row->buckets = (struct int_list){ .v = buckets, .n = n };
	row->state = group_state(group);
	row->state_bits = group->state_bits;
	row->blocked_ns = group->blocked_ns;
	row->runnable_ns = group->runnable_ns;
	row->throttled_ns = group->throttled_ns;
	if (group->sampled || group->sampled_ns) {
		row->sampled = group->sampled;
		row->sampled_ns = group->sampled_ns;
	}
	row->open = group->open;
	/* Of a wait that went on for several windows, rows do not have the part in the others. */
	row->open_ns =
		snapshot->headers.n_windows > 1 && group->open ? WIRE_ABSENT : group->open_ns;
	row->unseen = positive(group->unseen);
	row->max_ns = group->max_ns;
	if (!group->max_ns)
		return 0;
	row->max_end = positive(group->max_end);
	row->max_tid = group->max_tid;
	row->max_comm = group->max_comm;
	return 0;
}

/* Fills in the stacks of a row, and the reason of its waits. Returns 0 or -ENOMEM. */
static int row_set_stacks(const struct snapshot *snapshot, const struct group *group,
			  const struct stacks *stacks, struct wire_row *row)
{
	struct arena *arena = snapshot->answer->arena;

	if ((snapshot->question.by == GROUPS_BY_NAME &&
	     snapshot->question.name == GROUP_BY_REASON) ||
	    (snapshot->question.by == GROUPS_BY_LINE && !group->own))
		row->reason = or_null(group->reason);
	if (snapshot->question.by == GROUPS_BY_LINE)
		row->function = groups_line_function(group);
	if (group->is_urgent)
		row->urgent = 1;
	if (group->reasons && !group->reasons->next)
		row->reason = wait_reason_word(group->reasons->reason);
	else if (group->reasons &&
		 reason_times_wire(group->reasons, (uint64_t)group->total_ns, arena, &row->reasons))
		return -ENOMEM;
	if (snapshot->question.by != GROUPS_BY_STACK || group->own)
		return 0;
	row->reason = or_null(group->reason);
	if (strcmp(group->state, "-") == 0)
		row->kernel = pseudo_stack(arena, short_text(snapshot));
	else if (group->kind != KIND_ROW)
		row->kernel = pseudo_stack(arena, "[stacks were not sent]");
	else {
		row->kernel = stacks_get(stacks, group->kstack);
		row->user = stacks_get(stacks, group->ustack);
		return 0;
	}
	return row->kernel ? 0 : -ENOMEM;
}

static int row_make(const struct snapshot *snapshot, const struct group *group,
		    const struct stacks *stacks, struct wire_row *row)
{
	int r = 0;

	*row = wire_row_absent();
	row->idle = group->idle;
	row->count = group->count;
	row->total_ns = group->total_ns;
	if (group->estimated)
		row->estimated = 1;
	row_set_who(snapshot, group, row);
	if (!snapshot->question.is_sampled)
		r = row_set_waits(snapshot, group, row);
	return r ? r : row_set_stacks(snapshot, group, stacks, row);
}

/*
 * Moves the groups that the answer shows to the front, in their order: the first `top` of those
 * that are not hidden as idle, or those that are the first of a part of an overview, then those of
 * stackd itself. Adds all groups to the sums of the reply. Returns the number of groups that are
 * shown.
 */
static size_t groups_choose(const struct snapshot *snapshot, struct group **groups, size_t n,
			    struct group **shown)
{
	struct wire_snapshot_reply *reply = &snapshot->answer->reply.snapshot;
	int64_t asked = snapshot->request->top;
	size_t top = asked > 0 ? (size_t)asked : SIZE_MAX, n_shown = 0, i;
	bool by_parts = snapshot->asked->is_of_overview && asked > 0;

	reply->shown = reply->rest = reply->idle = wire_rest_absent();
	for (i = 0; i < n; i++) {
		struct group *group = groups[i];

		if (group->idle && !snapshot->with_idle) {
			rest_add(&reply->idle, group);
		} else if (!group->own && (by_parts ? group->is_first : n_shown < top)) {
			rest_add(&reply->shown, group);
			shown[n_shown++] = group;
		} else if (!group->own) {
			rest_add(&reply->rest, group);
		}
	}
	for (i = 0; i < n; i++) {
		if (!groups[i]->own || (groups[i]->idle && !snapshot->with_idle))
			continue;
		rest_add(&reply->shown, groups[i]);
		shown[n_shown++] = groups[i];
	}
	for (i = 0; snapshot->request->reverse == 1 && i < n_shown / 2; i++) {
		struct group *group = shown[i];

		shown[i] = shown[n_shown - 1 - i];
		shown[n_shown - 1 - i] = group;
	}
	return n_shown;
}

static int rows_make(const struct snapshot *snapshot, struct group **shown, size_t n,
		     struct stacks *stacks)
{
	struct fleet_answer *answer = snapshot->answer;
	struct wire_row *rows = arena_array(answer->arena, n + 1, sizeof(*rows));
	size_t i;
	int r;

	answer->reply.snapshot.rows = (struct wire_rows){ .v = rows, .n = n };
	if (!rows)
		return -ENOMEM;
	for (i = 0; i < n && snapshot->question.by == GROUPS_BY_STACK; i++) {
		r = stacks_want(stacks, shown[i]->kstack);
		if (r)
			return r;
		r = stacks_want(stacks, shown[i]->ustack);
		if (r)
			return r;
	}
	r = stacks_read(stacks, answer->shards, answer->config);
	if (r)
		return r;
	for (i = 0; i < n; i++) {
		r = row_make(snapshot, shown[i], stacks, &rows[i]);
		if (r)
			return r;
	}
	return 0;
}

/* Makes everything that is about the groups: rows, sums and totals. */
static int groups_reply(struct snapshot *snapshot, struct stacks *stacks)
{
	struct wire_snapshot_reply *reply = &snapshot->answer->reply.snapshot;
	struct group **groups, **shown;
	size_t n = snapshot->groups.n, n_shown;
	bool has_parts = snapshot->asked->slice || snapshot->asked->is_of_overview ||
			 snapshot->request->ranges.n;
	int r = groups_sort(&snapshot->groups, &groups);

	if (r)
		return r;
	shown = arena_array(snapshot->answer->arena, n + 1, sizeof(struct group *));
	if (!shown)
		return -ENOMEM;
	if (selects_threads(snapshot))
		totals_of_groups(snapshot, groups, n, &reply->totals);
	else
		totals_of_headers(snapshot, &reply->totals);
	groups_mark_urgent(groups, n);
	if (has_parts)
		r = snapshot_parts_make(snapshot, groups, n);
	if (r)
		return r;
	n_shown = groups_choose(snapshot, groups, n, shown);
	return rows_make(snapshot, shown, n_shown, stacks);
}

int snapshot_reply_make(struct snapshot *snapshot)
{
	struct fleet_answer *answer = snapshot->answer;
	struct wire_snapshot_reply *reply = &answer->reply.snapshot;
	_cleanup_(stacks_fini) struct stacks stacks = { .arena = answer->arena };
	int r;

	head_make(snapshot, reply);
	reply->fleet = fleet_make(snapshot->answer, snapshot->headers.n_hosts);
	r = reply->fleet ? groups_reply(snapshot, &stacks) : -ENOMEM;
	if (r)
		return r;
	r = headers_coverage(&snapshot->headers, answer->shards, &snapshot->range, snapshot->now,
			     answer->arena, &reply->coverage);
	if (r)
		return r;
	r = losses_make(snapshot, &reply->lost);
	if (r)
		return r;
	r = notes_make(snapshot, &stacks, &reply->notes);
	if (r)
		return r;
	reply->coverage.complete = snapshot->headers.n_windows && !reply->coverage.gaps.n &&
				   !reply->lost.n && !shards_n_failed(answer->shards);
	return 0;
}
