/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/session/budget.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "common/base.h"
#include "common/duration.h"
#include "daemon/base/log.h"
#include "daemon/broker/broker.h"
#include "daemon/config/config.h"
#include "daemon/drain/cost_meter.h"
#include "daemon/session/session.h"

/*
 * The budget is not enforced before this time has passed: at its start, stackd reads the programs
 * of all processes, which costs much, but only once.
 */
#define START_NS (10 * NS_PER_S)

struct budget {
	struct budget_options options;
	int64_t started_ns;
	clockid_t answers; /* CPU time of the thread that answers clients */
	struct governor governor;
	uint64_t budget_ppm;  /* the setting that `governor` has; 0: no limit */
	pthread_mutex_t lock; /* guards `state` */
	struct budget_state state;
};

int budget_new(const struct budget_options *options, struct budget **out)
{
	struct budget *budget = calloc(1, sizeof(*budget));

	if (!budget)
		return -ENOMEM;
	budget->options = *options;
	budget->started_ns = clock_ns(CLOCK_MONOTONIC);
	if (pthread_getcpuclockid(pthread_self(), &budget->answers))
		budget->answers = CLOCK_THREAD_CPUTIME_ID;
	pthread_mutex_init(&budget->lock, NULL);
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

static struct governor_reading reading_take(const struct budget *budget)
{
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct cost_totals cost;

	cost_meter_read(budget->options.cost, &cost);
	return (struct governor_reading){
		.at_ns = cost.at_ns,
		.walk_ns = cost.bpf.walk_ns,
		.hook_ns = cost.bpf.ns - cost.bpf.session_ns - cost.bpf.walk_ns,
		.user_ns = cost.cpu_ns + broker_cpu_ns(budget->options.broker) -
			   (uint64_t)clock_ns(budget->answers),
		.waits = cost.bpf.waits,
		.sampled = cost.bpf.sampled,
		.cpus = cpus > 0 ? (unsigned int)cpus : 1,
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

static void log_beyond(const struct budget_state *before, const struct budget_state *now)
{
	if (now->beyond_since_ns && !before->beyond_since_ns)
		log_warning("[budget] cpu = %.1f %% of a CPU cannot be kept: the counters in the "
			    "kernel alone take %.1f %%, the threads of stackd %.1f %%, and nothing "
			    "is left to shed",
			    percent(now->limit_ppm), percent(now->cost.hook_ppm),
			    percent(now->cost.user_ppm));
	else if (!now->beyond_since_ns && before->beyond_since_ns)
		log_notice("[budget] cpu can be kept again");
}

/* Publishes the state, and logs what has changed. */
static void state_set(struct budget *budget, unsigned int cpus, uint64_t below)
{
	const struct governor *governor = &budget->governor;
	const struct budget_state before = budget->state;
	const int64_t now = clock_ns(CLOCK_REALTIME);
	struct budget_state state = {
		.limit_ppm = budget->budget_ppm ? governor_limit(budget->budget_ppm, cpus) : 0,
		.cost = governor->cost,
		.sample_below_ns = below,
	};

	if (below)
		state.sampled_since_ns = before.sample_below_ns ? before.sampled_since_ns : now;
	if (governor->is_beyond)
		state.beyond_since_ns = before.beyond_since_ns ? before.beyond_since_ns : now;
	pthread_mutex_lock(&budget->lock);
	budget->state = state;
	pthread_mutex_unlock(&budget->lock);
	log_sampling(&before, &state, now);
	log_beyond(&before, &state);
}

/* Passes the level to the always-on probes. Returns the length that offcpu has because of it. */
static uint64_t level_apply(const struct budget *budget)
{
	const unsigned int level = budget->governor.level;
	uint64_t below = 0, of_kind;
	int kind;

	for (kind = 0; kind < PROBE_KIND_N; kind++) {
		of_kind = session_set_level(
			sessions_always(budget->options.sessions, (enum probe_kind)kind),
			budget->options.config, level);
		if (kind == PROBE_OFFCPU && level)
			below = of_kind;
	}
	return below;
}

void budget_tick(struct budget *budget)
{
	const uint64_t ppm = __atomic_load_n(&budget->options.config->budget_ppm, __ATOMIC_RELAXED);
	const struct governor_reading reading = reading_take(budget);
	uint64_t below = budget->state.sample_below_ns;
	bool is_changed = false;

	if (!ppm != !budget->budget_ppm) {
		governor_init(&budget->governor, ppm);
		is_changed = true;
	}
	/* Another limit leaves the level as it is: whether it fits is to be measured. */
	budget->governor.budget_ppm = budget->budget_ppm = ppm;
	if (ppm && reading.at_ns - budget->started_ns >= START_NS)
		is_changed |= governor_update(&budget->governor, &reading);
	if (is_changed)
		below = level_apply(budget);
	state_set(budget, reading.cpus, below);
}
