/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/session/governor.h"

#include <string.h>

#include "bpf/brake.h"
#include "common/base.h"

/* The least budget, in millionths of one CPU: 4 %. */
#define LEAST_PPM UINT64_C(40000)
#define PPM	  UINT64_C(1000000)

/* The share of the budget that walks may always take is one in WALKS_SHARE. */
enum { WALKS_SHARE = 4 };

/* An interval longer than this is a gap: the process was stopped, or measuring was. */
#define GAP_NS (10 * NS_PER_S)

/*
 * If walks were not measured for this long, their cost is not known: it must not be taken for 0.
 * They are measured at least every two seconds, unless the probe's thread does not get on.
 */
#define STALE_NS (5 * NS_PER_S)

/*
 * The threads work in bursts, so their cost is averaged over about this time, or over the time
 * since steps were last taken if that is shorter: what it was before does not say what it is now.
 */
#define AVERAGE_NS (10 * NS_PER_S)

/*
 * How long walks must cost little before the level is lowered by one. The time doubles, up to
 * CALM_MAX_NS, whenever the level has to be raised again soon after it was lowered. It is CALM_NS
 * again once a lower level has held for HOLD_NS and four times that time, and while walks cost far
 * less than they may.
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

/* The minute over which the budget is an average, and the time between the readings of it. */
#define MINUTE_NS (60 * NS_PER_S)
#define MARK_NS	  (MINUTE_NS / (GOVERNOR_MARKS - 1))

/*
 * A minute that cost more than BEYOND_PERCENT of the budget has broken it, and one that cost more
 * than WITHIN_PERCENT still does: what keeps the budget fully is about 100. A debt that is found in
 * time is 5 % of a minute's budget (DEBT_NS), and walks, which are measured each second or two, may
 * be two seconds of 60 off: less is noise.
 */
enum { BEYOND_PERCENT = 110, WITHIN_PERCENT = 105 };

/* How long a burst may cost as much as it may, at most. */
#define BURST_NS (5 * NS_PER_S)

/*
 * A debt grows by what all costs above the budget, and shrinks by what it costs below the budget.
 * Steps are taken when the debt is what the budget allows in DEBT_NS. An average that finds a storm
 * within two seconds would take the end of each window, where the threads work most, for a storm. A
 * debt does not: threads that keep within the budget pay it back before the next window ends.
 */
#define DEBT_NS (3 * NS_PER_S)

/*
 * A second adds at most what the budget allows in SPIKE_NS, whatever it cost: a spike that is over
 * is no reason for steps, and what follows shall not have to pay for it.
 */
#define SPIKE_NS (2 * NS_PER_S)

/*
 * All steps are taken if all has cost more than FAR_OVER_PERCENT of the budget since the debt
 * began. If a step that was taken back may be the reason for it, that is TWICE_PERCENT. Else one is
 * taken, or twice as many as last time if that was less than HOLD_NS ago: these did not save
 * enough.
 */
enum { FAR_OVER_PERCENT = 120, TWICE_PERCENT = 200 };

/*
 * How long all must cost at most RESTORE_PERCENT of the budget before a step is taken back. The
 * time is four times as long, up to a limit, if steps had to be taken for a debt that began less
 * than BLAME_NS after a step was taken back. Between two steps that are taken back, there are at
 * least BETWEEN_NS.
 */
#define RESTORE_NS     (10 * NS_PER_S)
#define RESTORE_MAX_NS (960 * NS_PER_S)
#define BLAME_NS       (30 * NS_PER_S)
#define BETWEEN_NS     (3 * NS_PER_S)

enum { RESTORE_PERCENT = 75 };

void governor_init(struct governor *governor, uint64_t budget_ppm)
{
	*governor = (struct governor){
		.budget_ppm = budget_ppm,
		.calm_ns = CALM_NS,
		.restore_ns = RESTORE_NS,
	};
}

uint64_t governor_limit(uint64_t budget_ppm, unsigned int cpus)
{
	const uint64_t limit = budget_ppm * (cpus ? cpus : 1);

	return limit > LEAST_PPM ? limit : LEAST_PPM;
}

uint32_t governor_brake_share(uint64_t allowed_ppm, unsigned int cpus)
{
	uint64_t ppm = 2 * allowed_ppm / (cpus ? cpus : 1);

	if (ppm < LEAST_PPM)
		ppm = LEAST_PPM;
	if (ppm > allowed_ppm)
		ppm = allowed_ppm;
	return ppm < PPM ? (uint32_t)(ppm * BRAKE_SHARE_ALL / PPM) : BRAKE_SHARE_ALL;
}

