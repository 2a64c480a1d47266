/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/answer_holders.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "daemon/holder/holder.h"
#include "daemon/window/idle_wait.h"
#include "daemon/window/reason_find.h"

/* A thread's row of waits for several reasons has none: it is not known for which its longest was.
 */
static enum wait_reason reason_of(const struct aggregate_group *group)
{
	if (group->has_reason)
		return group->reason;
	if (group->count && !group->kernel && !group->user)
		return REASON_UNKNOWN;
	return reason_find(group->state, group->kernel, group->user);
}

/*
 * FOLLOWED: the maximum number of waits that are looked up only because their threads hold what
 * others wait for. LIKE_MOST: of one process's waits for one reason, so many are looked up before
 * those of others: thousands of waiters for one lock must not take all the room.
 */
enum { FOLLOWED = 16, SEARCHED = HOLDER_LOOKUPS + FOLLOWED, LIKE_MOST = 16 };

/* The waits that are looked up, their groups, and what was found. */
struct search {
	struct holder_question questions[SEARCHED];
	struct holder_answer answers[SEARCHED];
	struct aggregate_group *groups[SEARCHED];
	size_t n;
	size_t n_done; /* number of those that were looked up, be it in vain */
};

/*
 * True if the group stands for one thread's wait that has not ended: for that of `tid`. In a row of
 * several waits, this is the longest one, for which others may wait behind the same holder.
 */
static bool is_one_wait(const struct aggregate_group *group)
{
	bool is_longest = group->open && group->max_ns && group->max_pid &&
			  group->max_end_real_ns == INT64_MAX;

	return !group->is_others && !group->is_own && !group->folded && !group->unseen &&
	       group->tid && (group->line || group->count ? is_longest : group->open == 1);
}

/* True if holders can be looked up for the group: it is one thread's wait, for a reason that has
 * any. */
static bool has_holders(const struct aggregate_group *group)
{
	return is_one_wait(group) && holder_knows(reason_of(group));
}

/* Notes why no holder of a group is known. Returns 0 or -ENOMEM. */
static int unknown_put(struct arena *arena, struct aggregate_group *group, const char *unknown)
{
	group->holders = arena_alloc(arena, sizeof(*group->holders));
	if (!group->holders)
		return -ENOMEM;
	group->holders->unknown = unknown;
	return 0;
}

/* Returns why no holder of a group can be found, NULL if one may be, or if it has none. */
static const char *why_unknown(const struct aggregate_group *group)
{
	const enum wait_reason reason = reason_of(group);

	if (!is_one_wait(group))
		return NULL;
	if (reason == REASON_FUTEX && group->user && group->user->flags & STACK_IS_UNREAD)
		return holder_unread;
	return holder_never_known(reason);
}

/* Notes why no holder is known, for the reasons for which stackd cannot find any. */
static int unknown_say(struct arena *arena, struct aggregate_group **groups, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && !r; i++) {
		const char *unknown = why_unknown(groups[i]);

		if (unknown && !groups[i]->holders)
			r = unknown_put(arena, groups[i], unknown);
	}
	return r;
}

int answer_holders_left(struct answer *answer, struct aggregate_group **groups, size_t n,
			size_t *left_out)
{
	int r = 0;

	*left_out = 0;
	for (size_t i = 0; i < n && !r; i++) {
		if (groups[i]->holders || !has_holders(groups[i]))
			continue;
		r = unknown_put(answer->arena, groups[i], holder_not_reached);
		(*left_out)++;
	}
	return r;
}

/* Which waits are looked up, in this order: that of the screens. */
enum turn { TURN_LOCKS, TURN_OTHERS, TURN_IDLE, TURNS };

static enum turn turn_of(const struct aggregate_group *group)
{
	if (group->is_idle)
		return TURN_IDLE;
	return wait_reason_is_lock(reason_of(group)) ? TURN_LOCKS : TURN_OTHERS;
}

static void search_put(struct search *search, struct aggregate_group *group)
{
	search->groups[search->n] = group;
	search->questions[search->n++] = (struct holder_question){
		.pid = group->max_pid,
		.tid = group->tid,
		.start_boot_ns = group->thread_start_ns,
		.reason = reason_of(group),
	};
}

static bool is_searched(const struct search *search, const struct aggregate_group *group)
{
	for (size_t i = 0; i < search->n; i++)
		if (search->groups[i] == group)
			return true;
	return false;
}

