/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/query/answer_iolat.h"
#include "daemon/query/snapshot_internal.h"
#include "daemon/session/session.h"
#include "daemon/window/task_state.h"

static uint64_t group_total(const struct aggregate_group *group)
{
	return group->on_ns + group->blocked_ns + group->runnable_ns;
}

/*
 * Compares groups for qsort(): those of a lower place come first, else the greater value comes
 * first. Groups with equal values are in the order of their totals, names and keys.
 */
static int by_value(const void *x, const void *y,
		    uint64_t (*value)(const struct aggregate_group *group))
{
	const struct aggregate_group *const *a = x, *const *b = y;
	int r = (int)(*a)->place - (int)(*b)->place;

	if (r)
		return r;
	r = COMPARE_DESCENDING(value(*a), value(*b));
	if (r)
		return r;
	r = COMPARE_DESCENDING(group_total(*a), group_total(*b));
	if (r)
		return r;
	if ((*a)->name && (*b)->name) {
		r = strcmp((*a)->name, (*b)->name);
		if (r)
			return r;
	}
	return memcmp(&(*a)->key, &(*b)->key, sizeof((*a)->key));
}

static int by_total(const void *x, const void *y)
{
	return by_value(x, y, group_total);
}

static uint64_t group_max(const struct aggregate_group *group)
{
	return group->max_ns;
}

static int by_max(const void *x, const void *y)
{
	return by_value(x, y, group_max);
}

static uint64_t group_count(const struct aggregate_group *group)
{
	return group->count;
}

static int by_count(const void *x, const void *y)
{
	return by_value(x, y, group_count);
}

void snapshot_rests_init(struct wire_snapshot_reply *reply)
{
	reply->shown = reply->rest = reply->idle = wire_rest_absent();
	reply->idle.threads = 0;
}

void snapshot_rest_add(struct wire_rest *rest, int64_t total_ns, int64_t sampled_ns)
{
	rest->rows++;
	rest->total_ns += total_ns;
	if (sampled_ns)
		rest->sampled_ns =
			(rest->sampled_ns == WIRE_ABSENT ? 0 : rest->sampled_ns) + sampled_ns;
}

/* The numbers of groups in the first sections of an array, in this order. */
struct sections {
	size_t wanted; /* the groups to show, as many as the client asked for */
	size_t own;    /* the groups of stackd's own threads, which are shown in any case */
	size_t others; /* the sums of groups that did not fit into memory */
};

/* Moves the groups that `is` selects, at most two, to the end of the first *n groups. */
static size_t groups_move(struct aggregate_group **groups, size_t *n,
			  bool (*is)(const struct aggregate_group *group))
{
	struct aggregate_group *moved[2];
	size_t i, n_moved = 0;

	for (i = *n; i-- > 0;) {
		if (!is(groups[i]))
			continue;
		moved[n_moved++] = groups[i];
		groups[i] = groups[--*n];
	}
	for (i = 0; i < n_moved; i++)
		groups[*n + i] = moved[i];
	return n_moved;
}

static bool is_others(const struct aggregate_group *group)
{
	return group->is_others;
}

static bool is_own(const struct aggregate_group *group)
{
	return group->is_own;
}

/*
 * Sorts the groups into sections of the array, with the idle groups in the last one, unless the
 * client asked for them: an idle group is there even if it is one of the others.
 */
static struct sections groups_part(struct aggregate_group **groups, size_t n, bool with_idle)
{
	struct sections sections = {};
	struct aggregate_group *group;
	size_t i, wanted = 0;

	for (i = 0; i < n; i++) {
		group = groups[i];
		if (group->is_idle && !with_idle)
			continue;
		groups[i] = groups[wanted];
		groups[wanted++] = group;
	}
	sections.wanted = wanted;
	sections.others = groups_move(groups, &sections.wanted, is_others);
	sections.own = groups_move(groups, &sections.wanted, is_own);
	return sections;
}

static void groups_swap(struct aggregate_group **a, struct aggregate_group **b)
{
	struct aggregate_group *group = *a;

	*a = *b;
	*b = group;
}

