/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/session/governor.h"

#include "common/base.h"

/* The least budget, in parts per million of one CPU: 4 %. */
#define LEAST_PPM UINT64_C(40000)
#define PPM	  UINT64_C(1000000)

/* An interval longer than this is a gap: the process was stopped, or measuring was. */
#define GAP_NS (10 * NS_PER_S)

/*
 * How long the cost must be low before the level is lowered by one. The time doubles, up to a
 * limit, whenever the level has to be raised again soon after it was lowered. It is the least again
 * when a lower level has held for long enough, and while the cost is far below the budget.
 */
#define CALM_NS	    (3 * NS_PER_S)
#define CALM_MAX_NS (300 * NS_PER_S)
#define HOLD_NS	    (60 * NS_PER_S)

/*
 * A new level takes effect with the next window. The level is not raised again before this time has
 * passed, as the cost may still be that of the old level.
 */
#define SETTLE_NS (2 * GOVERNOR_TICK_NS)

/*
 * The cost is low up to this share of the budget, in percent. It is below one half, because the
 * next lower level may cost twice as much.
 */
enum { LOW_PERCENT = 45, FAR_PERCENT = 10 };

/* The most levels that one reading may add. */
enum { RAISE_MAX = 4 };

void governor_init(struct governor *governor, const struct governor_options *options)
{
	*governor = (struct governor){ .options = *options, .calm_ns = CALM_NS };
}

uint64_t governor_limit(uint64_t budget_ppm, unsigned int cpus)
{
	const uint64_t limit = budget_ppm * (cpus ? cpus : 1);

	return limit > LEAST_PPM ? limit : LEAST_PPM;
}

/* Sets how long the cost must be low from now on: longer if the last lowering did not hold. */
static void calm_adjust(struct governor *governor, int64_t now)
{
	if (governor->lowered_ns && now - governor->lowered_ns < HOLD_NS)
		governor->calm_ns *= 2;
	else
		governor->calm_ns = CALM_NS;
	if (governor->calm_ns > CALM_MAX_NS)
		governor->calm_ns = CALM_MAX_NS;
}

/*
 * Raises the level until twice the budget for each level would have covered the cost. Above the
 * levels that sample waits, raises it by one: how much that saves is not known.
 */
static void raise_level(struct governor *governor, int64_t now)
{
	unsigned int level = governor->level, steps = 0;
	uint64_t covered = governor->limit_ppm;

	calm_adjust(governor, now);
	if (!level)
		governor->since_ns = now;
	do {
		level++;
		covered *= 2;
	} while (covered < governor->cost_ppm && ++steps < RAISE_MAX && level < GOVERNOR_DOUBLINGS);
	governor->level = level;
	governor->raised_ns = now;
	governor->raised++;
}

/* Returns the time for which the cost must have been low before the level is lowered. */
static int64_t calm_needed(const struct governor *governor)
{
	return governor->cost_ppm * 100 <= governor->limit_ppm * FAR_PERCENT ? CALM_NS
									     : governor->calm_ns;
}

static bool level_adjust(struct governor *governor, int64_t now)
{
	if (governor->cost_ppm > governor->limit_ppm) {
		governor->calm_since_ns = 0;
		if (governor->level == GOVERNOR_LEVEL_MAX ||
		    (governor->raised && now - governor->raised_ns < SETTLE_NS))
			return false;
		raise_level(governor, now);
		return true;
	}
	if (!governor->level || governor->cost_ppm * 100 > governor->limit_ppm * LOW_PERCENT) {
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

bool governor_update(struct governor *governor, const struct governor_reading *now)
{
	const struct governor_reading last = governor->last;
	const int64_t ns = now->at_ns - last.at_ns;

	if (governor->has_last && ns >= 0 && ns < GOVERNOR_TICK_NS)
		return false;
	governor->last = *now;
	governor->limit_ppm = governor_limit(governor->options.budget_ppm, now->cpus);
	if (!governor->has_last || ns < 0 || ns > GAP_NS || now->cpu_ns < last.cpu_ns) {
		governor->has_last = true;
		governor->calm_since_ns = 0;
		return false;
	}
	governor->cost_ppm =
		(uint64_t)((double)(now->cpu_ns - last.cpu_ns) / (double)ns * (double)PPM);
	return level_adjust(governor, now->at_ns);
}

uint64_t governor_sample_below(const struct governor *governor)
{
	const unsigned int level =
		governor->level < GOVERNOR_DOUBLINGS ? governor->level : GOVERNOR_DOUBLINGS;

	return governor->options.floor_ns << level;
}

bool governor_sheds(const struct governor *governor, enum governor_shed shed)
{
	return governor->level > GOVERNOR_DOUBLINGS + (unsigned int)shed;
}

unsigned int governor_hz_divisor(const struct governor *governor)
{
	return governor_sheds(governor, GOVERNOR_HZ_EIGHTH)    ? 8
	       : governor_sheds(governor, GOVERNOR_HZ_QUARTER) ? 4
	       : governor_sheds(governor, GOVERNOR_HZ_HALF)    ? 2
							       : 1;
}