/* Returns the cost of hooks and threads, which no level changes, in millionths of one CPU. */
static uint64_t fixed_ppm(const struct governor *governor)
{
	return governor->cost.hook_ppm + governor->cost.user_ppm;
}

/* True if a burst may cost more than the budget now. */
static bool may_burst(const struct governor *governor)
{
	return governor->saved > 0 && !governor->level && !governor->step;
}

/*
 * Returns what walks may cost: what all else leaves of the budget, or of what a burst may cost, in
 * millionths of one CPU.
 */
static uint64_t walks_allowed(const struct governor *governor)
{
	const uint64_t least = governor->limit_ppm / WALKS_SHARE, fixed = fixed_ppm(governor),
		       limit = governor->limit_ppm * (may_burst(governor) ? governor->burst : 1);

	return fixed < limit - least ? limit - fixed : least;
}

static uint64_t ppm_of(uint64_t cpu_ns, int64_t ns)
{
	return (uint64_t)((double)cpu_ns / (double)ns * (double)PPM);
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

/* Returns the debt at which steps are taken. */
static double debt_most(const struct governor *governor)
{
	return (double)governor->limit_ppm * (DEBT_NS / NS_PER_S);
}

/*
 * Takes what all cost above the budget since the last reading from what is saved for bursts, or
 * adds what it cost below. user_ppm is what the threads cost in that time.
 */
static void burst_update(struct governor *governor, int64_t ns, uint64_t user_ppm)
{
	const double s = (double)ns / (double)NS_PER_S, limit = (double)governor->limit_ppm,
		     cost = (double)(governor->cost.hook_ppm + user_ppm + governor->cost.walk_ppm);
	const unsigned int above = governor->burst > 1 ? governor->burst - 1 : 0;
	const double most = limit * above * (BURST_NS / NS_PER_S);
	double more = (limit - cost) * s;

	if (governor->level || governor->step)
		return;
	if (more < -governor->saved)
		more = -governor->saved;
	governor->saved += more;
	if (more < 0)
		governor->spent -= more;
	if (governor->saved > most)
		governor->saved = most;
}

/*
 * Adds what all cost since the last reading to the debt. user_ppm is what the threads cost in that
 * time. While walks cost more than they may and a level can save that, the debt does not grow: with
 * them, the cost of the threads that read their stacks will fall. Nor does it in a burst.
 */
static void debt_update(struct governor *governor, const struct governor_reading *last, int64_t ns,
			uint64_t user_ppm)
{
	const uint64_t walk = governor->cost.walk_ppm, allowed = walks_allowed(governor);
	const bool is_walking = walk > allowed && governor->level < GOVERNOR_LEVEL_MAX;
	const double s = (double)ns / (double)NS_PER_S, limit = (double)governor->limit_ppm * s,
		     cost = (double)(governor->cost.hook_ppm + user_ppm + walk) * s,
		     most = is_walking || may_burst(governor) ? 0 : limit * (SPIKE_NS / NS_PER_S),
		     more = cost - limit < most ? cost - limit : most;

	governor->is_over = more > 0;
	if (more > 0 && governor->debt <= 0) {
		governor->debt_since_ns = last->at_ns;
		governor->debt_user_ns = last->user_ns;
	}
	governor->debt += more;
	if (governor->debt < 0)
		governor->debt = 0;
	if (governor->debt > 2 * debt_most(governor))
		governor->debt = 2 * debt_most(governor);
}

/* True if the debt began soon after a step was taken back, which may be the reason for it. */
static bool restoring_is_blamed(const struct governor *governor)
{
	return governor->restored_ns && !governor->taken &&
	       governor->debt_since_ns - governor->restored_ns < BLAME_NS;
}

/*
 * Sets how long all must cost little before a step is taken back, when steps are taken: longer if
 * that is so because one was taken back, the least if taking back did no harm.
 */
static void restore_adjust(struct governor *governor)
{
	if (restoring_is_blamed(governor))
		governor->restore_ns *= 4;
	else if (!governor->taken)
		governor->restore_ns = RESTORE_NS;
	if (governor->restore_ns > RESTORE_MAX_NS)
		governor->restore_ns = RESTORE_MAX_NS;
}

/* Returns how many steps to take for the debt. */
static unsigned int steps_to_take(const struct governor *governor, int64_t now)
{
	const double s = (double)(now - governor->debt_since_ns) / (double)NS_PER_S;
	const double percent = 100 + 100 * governor->debt / s / (double)governor->limit_ppm;
	const unsigned int left = GOVERNOR_STEPS - 1 - governor->step;
	const bool is_soon = governor->taken && now - governor->stepped_ns < HOLD_NS;
	const unsigned int steps = is_soon ? 2 * governor->taken : 1;

	if (percent > (restoring_is_blamed(governor) ? TWICE_PERCENT : FAR_OVER_PERCENT))
		return left;
	return steps < left ? steps : left;
}

/* Takes steps. The average of the threads' cost begins anew, with what it was in the debt. */
static void steps_take(struct governor *governor, const struct governor_reading *now)
{
	const uint64_t user_ppm =
		ppm_of(now->user_ns - governor->debt_user_ns, now->at_ns - governor->debt_since_ns);

	restore_adjust(governor);
	governor->taken = steps_to_take(governor, now->at_ns);
	governor->step += governor->taken;
	governor->stepped_ns = now->at_ns;
	governor->debt = 0;
	if (user_ppm > governor->cost.user_ppm)
		governor->cost.user_ppm = user_ppm;
	governor->averaged_ns = 0;
}

/* True if steps are to be taken. A debt that is being paid back is no reason. */
static bool steps_are_due(const struct governor *governor)
{
	return governor->debt >= debt_most(governor) && governor->is_over &&
	       governor->step < GOVERNOR_STEPS - 1;
}

static bool step_adjust(struct governor *governor, const struct governor_reading *now)
{
	const uint64_t all = governor_cost_sum(&governor->cost);
	const bool is_under = all * 100 <= governor->limit_ppm * RESTORE_PERCENT;

	if (!is_under)
		governor->under_since_ns = 0;
	else if (!governor->under_since_ns)
		governor->under_since_ns = now->at_ns;
	if (steps_are_due(governor)) {
		steps_take(governor, now);
		return true;
	}
	if (!governor->step || !is_under || governor->debt > 0 ||
	    now->at_ns - governor->stepped_ns < BETWEEN_NS ||
	    now->at_ns - governor->under_since_ns < governor->restore_ns)
		return false;
	governor->step--;
	governor->taken = 0;
	governor->stepped_ns = governor->restored_ns = now->at_ns;
	return true;
}

unsigned int governor_sample_every(enum governor_step step)
{
	return 1U << (step < GOVERNOR_EIGHTH_SAMPLES ? step : GOVERNOR_EIGHTH_SAMPLES);
}

uint64_t governor_cost_sum(const struct governor_cost *cost)
{
	return cost->walk_ppm + cost->hook_ppm + cost->user_ppm;
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

/* Returns the time at which the reading's walks were measured. */
static int64_t walks_at(const struct governor_reading *reading)
{
	return reading->walks_at_ns ? reading->walks_at_ns : reading->at_ns;
}

/* True if the time or a total of `now` is less than that of `last`. */
static bool is_back(const struct governor_reading *last, const struct governor_reading *now)
{
	return now->at_ns < last->at_ns || now->walk_ns < last->walk_ns ||
	       now->hook_ns < last->hook_ns || now->user_ns < last->user_ns;
}

/* Begins a new minute: nothing is known of the last one. */
static void minute_reset(struct governor *governor)
{
	governor->n_marks = 0;
	governor->has_minute = governor->is_beyond = false;
}

/*
 * Sets what the last minute cost. What was cost in the first one is that of the start, which reads
 * the programs of all processes, once. Intervals of which nothing can be said are in it, as their
 * end has all of their cost.
 */
static void minute_update(struct governor *governor, const struct governor_reading *now)
{
	struct governor_mark *marks = governor->marks;
	const struct governor_reading *from = &marks[GOVERNOR_MARKS - 1].reading;
	const uint64_t limit = governor->limit_ppm;
	uint64_t all, burst;
	int64_t ns;

	if (governor->n_marks && is_back(&marks[0].reading, now))
		minute_reset(governor);
	if (now->at_ns - governor->first_ns < MINUTE_NS ||
	    (governor->n_marks && now->at_ns - marks[0].reading.at_ns < MARK_NS))
		return;
	memmove(marks + 1, marks, (GOVERNOR_MARKS - 1) * sizeof(*marks));
	marks[0] = (struct governor_mark){ *now, governor->spent };
	if (governor->n_marks < GOVERNOR_MARKS)
		governor->n_marks++;
	governor->has_minute = governor->n_marks == GOVERNOR_MARKS;
	if (!governor->has_minute)
		return;
	ns = now->at_ns - from->at_ns;
	governor->minute = (struct governor_cost){
		.walk_ppm = ppm_of(now->walk_ns - from->walk_ns, ns),
		.hook_ppm = ppm_of(now->hook_ns - from->hook_ns, ns),
		.user_ppm = ppm_of(now->user_ns - from->user_ns, ns),
	};
	all = governor_cost_sum(&governor->minute);
	burst = ppm_of((uint64_t)(1000 * (governor->spent - marks[GOVERNOR_MARKS - 1].spent)), ns);
	if (all < limit + burst)
		burst = all > limit ? all - limit : 0;
	governor->burst_ppm = burst;
	governor->is_beyond = (all - burst) * 100 >
			      limit * (governor->is_beyond ? WITHIN_PERCENT : BEYOND_PERCENT);
}

/* True if the totals of `now` and of `last` are those of the begin and the end of an interval. */
static bool is_interval(const struct governor_reading *last, const struct governor_reading *now)
{
	const int64_t ns = now->at_ns - last->at_ns;

	return ns > 0 && ns <= GAP_NS && now->at_ns - walks_at(now) <= STALE_NS &&
	       last->at_ns - walks_at(last) <= STALE_NS && !is_back(last, now);
}

/*
 * Sets the cost of the BPF programs since they were last measured. The threads that measure them
 * have a pace of their own, so there may be none, one or two measurements between two readings.
 * Returns false if there is none: the cost stays as it was.
 */
static bool programs_update(struct governor *governor, const struct governor_reading *now)
{
	const struct governor_reading last = governor->measured;
	const int64_t ns = walks_at(now) - walks_at(&last);

	if (ns < GOVERNOR_TICK_NS / 2)
		return false;
	governor->measured = *now;
	governor->cost.walk_ppm = ppm_of(now->walk_ns - last.walk_ns, ns);
	governor->cost.hook_ppm = ppm_of(now->hook_ns - last.hook_ns, ns);
	governor->next_ppm = next_ppm(now, &last, governor->cost.walk_ppm);
	return true;
}

/*
 * Sets the cost since the last reading. Returns false if nothing can be said about it. The first
 * measurement of walks after a gap contains all walks of the gap, so it says nothing, either.
 */
static bool cost_update(struct governor *governor, const struct governor_reading *now)
{
	const struct governor_reading last = governor->last;
	const bool is_next = governor->has_last && is_interval(&last, now);
	const int64_t ns = now->at_ns - last.at_ns;
	uint64_t user_ppm;
	double weight;

	governor->last = *now;
	governor->has_last = true;
	if (!is_next) {
		governor->measured = *now;
		return false;
	}
	user_ppm = ppm_of(now->user_ns - last.user_ns, ns);
	governor->averaged_ns += ns;
	if (governor->averaged_ns > AVERAGE_NS)
		governor->averaged_ns = AVERAGE_NS;
	weight = ns < governor->averaged_ns ? (double)ns / (double)governor->averaged_ns : 1;
	governor->cost.user_ppm = (uint64_t)((double)governor->cost.user_ppm * (1 - weight) +
					     (double)user_ppm * weight);
	governor->is_measured = programs_update(governor, now);
	burst_update(governor, ns, user_ppm);
	debt_update(governor, &last, ns, user_ppm);
	return true;
}

bool governor_update(struct governor *governor, const struct governor_reading *now)
{
	const int64_t ns = now->at_ns - governor->last.at_ns;
	const uint64_t limit = governor_limit(governor->budget_ppm, now->cpus);
	bool is_changed;

	if (governor->has_last && ns >= 0 && ns < GOVERNOR_TICK_NS)
		return false;
	/* What was allowed when it was spent does not break a lower limit. */
	if (limit != governor->limit_ppm)
		minute_reset(governor);
	governor->limit_ppm = limit;
	if (!governor->first_ns)
		governor->first_ns = now->at_ns;
	minute_update(governor, now);
	if (!cost_update(governor, now)) {
		governor->calm_since_ns = governor->under_since_ns = 0;
		governor->debt = 0;
		return false;
	}
	is_changed = step_adjust(governor, now);
	governor->allowed_ppm = walks_allowed(governor);
	if (governor->is_measured)
		is_changed |= level_adjust(governor, now->at_ns);
	return is_changed;
}

uint64_t governor_sample_below(unsigned int level, uint64_t floor_ns)
{
	/* Below this length, a walk would take longer than the wait: sampling begins above it. */
	const uint64_t least_ns = 10 * NS_PER_US;

	return (floor_ns > least_ns ? floor_ns : least_ns) << level;
}

uint64_t governor_sample_slow(uint64_t waits_below_ns, uint64_t slow_ns, uint64_t setting_ns)
{
	return waits_below_ns > (setting_ns ? setting_ns : slow_ns) ? waits_below_ns : setting_ns;
}
