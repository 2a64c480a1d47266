/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/aggregate_internal.h"

__extension__ typedef unsigned __int128 uint128;

/* One of the sums of a group, and the parts of it that struct aggregate_group describes. */
struct estimate_member {
	uint64_t *sum;
	uint64_t *sampled;
	uint64_t *deducted;
};

enum { MEMBERS = 3 };

static struct estimate_member member_of(struct aggregate_group *group, unsigned int member)
{
	switch (member) {
	case 0:
		return (struct estimate_member){ &group->count, &group->sampled.count,
						 &group->deducted.count };
	case 1:
		return (struct estimate_member){ &group->blocked_ns, &group->sampled.blocked_ns,
						 &group->deducted.blocked_ns };
	default:
		return (struct estimate_member){ &group->runnable_ns, &group->sampled.runnable_ns,
						 &group->deducted.runnable_ns };
	}
}

/*
 * Takes *deducted from each sum. Returns the excess: how much more was to be taken than there was.
 */
static uint64_t deduct(struct aggregate *aggregate, unsigned int member)
{
	uint64_t excess = 0, least;
	size_t i;

	for (i = 0; i < aggregate->n_groups; i++) {
		struct estimate_member m = member_of(aggregate->array[i], member);

		least = *m.deducted < *m.sum ? *m.deducted : *m.sum;
		*m.sum -= least;
		excess += *m.deducted - least;
		*m.deducted = 0;
		/* A group of others may have both. */
		if (*m.sampled > *m.sum)
			*m.sampled = *m.sum;
	}
	return excess;
}

/*
 * Returns how much of `part` belongs to the values that make up `some` of `all`. For values that
 * are added to `some` one after the other, the differences between the results add up to `part`.
 */
static uint64_t share(uint64_t part, uint64_t some, uint64_t all)
{
	return all ? (uint64_t)((uint128)part * some / all) : 0;
}

/*
 * Takes `excess` from the groups of short waits in proportion to what they have; at most all that
 * they have. Returns how much is left to be taken.
 */
static uint64_t take_from_shorts(struct aggregate *aggregate, unsigned int member, uint64_t excess)
{
	uint64_t all = 0, some = 0, taken, before;
	size_t i;

	for (i = 0; i < aggregate->n_groups; i++)
		if (aggregate->array[i]->is_short)
			all += *member_of(aggregate->array[i], member).sum;
	taken = excess < all ? excess : all;
	for (i = 0; i < aggregate->n_groups; i++) {
		uint64_t *sum = member_of(aggregate->array[i], member).sum;

		if (!aggregate->array[i]->is_short)
			continue;
		before = share(taken, some, all);
		some += *sum;
		*sum -= share(taken, some, all) - before;
	}
	return excess - taken;
}

/* Takes `excess` from the estimates, in proportion. It is less than all of them. */
static void take_from_estimates(struct aggregate *aggregate, unsigned int member, uint64_t excess)
{
	uint64_t all = 0, some = 0, before, less;
	size_t i;

	for (i = 0; i < aggregate->n_groups; i++)
		all += *member_of(aggregate->array[i], member).sampled;
	if (excess > all)
		excess = all;
	for (i = 0; i < aggregate->n_groups; i++) {
		struct estimate_member m = member_of(aggregate->array[i], member);

		before = share(excess, some, all);
		some += *m.sampled;
		less = share(excess, some, all) - before;
		*m.sampled -= less;
		*m.sum -= less;
	}
}

/* Throttled time is a part of the runnable time, of which something may have been taken. */
static void throttled_bound(struct aggregate_group *group)
{
	if (group->throttled_ns > group->runnable_ns)
		group->throttled_ns = group->runnable_ns;
}

void aggregate_estimates_settle(struct aggregate *aggregate)
{
	unsigned int member;
	uint64_t excess;
	size_t i;

	if (!aggregate->sample_below_ns)
		return;
	for (member = 0; member < MEMBERS; member++) {
		excess = deduct(aggregate, member);
		if (excess)
			excess = take_from_shorts(aggregate, member, excess);
		if (excess)
			take_from_estimates(aggregate, member, excess);
	}
	for (i = 0; i < aggregate->n_groups; i++)
		throttled_bound(aggregate->array[i]);
}
