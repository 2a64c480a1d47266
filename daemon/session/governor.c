/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/session/governor.h"

#include "common/base.h"

/* The least budget, in millionths of one CPU: 4 %. */
#define LEAST_PPM UINT64_C(40000)
#define PPM	  UINT64_C(1000000)

/* The share of the budget that walks may always take is one in WALKS_SHARE. */
enum { WALKS_SHARE = 4 };

/* An interval longer than this is a gap: the process was stopped, or measuring was. */
#define GAP_NS (10 * NS_PER_S)

/* The threads work in bursts, so their cost is averaged over about this time. */
#define AVERAGE_NS (10 * NS_PER_S)

/*
 * How long walks must cost little before the level is lowered by one. The time doubles, up to a
 * limit, whenever the level has to be raised again soon after it was lowered. It is the least again
 * when a lower level has held for HOLD_NS and four times that time, and while walks cost far less
 * than they may.
 */
#define CALM_NS	    (3 * NS_PER_S)
#define CALM_MAX_NS (300 * NS_PER_S)
#define HOLD_NS	    (60 * NS_PER_S)

/*
 * A new level takes effect within a second, and the programs' cost is known within another. The
 * level is not raised again before this time has passed, as the cost may be that of the old level.
 */
#define SETTLE_NS (2 * GOVERNOR_TICK_NS)

/*
 * Walks cost little if at the next lower level they would cost at most LOW_PERCENT of what they
 * may, and far less than they may if that is FAR_PERCENT.
 */
enum { LOW_PERCENT = 90, FAR_PERCENT = 20 };

/* The most levels that one reading may add. */
enum { RAISE_MAX = 6 };

/* How long hooks and threads must be above the budget, and below, before is_beyond says so. */
#define BEYOND_NS  (10 * NS_PER_S)
#define BENEATH_NS (60 * NS_PER_S)

void governor_init(struct governor *governor, uint64_t budget_ppm)
{
	*governor = (struct governor){ .budget_ppm = budget_ppm, .calm_ns = CALM_NS };
}

uint64_t governor_limit(uint64_t budget_ppm, unsigned int cpus)
{
	const uint64_t limit = budget_ppm * (cpus ? cpus : 1);

	return limit > LEAST_PPM ? limit : LEAST_PPM;
}

/* Returns the cost of hooks and threads, which no level changes, in millionths of one CPU. */
static uint64_t fixed_ppm(const struct governor *governor)
{
	return governor->cost.hook_ppm + governor->cost.user_ppm;
}

/* Sets how long walks must cost little from now on: longer if the last lowering did not hold. */
static void calm_adjust(struct governor *governor, int64_t now)
{
	if (governor->lowered_ns && now - governor->lowered_ns < HOLD_NS + 4 * governor->calm_ns)
		governor->calm_ns *= 2;
	else
		governor->calm_ns = CALM_NS;
	if (governor->calm_ns > CALM_MAX_NS)
		governor->calm_ns = CALM_MAX_NS;
}

/*
 * Returns by how many levels to raise: each level halves the cost of walks. If the last steps saved
 * little, because most waits are still longer than the length of the level, takes twice as many.
 */
static unsigned int steps_needed(const struct governor *governor, int64_t now)
{
	uint64_t covered = governor->allowed_ppm;
	unsigned int steps = 0;

	while (covered < governor->cost.walk_ppm && steps < RAISE_MAX) {
		covered *= 2;
		steps++;
	}
	if (governor->level && now - governor->raised_ns < 2 * SETTLE_NS &&
	    governor->cost.walk_ppm * 4 > governor->raised_for_ppm * 3 &&
	    steps < 2 * governor->steps)
		steps = 2 * governor->steps;
	return steps < RAISE_MAX ? steps : RAISE_MAX;
}

static void raise_level(struct governor *governor, int64_t now)
{
	calm_adjust(governor, now);
	governor->steps = steps_needed(governor, now);
	governor->level += governor->steps;
	if (governor->level > GOVERNOR_LEVEL_MAX)
		governor->level = GOVERNOR_LEVEL_MAX;
	governor->raised_ns = now;
	governor->raised_for_ppm = governor->cost.walk_ppm;
	governor->raised++;
}

/* Returns the time for which walks must have cost little before the level is lowered. */
static int64_t calm_needed(const struct governor *governor)
{
	return governor->next_ppm * 100 <= governor->allowed_ppm * FAR_PERCENT ? CALM_NS
									       : governor->calm_ns;
}