/* True if the search has LIKE_MOST waits of the same process for the same reason. */
static bool has_likes(const struct search *search, const struct aggregate_group *group)
{
	const enum wait_reason reason = reason_of(group);
	size_t n = 0;

	for (size_t i = 0; i < search->n && n < LIKE_MOST; i++)
		n += search->questions[i].pid == group->max_pid &&
		     search->questions[i].reason == reason;
	return n == LIKE_MOST;
}

/*
 * Adds the waits that have holders and whose turn it is, as far as there is room; unless `all` is
 * set, only some of those that are alike.
 */
static void search_add(struct search *search, struct aggregate_group **groups, size_t n,
		       enum turn turn, bool all)
{
	for (size_t i = 0; i < n && search->n < HOLDER_LOOKUPS; i++)
		if (!groups[i]->holders && turn_of(groups[i]) == turn && has_holders(groups[i]) &&
		    !is_searched(search, groups[i]) && (all || !has_likes(search, groups[i])))
			search_put(search, groups[i]);
}

static int found_copy(struct arena *arena, const struct holder_answer *from,
		      struct aggregate_group *group)
{
	struct group_holders *to = arena_alloc(arena, sizeof(*to));
	struct holder *holders = arena_array(arena, from->n + 1, sizeof(*holders));

	if (!to || !holders)
		return -ENOMEM;
	memcpy(holders, from->holders, from->n * sizeof(*holders));
	to->holders = holders;
	to->n = from->n;
	to->more = from->more;
	to->unknown = from->unknown;
	to->is_turn = from->is_turn && !wait_is_uninterruptible(group->state);
	to->object = from->object ? arena_strdup(arena, from->object) : NULL;
	if (from->object && !to->object)
		return -ENOMEM;
	group->holders = to;
	return 0;
}

/* Looks up the waits that were added since the last time. Returns 0 or a negative errno. */
static int search_run(struct search *search, struct arena *arena)
{
	const size_t from = search->n_done;
	int r = 0;

	search->n_done = search->n;
	if (search->n > from)
		r = holder_find(search->questions + from, search->n - from, HOLDER_FOR_ANSWER,
				search->answers + from, NULL);
	/* The answer is right without holders. */
	for (size_t i = from; i < search->n && !r; i++)
		if (search->answers[i].is_known)
			r = found_copy(arena, &search->answers[i], search->groups[i]);
	return r;
}

/* Returns the group of a thread's wait; NULL if the thread does not wait. */
static struct aggregate_group *wait_of(struct aggregate_group **groups, size_t n, int32_t tid)
{
	for (size_t i = 0; i < n && tid; i++)
		if (groups[i]->tid == tid && is_one_wait(groups[i]))
			return groups[i];
	return NULL;
}

/* Adds the wait of a thread that holds what others wait for, unless it is there. */
static void holder_put(struct search *search, struct aggregate_group *wait)
{
	if (wait && !wait->holders && has_holders(wait) && search->n < SEARCHED &&
	    !is_searched(search, wait))
		search_put(search, wait);
}

/*
 * Adds the waits of the holders that were found last: they may be none of the answer's rows, as one
 * that waits for its child is idle. Of several holders, only those that wait for a child matter,
 * see blamed(). Each is looked up once, so this ends.
 */
static void search_follow(struct search *search, size_t from, struct aggregate_group **groups,
			  size_t n_all)
{
	const size_t end = search->n_done;

	for (size_t i = from; i < end; i++) {
		const struct group_holders *held = search->groups[i]->holders;

		for (size_t k = 0; held && !held->more && !held->unknown && k < held->n; k++) {
			struct aggregate_group *wait = wait_of(groups, n_all, held->holders[k].tid);

			if (wait && (held->n == 1 || reason_of(wait) == REASON_CHILD))
				holder_put(search, wait);
		}
	}
}

/* Looks up the waits of holders, of their holders, and so on, while there is room and time. */
static int holders_follow(struct search *search, struct arena *arena,
			  struct aggregate_group **groups, size_t n_all)
{
	const int64_t until_ns = clock_ns(CLOCK_MONOTONIC) + HOLDER_DEADLINE_NS;
	size_t from = 0;
	int r = 0;

	do {
		const size_t done = search->n_done;

		search_follow(search, from, groups, n_all);
		from = done;
		r = search_run(search, arena);
	} while (!r && search->n_done > from && clock_ns(CLOCK_MONOTONIC) < until_ns);
	return r;
}

/*
 * Threads that take turns with a lock wait for a moment each, and may be handed it between the
 * look-ups of two of them. So a holder that has waited for a lock for less than this may be one
 * that has had it meanwhile, and a circle with a wait that is as young is no deadlock.
 */
#define TURN_MOST_NS (100 * NS_PER_MS)

