/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/session/budget.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "bpf/layout.h"
#include "common/base.h"
#include "common/duration.h"
#include "daemon/base/log.h"
#include "daemon/config/config.h"
#include "daemon/drain/cost_meter.h"
#include "daemon/process/process.h"
#include "daemon/session/session.h"

/*
 * The budget is not enforced before this time has passed: at its start, stackd reads the programs
 * of all processes, which costs much, but only once.
 */
#define START_NS (10 * NS_PER_S)

/*
 * The brakes, and that a detail is shed, are logged at most once in this time: some hosts have
 * bursts of waits or of processes each minute.
 */
#define LOG_EVERY_NS (3600 * NS_PER_S)

struct budget {
	struct budget_options options;
	int64_t started_ns;
	struct governor governor;
	uint64_t budget_ppm;		    /* the setting that `governor` has; 0: no limit */
	uint32_t brake_share;		    /* as the probes have it, see probe_set_brake() */
	int64_t brake_log_ns;		    /* when the brakes were last logged; 0: never */
	int64_t shed_log_ns[WINDOW_SHED_N]; /* when it was last logged that this is shed */
	bool is_shed_logged[WINDOW_SHED_N]; /* it is shed, and that was logged */
	int64_t beyond_log_ns; /* when it was last logged that a minute cost too much */
	bool is_beyond_logged; /* it does, and that was logged */
	pthread_mutex_t lock;  /* guards `state` */
	struct budget_state state;
};

static unsigned int cpus_online(void)
{
	const long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n > 0 ? (unsigned int)n : 1;
}

int budget_new(const struct budget_options *options, struct budget **out)
{
	struct budget *budget = calloc(1, sizeof(*budget));

	if (!budget)
		return -ENOMEM;
	budget->options = *options;
	budget->started_ns = clock_ns(CLOCK_MONOTONIC);
	pthread_mutex_init(&budget->lock, NULL);
	/* Windows that end before the first tick have the budget, too. */
	if (options->config->budget_ppm)
		cost_meter_set(options->cost,
			       governor_limit(options->config->budget_ppm, cpus_online()), 0,
			       false);
	*out = budget;
	return 0;
}

struct budget *budget_free(struct budget *budget)
{
	if (!budget)
		return NULL;
	pthread_mutex_destroy(&budget->lock);
	free(budget);
	return NULL;
}

void budget_state(struct budget *budget, struct budget_state *out)
{
	*out = (struct budget_state){};
	if (!budget)
		return;
	pthread_mutex_lock(&budget->lock);
	*out = budget->state;
	pthread_mutex_unlock(&budget->lock);
}

static struct governor_reading reading_take(const struct cost_totals *cost)
{
	return (struct governor_reading){
		.at_ns = cost->at_ns,
		.walk_ns = cost->bpf.walk_ns,
		.hook_ns = cost->bpf.ns - cost->bpf.session_ns - cost->bpf.walk_ns,
		.user_ns = cost->cpu_ns - cost->answers_ns,
		.waits = cost->bpf.waits,
		.sampled = cost->bpf.sampled,
		.walks_at_ns = cost->bpf.walks_at_ns,
		.cpus = cpus_online(),
	};
}

/* Returns a cost in percent of one CPU. */
static double percent(uint64_t ppm)
{
	return (double)ppm / 10000;
}

/* Logs that waits are sampled from now on, or not any more. Changes of the length are not logged.
 */
static void log_sampling(const struct budget_state *before, const struct budget_state *now,
			 int64_t real_ns)
{
	char text[DURATION_TEXT_MAX];

	if (now->sample_below_ns && !before->sample_below_ns) {
		duration_format((int64_t)now->sample_below_ns, text);
		log_notice("waits under %s are sampled from now on, and this length may rise: "
			   "stacks of waits took %.1f %% of a CPU, all else %.1f %%, and [budget] "
			   "cpu allows %.1f %%",
			   text, percent(now->cost.walk_ppm),
			   percent(now->cost.hook_ppm + now->cost.user_ppm),
			   percent(now->limit_ppm));
	} else if (!now->sample_below_ns && before->sample_below_ns) {
		duration_format(real_ns - before->sampled_since_ns, text);
		log_notice("no wait is sampled any more to keep within [budget] cpu; this was so "
			   "for %s",
			   text);
	}
}

/* True if something was not logged in the last LOG_EVERY_NS. Then, sets *last to now. */
static bool log_is_due(int64_t *last)
{
	const int64_t now = clock_ns(CLOCK_MONOTONIC);

	if (*last && now - *last < LOG_EVERY_NS)
		return false;
	*last = now;
	return true;
}