static bool level_adjust(struct governor *governor, int64_t now)
{
	if (governor->cost.walk_ppm > governor->allowed_ppm) {
		governor->calm_since_ns = 0;
		if (governor->level == GOVERNOR_LEVEL_MAX ||
		    (governor->raised && now - governor->raised_ns < SETTLE_NS))
			return false;
		raise_level(governor, now);
		return true;
	}
	if (!governor->level || governor->next_ppm * 100 > governor->allowed_ppm * LOW_PERCENT) {
		governor->calm_since_ns = 0;
		return false;
	}
	if (!governor->calm_since_ns)
		governor->calm_since_ns = now;
	if (now - governor->calm_since_ns < calm_needed(governor))
		return false;
	governor->level--;
	governor->lowered_ns = governor->calm_since_ns = now;
	return true;
}

static bool beyond_adjust(struct governor *governor, int64_t now)
{
	const bool is_beyond = fixed_ppm(governor) > governor->limit_ppm;

	if (is_beyond == governor->is_beyond) {
		governor->beyond_since_ns = 0;
		return false;
	}
	if (!governor->beyond_since_ns)
		governor->beyond_since_ns = now;
	if (now - governor->beyond_since_ns < (is_beyond ? BEYOND_NS : BENEATH_NS))
		return false;
	governor->is_beyond = is_beyond;
	governor->beyond_since_ns = 0;
	return true;
}

static uint64_t ppm_of(uint64_t cpu_ns, int64_t ns)
{
	return (uint64_t)((double)cpu_ns / (double)ns * (double)PPM);
}

/*
 * Returns the most that walks would cost at the next lower level: there, twice as many waits may be
 * recorded by chance. If no waits were counted, all walks may be of such waits.
 */
static uint64_t next_ppm(const struct governor_reading *now, const struct governor_reading *last,
			 uint64_t walk_ppm)
{
	const uint64_t waits = now->waits - last->waits, sampled = now->sampled - last->sampled;
	double share = 1;

	if (now->waits > last->waits && now->sampled >= last->sampled && sampled < waits)
		share = (double)sampled / (double)waits;
	return (uint64_t)((double)walk_ppm * (1 + share));
}

/* Sets the cost since the last reading. Returns false if nothing can be said about it. */
static bool cost_update(struct governor *governor, const struct governor_reading *now)
{
	const struct governor_reading last = governor->last;
	const bool has_last = governor->has_last;
	const int64_t ns = now->at_ns - last.at_ns;
	double user, weight = (double)ns / (double)AVERAGE_NS;

	governor->last = *now;
	governor->has_last = true;
	if (!has_last || ns <= 0 || ns > GAP_NS || now->walk_ns < last.walk_ns ||
	    now->hook_ns < last.hook_ns || now->user_ns < last.user_ns)
		return false;
	user = (double)ppm_of(now->user_ns - last.user_ns, ns);
	user = (double)governor->cost.user_ppm * (1 - weight) + user * weight;
	governor->cost = (struct governor_cost){
		.walk_ppm = ppm_of(now->walk_ns - last.walk_ns, ns),
		.hook_ppm = ppm_of(now->hook_ns - last.hook_ns, ns),
		.user_ppm = (uint64_t)user,
	};
	governor->next_ppm = next_ppm(now, &last, governor->cost.walk_ppm);
	return true;
}

bool governor_update(struct governor *governor, const struct governor_reading *now)
{
	const int64_t ns = now->at_ns - governor->last.at_ns;
	uint64_t limit, fixed;
	bool is_changed;

	if (governor->has_last && ns >= 0 && ns < GOVERNOR_TICK_NS)
		return false;
	governor->limit_ppm = limit = governor_limit(governor->budget_ppm, now->cpus);
	if (!cost_update(governor, now)) {
		governor->calm_since_ns = governor->beyond_since_ns = 0;
		return false;
	}
	fixed = fixed_ppm(governor);
	governor->allowed_ppm =
		fixed < limit - limit / WALKS_SHARE ? limit - fixed : limit / WALKS_SHARE;
	is_changed = beyond_adjust(governor, now->at_ns);
	return level_adjust(governor, now->at_ns) || is_changed;
}

uint64_t governor_sample_below(unsigned int level, uint64_t floor_ns)
{
	/* Below this length, a walk would take longer than the wait: sampling begins above it. */
	const uint64_t least_ns = 10 * NS_PER_US;

	return (floor_ns > least_ns ? floor_ns : least_ns) << level;
}