/* A thread's wait, as a part of a chain. Times are in ns since the epoch. */
struct link {
	struct holder_step step;
	int64_t since_ns;
	/* the threads that hold what it is for, each 0 if it is not known; none if there may be
	 * others */
	int32_t holders[HOLDER_SHOWN];
	size_t n_holders;
	int64_t looked_ns; /* when the holder was looked up; INT64_MAX: for this answer */
};

/* Where the waits of a chain are found: among the groups of the answer, and those recorded. */
struct waits {
	const struct aggregate *aggregate;
	struct aggregate_group **groups;
	size_t n_groups;
	int64_t at_ns; /* the moment whose recorded waits are followed */
};

/* The stacks of a step may be gone when the row is made: its reason is found now. */
static struct link group_link(const struct waits *waits, const struct aggregate_group *group)
{
	const struct group_holders *held = group->holders;
	struct link link = {
		.step = { .pid = group->max_pid,
			  .tid = group->tid,
			  .comm = group->max_comm,
			  .reason = reason_of(group),
			  .object = held ? held->object : NULL,
			  .ns = group->max_ns },
		.since_ns = aggregate_longest_since(waits->aggregate, group),
		.looked_ns = held && held->looked_ns ? held->looked_ns : INT64_MAX,
	};

	for (size_t i = 0; held && !held->more && !held->unknown && i < held->n; i++)
		link.holders[link.n_holders++] = held->holders[i].tid;
	return link;
}

static struct link recorded_link(const struct waits *waits, const struct held_wait *wait)
{
	struct link link = {
		.step = { .pid = wait->pid,
			  .tid = wait->tid,
			  .comm = wait->comm,
			  .reason = wait->reason,
			  .object = wait->object,
			  .ns = (uint64_t)(waits->at_ns - wait->since_ns) },
		.since_ns = wait->since_ns,
		.looked_ns = wait->looked_ns,
	};

	for (size_t i = 0; !wait->more && !wait->unknown && i < wait->n_by; i++)
		link.holders[link.n_holders++] = wait->by[i].tid;
	return link;
}

/* Sets *out to the wait of a thread. Returns false if it is not known to wait. */
static bool link_of(const struct waits *waits, int32_t tid, struct link *out)
{
	const struct aggregate_group *group = wait_of(waits->groups, waits->n_groups, tid);
	const struct held_wait *wait = NULL;

	/* A filter leaves the groups of other processes out, but not what was recorded. */
	if (tid && !(group && group->holders))
		wait = window_held_at(aggregate_held(waits->aggregate), tid, waits->at_ns);
	if (!group && !wait)
		return false;
	*out = wait ? recorded_link(waits, wait) : group_link(waits, group);
	return true;
}

/* True if one of the holders waits for a child that is another one of them. */
static bool waits_for_holder(const struct waits *waits, const struct link *link, int32_t holder)
{
	struct link own;

	if (!link_of(waits, holder, &own) || own.step.reason != REASON_CHILD ||
	    own.n_holders != 1 || !own.holders[0] || link->looked_ns < own.since_ns)
		return false;
	for (size_t i = 0; i < link->n_holders; i++)
		if (link->holders[i] == own.holders[0])
			return true;
	return false;
}

/*
 * Returns the only thread that can end a wait, 0 if that is not known. Of several holders, such as
 * a shell and the programs that it runs with its locked file, those that wait for a child among
 * them cannot.
 */
static int32_t blamed(const struct waits *waits, const struct link *link)
{
	int32_t left = 0;
	size_t n = 0;

	if (link->n_holders == 1)
		return link->holders[0];
	for (size_t i = 0; i < link->n_holders; i++) {
		if (waits_for_holder(waits, link, link->holders[i]))
			continue;
		left = link->holders[i];
		n++;
	}
	return n == 1 ? left : 0;
}

/*
 * True if both wait for one lock in the memory of a program or, at the same address, of several
 * that share it: then the owner of one link was read before the lock changed hands.
 */
static bool is_same_lock(const struct holder_step *a, const struct holder_step *b)
{
	return a->tid != b->tid && a->reason == b->reason &&
	       (a->reason == REASON_MUTEX || a->reason == REASON_PI_MUTEX ||
		a->reason == REASON_RWLOCK) &&
	       a->object && b->object && strcmp(a->object, b->object) == 0;
}

/* True if the wait of a link is for a lock, and so young that it may be a turn. */
static bool is_young_lock(const struct waits *waits, const struct link *link)
{
	return wait_reason_is_lock(link->step.reason) &&
	       waits->at_ns - link->since_ns < TURN_MOST_NS;
}