/* Logs that a minute broke the budget if that was not logged lately, or that none does any more. */
static void log_beyond(struct budget *budget, const struct budget_state *before,
		       const struct budget_state *now)
{
	if (now->beyond_since_ns && !before->beyond_since_ns) {
		budget->is_beyond_logged = log_is_due(&budget->beyond_log_ns);
		if (budget->is_beyond_logged)
			log_warning("over [budget] cpu = %.1f %% of a CPU in the last minute: "
				    "stacks of waits took %.1f %%, counters in the kernel %.1f %%, "
				    "the threads of stackd %.1f %% (this is logged at most once an "
				    "hour)",
				    percent(now->limit_ppm), percent(now->minute.walk_ppm),
				    percent(now->minute.hook_ppm), percent(now->minute.user_ppm));
	} else if (!now->beyond_since_ns && before->beyond_since_ns && budget->is_beyond_logged) {
		log_notice("[budget] cpu is kept again");
	}
}

/* Logs what is shed from now on if that was not logged lately, or is not any more if it was. */
static void log_step(struct budget *budget, const struct budget_state *before,
		     const struct budget_state *now)
{
	static const char *const words[WINDOW_SHED_N] = {
		[WINDOW_SHED_SAMPLES] = "most samples of oncpu",
		[WINDOW_SHED_CALLS] = "operations of iolat other than requests to disks",
		[WINDOW_SHED_FRAMES] = "frames of user stacks behind the first 32",
		[WINDOW_SHED_BRIEF] = "functions in new files of processes that live less than a "
				      "second",
	};
	unsigned int i;

	for (i = 0; i < WINDOW_SHED_N; i++) {
		if (now->shed_since_ns[i] && !before->shed_since_ns[i])
			budget->is_shed_logged[i] = log_is_due(&budget->shed_log_ns[i]);
		if (!budget->is_shed_logged[i] ||
		    !now->shed_since_ns[i] == !before->shed_since_ns[i])
			continue;
		if (now->shed_since_ns[i])
			log_notice("not recorded from now on: %s; stackd took %.1f %% of a CPU, "
				   "and [budget] cpu allows %.1f %% (this is logged at most once "
				   "an hour)",
				   words[i], percent(governor_cost_sum(&now->cost)),
				   percent(now->limit_ppm));
		else
			log_notice("recorded again: %s", words[i]);
	}
}

/* Logs that brakes have acted since the last call, if that was not logged lately. */
static void log_braked(struct budget *budget, uint64_t braked)
{
	if (braked == budget->state.braked || !log_is_due(&budget->brake_log_ns))
		return;
	log_notice("a CPU had so many waits at once that their stacks took more than %.1f %% of "
		   "it: there, short waits were left to chance for a moment (this is logged at "
		   "most once an hour)",
		   100.0 * budget->brake_share / BRAKE_SHARE_ALL);
}

/* Returns what is shed at a step: a bit for each enum window_shed. */
static uint32_t shed_bits(enum governor_step step)
{
	return (step >= GOVERNOR_HALF_SAMPLES ? 1U << WINDOW_SHED_SAMPLES : 0) |
	       (step >= GOVERNOR_NO_CALLS ? 1U << WINDOW_SHED_CALLS : 0) |
	       (step >= GOVERNOR_FEW_FRAMES ? 1U << WINDOW_SHED_FRAMES : 0) |
	       (step >= GOVERNOR_NO_BRIEF ? 1U << WINDOW_SHED_BRIEF : 0);
}

/* Returns what stackd may cost, in millionths of one CPU; 0: there is no limit. */
static uint64_t limit_ppm(const struct budget *budget, unsigned int cpus)
{
	return budget->budget_ppm ? governor_limit(budget->budget_ppm, cpus) : 0;
}

/*
 * Returns the share of each CPU that walks may take until the governor reacts: it follows from what
 * the governor allows them, which may be a burst, or from the whole budget while that is not known.
 */
static uint32_t brake_share(const struct budget *budget, unsigned int cpus)
{
	const uint64_t allowed = budget->governor.allowed_ppm;

	return governor_brake_share(allowed ? allowed : limit_ppm(budget, cpus), cpus);
}