/*
 * Returns how many groups are shown: those of the first section that the client asked for, the
 * `first` ones, and then those of stackd's own threads. Moves them to the front. If all groups are
 * wanted, the sums of merged groups are shown, too, so that the rows add up to the totals.
 */
static size_t groups_show(struct aggregate_group **groups, const struct sections *sections,
			  size_t first)
{
	size_t i;

	if (first > sections->wanted)
		return sections->wanted + sections->own + sections->others;
	for (i = 0; i < sections->own; i++)
		groups_swap(&groups[first + i], &groups[sections->wanted + i]);
	return first + sections->own;
}

static uint64_t throttled_of(const struct aggregate_group *group)
{
	return group->throttled_ns < group->runnable_ns ? group->throttled_ns : group->runnable_ns;
}

static uint64_t runnable_of(const struct aggregate_group *group)
{
	return group->runnable_ns - throttled_of(group);
}

static uint64_t blocked_of(const struct aggregate_group *group)
{
	return group->blocked_ns;
}

static int by_throttled(const void *x, const void *y)
{
	return by_value(x, y, throttled_of);
}

static int by_runnable(const void *x, const void *y)
{
	return by_value(x, y, runnable_of);
}

static int by_blocked(const void *x, const void *y)
{
	const struct aggregate_group *const *a = x, *const *b = y;

	/* An urgent group is never idle; it comes first also if it is small. */
	if ((*a)->is_urgent != (*b)->is_urgent)
		return (*a)->is_urgent ? -1 : 1;
	return by_value(x, y, blocked_of);
}

static int by_first(const void *x, const void *y)
{
	const struct aggregate_group *const *a = x, *const *b = y;
	int r = (int)(*b)->is_first - (int)(*a)->is_first;

	return r ? r : by_total(x, y);
}

/* The bit of the kernel's task state that says that kill -9 ends a wait in the state D. */
enum { TASK_WAKEKILL = 0x100 };

/*
 * A wait in the state D, and one for a lock, is urgent if it is as long as this. Of those for
 * locks, only rows with more than one in URGENT_PART parts of the blocked time: there are often
 * some, and they must not hide what most of the time is for. But what pools wait for without being
 * known as idle may be most of the time, and two threads in a deadlock have little of it: so the
 * one with the longest wait is urgent, too, if that is as long as URGENT_ALONE_NS.
 */
#define URGENT_D_NS	(5 * NS_PER_S)
#define URGENT_LOCK_NS	NS_PER_S
#define URGENT_ALONE_NS (5 * NS_PER_S)
enum { URGENT_PART = 32 };

/* True if the group may hold up its program: rows are by line, and it has waits that are no rest.
 */
static bool may_be_urgent(const struct aggregate_group *group)
{
	return group->line && !group->is_idle && !group->is_own && !group->is_sample &&
	       !(group->open && group->unseen >= group->open);
}

/* True if the longest wait of the group is in the state D, so that no signal ends it, for long. */
static bool is_long_d(const struct aggregate_group *group)
{
	return strcmp(task_states_letter(group->state), "D") == 0 && group->open &&
	       !(group->state & TASK_WAKEKILL) && group->max_ns >= URGENT_D_NS;
}

static bool is_long_lock(const struct aggregate_group *group, int64_t least_ns)
{
	return group->has_reason && wait_reason_is_lock(group->reason) &&
	       group->max_ns >= (uint64_t)least_ns;
}

/* Marks the groups that most likely hold up their programs. */
static void urgent_mark(struct aggregate_group **groups, size_t n)
{
	struct aggregate_group *alone = NULL;
	uint64_t blocked_ns = 0;

	for (size_t i = 0; i < n; i++)
		blocked_ns += groups[i]->is_idle ? 0 : groups[i]->blocked_ns;
	for (size_t i = 0; i < n; i++) {
		struct aggregate_group *group = groups[i];
		bool is_urgent_lock = is_long_lock(group, URGENT_LOCK_NS) &&
				      group->blocked_ns > blocked_ns / URGENT_PART;

		if (!may_be_urgent(group))
			continue;
		group->is_urgent = is_urgent_lock || is_long_d(group);
		if (is_long_lock(group, URGENT_ALONE_NS) &&
		    (!alone || group->max_ns > alone->max_ns))
			alone = group;
	}
	if (alone)
		alone->is_urgent = true;
}