/* Sets *out to the wait of the holder. Returns false if it is not known to wait while it holds. */
static bool link_next(const struct waits *waits, const struct link *link, struct link *out)
{
	/* Before it began to wait, it may have let go. Since then, it could not. */
	return link_of(waits, blamed(waits, link), out) && link->looked_ns >= out->since_ns &&
	       !is_same_lock(&link->step, &out->step) && !is_young_lock(waits, out);
}

/* True if something else may end the wait: a timeout, or another event of the same descriptor. */
static bool may_end(const struct link *link)
{
	return link->step.reason == REASON_POLL || link->step.reason == REASON_SELECT;
}

/*
 * Follows the holders of a wait, as long as each waits itself and its wait has one holder. Ends
 * after as many steps as there can be waits with holders, so that it finds every deadlock. It is
 * one only if all holders were looked up after all of its waits began, if these have gone on for a
 * while, and none of them is for events, as those of two ends of a connection that is not in use
 * are.
 */
static void chain_make(const struct waits *waits, const struct link *first,
		       struct group_holders *found)
{
	int64_t newest_ns = first->since_ns, looked_ns = first->looked_ns;
	bool is_of_events = may_end(first);
	struct link at = *first, next;
	int32_t seen[SEARCHED];

	for (size_t i = 0; i < SEARCHED && link_next(waits, &at, &next); i++) {
		if (next.step.tid == first->step.tid && is_of_events) {
			found->n_steps = 0;
			return;
		}
		if (next.step.tid == first->step.tid) {
			/* One that holds the other end itself may have a signal handler or a
			 * timeout. */
			found->is_deadlock = (i > 0 || wait_reason_is_lock(first->step.reason)) &&
					     looked_ns >= newest_ns &&
					     waits->at_ns - newest_ns >= TURN_MOST_NS;
			return;
		}
		/* The wait is for a ring of others: none of them is the one to blame. */
		for (size_t k = 0; k < i; k++)
			if (seen[k] == next.step.tid) {
				found->n_steps = 0;
				return;
			}
		seen[i] = next.step.tid;
		is_of_events |= may_end(&next);
		if (found->n_steps < HOLDER_STEPS)
			found->n_steps++;
		found->steps[found->n_steps - 1] = next.step;
		newest_ns = next.since_ns > newest_ns ? next.since_ns : newest_ns;
		looked_ns = next.looked_ns < looked_ns ? next.looked_ns : looked_ns;
		at = next;
	}
}

/* Follows the holders of a group's wait. */
static void group_chain(struct waits waits, const struct aggregate_group *group)
{
	const struct link first = group_link(&waits, group);

	waits.at_ns = first.since_ns + (int64_t)group->max_ns;
	chain_make(&waits, &first, group->holders);
}

int answer_holders_find(struct answer *answer, struct aggregate_group **groups, size_t n,
			size_t n_all)
{
	const struct waits waits = { .aggregate = answer->aggregate,
				     .groups = groups,
				     .n_groups = n_all };
	struct search *search = arena_alloc(answer->arena, sizeof(*search));
	int r;

	if (!search)
		return -ENOMEM;
	r = unknown_say(answer->arena, groups, n);
	if (r)
		return r;
	for (enum turn turn = 0; turn < TURN_IDLE; turn++)
		search_add(search, groups, n, turn, false);
	for (enum turn turn = 0; turn < TURNS; turn++)
		search_add(search, groups, n, turn, true);
	r = search_run(search, answer->arena);
	if (!r)
		r = holders_follow(search, answer->arena, groups, n_all);
	for (size_t i = 0; i < search->n && r != -ENOMEM; i++)
		if (search->groups[i]->holders)
			group_chain(waits, search->groups[i]);
	holder_answers_fini(search->answers, search->n);
	return r == -ENOMEM ? r : 0;
}

/* Sets the holders of a group from a recorded wait, whose texts the aggregate owns. */
static int recorded_copy(struct answer *answer, const struct held_wait *wait,
			 struct aggregate_group *group)
{
	/* The chain is that of the last moment that has the wait. */
	const struct waits waits = { .aggregate = answer->aggregate, .at_ns = wait->last_ns };
	const struct link first = recorded_link(&waits, wait);
	struct arena *arena = answer->arena;
	struct group_holders *to = arena_alloc(arena, sizeof(*to));
	struct holder *holders = arena_array(arena, wait->n_by + 1, sizeof(*holders));