/* Publishes the state, and logs what has changed. */
static void state_set(struct budget *budget, unsigned int cpus, uint64_t below, uint64_t braked)
{
	struct process_stats processes;
	const struct governor *governor = &budget->governor;
	const struct budget_state before = budget->state;
	const int64_t now = clock_ns(CLOCK_REALTIME);
	struct budget_state state = {
		.limit_ppm = limit_ppm(budget, cpus),
		.asked_ppm = budget->budget_ppm * cpus,
		.cost = governor->cost,
		.sample_below_ns = below,
		.braked = braked,
		.has_minute = governor->has_minute,
		.minute = governor->minute,
		.burst_ppm = governor->burst_ppm,
	};
	unsigned int i;

	process_table_stats(budget->options.processes, &processes);
	state.put_off = processes.put_off;
	if (below)
		state.sampled_since_ns = before.sample_below_ns ? before.sampled_since_ns : now;
	for (i = 0; i < WINDOW_SHED_N; i++)
		if (shed_bits(governor->step) >> i & 1)
			state.shed_since_ns[i] =
				before.shed_since_ns[i] ? before.shed_since_ns[i] : now;
	state.sample_every = governor_sample_every(governor->step);
	if (governor->is_beyond)
		state.beyond_since_ns = before.beyond_since_ns ? before.beyond_since_ns : now;
	pthread_mutex_lock(&budget->lock);
	budget->state = state;
	pthread_mutex_unlock(&budget->lock);
	log_sampling(&before, &state, now);
	log_step(budget, &before, &state);
	log_beyond(budget, &before, &state);
}

/*
 * Passes the level and the step to the always-on probes and to the process table. Returns the
 * length that offcpu has because of the level.
 */
static uint64_t pace_apply(const struct budget *budget)
{
	const struct governor *governor = &budget->governor;
	const struct session_pace pace = {
		.level = governor->level,
		.brake_share = budget->brake_share,
		.shed = (governor->step >= GOVERNOR_NO_CALLS ? SHED_CALLS : 0U) |
			(governor->step >= GOVERNOR_FEW_FRAMES ? SHED_FRAMES : 0U) |
			(governor->step >= GOVERNOR_NO_BRIEF ? SHED_BRIEF : 0U),
		.sample_every = governor_sample_every(governor->step),
	};
	uint64_t below = 0, of_kind;
	int kind;

	process_table_put_off(budget->options.processes,
			      governor->step >= GOVERNOR_NO_BRIEF ? NS_PER_S : 0);
	for (kind = 0; kind < PROBE_KIND_N; kind++) {
		of_kind = session_set_pace(
			sessions_always(budget->options.sessions, (enum probe_kind)kind),
			budget->options.config, &pace);
		if (kind == PROBE_OFFCPU && pace.level)
			below = of_kind;
	}
	return below;
}

/*
 * Logs that the setting is less than the least that stackd keeps to, if so. Of the default there is
 * nothing to warn, although it is less on a host with few CPUs: nobody has chosen it.
 */
static void log_least(uint64_t budget_ppm, unsigned int cpus)
{
	enum { DEFAULT_PPM = 10000 };

	if (budget_ppm && budget_ppm < DEFAULT_PPM &&
	    governor_limit(budget_ppm, cpus) > budget_ppm * cpus)
		log_warning("[budget] cpu = %.3g %% of all CPUs is too little: stackd keeps to "
			    "%.3g %% of one CPU, the least that it can",
			    percent(budget_ppm), percent(governor_limit(budget_ppm, cpus)));
}

void budget_tick(struct budget *budget)
{
	const uint64_t ppm = __atomic_load_n(&budget->options.config->budget_ppm, __ATOMIC_RELAXED);
	struct governor_reading reading;
	struct cost_totals cost;
	uint64_t below = budget->state.sample_below_ns;
	bool is_changed = false;
	uint32_t share;

	cost_meter_read(budget->options.cost, &cost);
	reading = reading_take(&cost);
	if (!ppm != !budget->budget_ppm) {
		governor_init(&budget->governor, ppm);
		is_changed = true;
	}
	if (ppm != budget->budget_ppm)
		log_least(ppm, reading.cpus);
	/* Another limit leaves the level as it is: whether it fits is to be measured. */
	budget->governor.budget_ppm = budget->budget_ppm = ppm;
	budget->governor.burst = (unsigned int)__atomic_load_n(
		&budget->options.config->budget_burst, __ATOMIC_RELAXED);
	if (ppm && reading.at_ns - budget->started_ns >= START_NS)
		is_changed |= governor_update(&budget->governor, &reading);
	share = brake_share(budget, reading.cpus);
	is_changed |= share != budget->brake_share;
	budget->brake_share = share;
	cost_meter_set(budget->options.cost, limit_ppm(budget, reading.cpus),
		       shed_bits(budget->governor.step), budget->governor.is_beyond);
	if (is_changed)
		below = pace_apply(budget);
	log_braked(budget, cost.bpf.braked);
	state_set(budget, reading.cpus, below, cost.bpf.braked);
}