/* It is not known which part of the sampled time was throttled: it may be all of it, or none. */
static uint64_t sampled_at_most(const struct aggregate_group *group, uint64_t ns)
{
	return group->sampled.runnable_ns < ns ? group->sampled.runnable_ns : ns;
}

static uint64_t sampled_runnable_of(const struct aggregate_group *group)
{
	return sampled_at_most(group, runnable_of(group));
}

static uint64_t sampled_throttled_of(const struct aggregate_group *group)
{
	return sampled_at_most(group, throttled_of(group));
}

static uint64_t sampled_blocked_of(const struct aggregate_group *group)
{
	return group->sampled.blocked_ns;
}

/* The parts into which an overview divides the time of threads. */
static const struct overview_part {
	const char *name;
	bool is_of_samples;
	uint64_t (*ns)(const struct aggregate_group *group);
	/* the part of it that is an estimate; NULL: none of it is */
	uint64_t (*sampled)(const struct aggregate_group *group);
	int (*compare)(const void *a, const void *b);
} overview_parts[] = {
	{ "on CPU", true, group_total, NULL, by_total },
	{ "runnable", false, runnable_of, sampled_runnable_of, by_runnable },
	{ "throttled", false, throttled_of, sampled_throttled_of, by_throttled },
	{ "blocked", false, blocked_of, sampled_blocked_of, by_blocked },
};

/*
 * Returns the sums of one part of the time, such as "blocked", over all n + n_others groups. Unless
 * `top` is 0, sorts the first n groups by their time in this part, and sets is_first of the `top`
 * groups that have the most.
 */
static struct wire_part part_make(const struct overview_part *part, struct aggregate_group **groups,
				  size_t n, size_t n_others, size_t top)
{
	struct wire_part wire = { .name = part->name };
	uint64_t ns, sampled = 0;
	size_t i, n_first = 0;

	if (top)
		qsort(groups, n, sizeof(*groups), part->compare);
	for (i = 0; i < n + n_others; i++) {
		ns = part->ns(groups[i]);
		/* Before idle groups with time in this part may be others without any. */
		if (i < n && ns && n_first < top) {
			groups[i]->is_first = true;
			n_first++;
		}
		wire.rows += ns > 0;
		wire.total_ns += (int64_t)ns;
		sampled += part->sampled ? part->sampled(groups[i]) : 0;
	}
	wire.sampled_ns = sampled ? (int64_t)sampled : WIRE_ABSENT;
	return wire;
}

/*
 * Moves the groups that an overview shows to the front, and sets reply.snapshot.parts. Returns the
 * number of these groups, or -ENOMEM.
 */
static ssize_t parts_make(struct answer *answer, struct aggregate_group **groups, size_t n,
			  size_t n_others, size_t top)
{
	bool is_of_samples = probe_kind_has(session_info(answer->session)->kind, PROBE_SAMPLES);
	struct wire_part *parts =
		arena_array(answer->arena, ARRAY_SIZE(overview_parts), sizeof(*parts));
	size_t i, n_parts = 0, first = 0;

	if (!parts)
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(overview_parts); i++)
		if (overview_parts[i].is_of_samples == is_of_samples)
			parts[n_parts++] = part_make(&overview_parts[i], groups, n, n_others, top);
	answer->reply.snapshot.parts = (struct wire_parts){ .v = parts, .n = n_parts };
	if (top)
		qsort(groups, n, sizeof(*groups), by_first);
	while (first < n && groups[first]->is_first)
		first++;
	return (ssize_t)first;
}