	if (!to || !holders)
		return -ENOMEM;
	for (size_t i = 0; i < wait->n_by; i++) {
		holders[i].pid = wait->by[i].pid;
		holders[i].tid = wait->by[i].tid;
		memcpy(holders[i].comm, wait->by[i].comm, sizeof(holders[i].comm));
	}
	*to = (struct group_holders){
		.object = wait->object,
		.unknown = wait->unknown,
		.holders = holders,
		.n = wait->n_by,
		.more = wait->more,
		.looked_ns = wait->looked_ns,
	};
	chain_make(&waits, &first, to);
	group->holders = to;
	return 0;
}

/* Returns what was recorded about the longest wait of a group; NULL: nothing. */
static const struct held_wait *recorded_find(const struct aggregate *aggregate,
					     const struct aggregate_group *group)
{
	const struct held_wait *wait;
	int64_t since_ns;

	if (group->holders || group->is_sample || group->is_others || group->is_own ||
	    group->is_short || group->folded || group->max_ns < HELD_WAIT_NS)
		return NULL;
	since_ns = aggregate_longest_since(aggregate, group);
	wait = since_ns ? window_held_find(aggregate_held(aggregate), group->max_tid, since_ns)
			: NULL;
	if (!wait || !wait->looked_ns || wait->reason != reason_of(group) ||
	    group->max_pid != wait->pid)
		return NULL;
	return wait;
}

int answer_holders_recorded(struct answer *answer, struct aggregate_group **groups, size_t n)
{
	const struct window_held *held = aggregate_held(answer->aggregate);
	int r = 0;

	for (size_t i = 0; i < n && !r && held->n; i++) {
		const struct held_wait *wait = recorded_find(answer->aggregate, groups[i]);

		if (wait)
			r = recorded_copy(answer, wait, groups[i]);
	}
	return r ? r : unknown_say(answer->arena, groups, n);
}

static int holder_wire(struct arena *arena, const char *comm, int64_t pid, int64_t tid,
		       struct wire_holder *out)
{
	*out = (struct wire_holder){
		.pid = pid,
		.tid = tid ? tid : WIRE_ABSENT,
		.comm = arena_strndup(arena, comm, HOLDER_COMM),
		.for_ns = WIRE_ABSENT,
	};
	return out->comm ? 0 : -ENOMEM;
}

/* Copies a text, which the aggregate may own, for the reply. NULL stays NULL. 0 or -ENOMEM. */
static int text_wire(struct arena *arena, const char *text, const char **out)
{
	*out = text ? arena_strdup(arena, text) : NULL;
	return text && !*out ? -ENOMEM : 0;
}

static int steps_wire(struct arena *arena, const struct group_holders *found, struct wire_row *row)
{
	struct wire_holder *chain = arena_array(arena, found->n_steps + 1, sizeof(*chain));
	int r = chain ? 0 : -ENOMEM;

	for (size_t i = 0; i < found->n_steps && !r; i++) {
		const struct holder_step *step = &found->steps[i];

		r = holder_wire(arena, step->comm, step->pid, step->tid, &chain[i]);
		chain[i].reason = wait_reason_word(step->reason);
		r = r ? r : text_wire(arena, step->object, &chain[i].object);
		chain[i].for_ns = (int64_t)step->ns;
	}
	row->chain = (struct wire_holders){ .v = chain, .n = found->n_steps };
	return r;
}

size_t answer_holders_idle(struct aggregate_group **groups, size_t n)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++) {
		if (!groups[i]->holders || !groups[i]->holders->is_turn || groups[i]->is_idle)
			continue;
		groups[i]->is_idle = true;
		found++;
	}
	return found;
}

int answer_holders_wire(struct arena *arena, const struct aggregate_group *group,
			struct wire_row *row)
{
	const struct group_holders *found = group->holders;
	struct wire_holder *holders;
	int r;

	if (!found)
		return 0;
	holders = arena_array(arena, found->n + 1, sizeof(*holders));
	if (!holders)
		return -ENOMEM;
	row->holders = (struct wire_holders){ .v = holders, .n = found->n };
	row->holders_more = found->more ? (int64_t)found->more : WIRE_ABSENT;
	if (found->is_deadlock)
		row->deadlock = 1;
	if (found->looked_ns)
		row->holders_at = found->looked_ns;
	for (size_t i = 0; i < found->n; i++) {
		r = holder_wire(arena, found->holders[i].comm, found->holders[i].pid,
				found->holders[i].tid, &holders[i]);
		if (r)
			return r;
	}
	r = text_wire(arena, found->object, &row->object);
	if (r)
		return r;
	r = text_wire(arena, found->unknown, &row->holders_unknown);
	if (r)
		return r;
	if (!found->looked_ns && holder_is_missed(found->unknown))
		row->holders_missed = 1;
	return steps_wire(arena, found, row);
}