/*
 * The places of groups in the order of rows. PLACE_D, PLACE_LOCK and PLACE_DOUBT are used for waits
 * that are still open, sorted by their lengths: one that no signal ends comes first, then those for
 * locks, and those that may be over come last.
 */
enum { PLACE_D, PLACE_LOCK, PLACE_BUSY, PLACE_IDLE, PLACE_SMALL, PLACE_DOUBT };

/* Returns the place of a group whose waits are open, among others whose waits are. */
static unsigned char open_place(const struct aggregate_group *group)
{
	bool is_in_doubt = group->open && group->unseen >= group->open;

	if (is_in_doubt)
		return PLACE_DOUBT;
	if (group->is_idle)
		return PLACE_IDLE;
	if (is_long_d(group))
		return PLACE_D;
	return is_long_lock(group, URGENT_LOCK_NS) ? PLACE_LOCK : PLACE_BUSY;
}

/*
 * Sets the places of groups. Idle groups come behind the others, but before those that have less
 * than a hundredth of the time that is not idle: a thread that sleeps while it holds a lock is
 * idle, too, and must not be behind a long tail of waits that do not matter.
 */
static void groups_place(struct aggregate_group **groups, size_t n,
			 const struct snapshot_question *question)
{
	bool is_of_open = question->options.open_only && question->order == SNAPSHOT_BY_MAX &&
			  question->options.by == AGGREGATE_BY_THREAD && !question->options.group;
	uint64_t busy_ns = 0;

	for (size_t i = 0; i < n; i++)
		busy_ns += groups[i]->is_idle ? 0 : group_total(groups[i]);
	for (size_t i = 0; i < n; i++) {
		bool is_small = question->order == SNAPSHOT_BY_TOTAL &&
				group_total(groups[i]) < busy_ns / 100;

		groups[i]->place = is_of_open		      ? open_place(groups[i])
				   : !question->has_idle_last ? PLACE_BUSY
				   : groups[i]->is_idle	      ? PLACE_IDLE
				   : is_small		      ? PLACE_SMALL
							      : PLACE_BUSY;
	}
}

int snapshot_rows(struct answer *answer, const struct snapshot_question *question)
{
	static int (*const compare[])(const void *a, const void *b) = {
		[SNAPSHOT_BY_TOTAL] = by_total,
		[SNAPSHOT_BY_MAX] = by_max,
		[SNAPSHOT_BY_COUNT] = by_count,
	};
	struct wire_snapshot_reply *reply = &answer->reply.snapshot;
	size_t n, i, wanted, top;
	struct aggregate_group **groups;
	struct sections sections;
	ssize_t first = 0;

	groups = aggregate_groups(answer->aggregate, &n);
	sections = groups_part(groups, n, question->with_idle);
	urgent_mark(groups, n);
	groups_place(groups, n, question);
	qsort(groups, sections.wanted, sizeof(*groups), compare[question->order]);
	if (question->has_parts)
		first = parts_make(answer, groups, sections.wanted, sections.own + sections.others,
				   question->by_parts ? question->top : 0);
	if (first < 0)
		return -ENOMEM;
	wanted = sections.wanted + sections.own + sections.others;
	if (question->top == SIZE_MAX)
		top = SIZE_MAX;
	else if (question->by_parts)
		top = (size_t)first;
	else
		top = question->top < sections.wanted ? question->top : sections.wanted;
	top = groups_show(groups, &sections, top);
	snapshot_rests_init(reply);
	for (i = 0; i < n; i++)
		snapshot_rest_add(
			i < top	     ? &reply->shown
			: i < wanted ? &reply->rest
				     : &reply->idle,
			(int64_t)group_total(groups[i]),
			(int64_t)(groups[i]->sampled.blocked_ns + groups[i]->sampled.runnable_ns));
	if (!question->with_idle)
		reply->idle.threads = (int64_t)aggregate_totals(answer->aggregate)->idle_threads;
	for (i = 0; question->is_reversed && i < top / 2; i++)
		groups_swap(&groups[i], &groups[top - 1 - i]);
	answer->source.groups = groups;
	answer->source.n = top;
	return 0;
}
