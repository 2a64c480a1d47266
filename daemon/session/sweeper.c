/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/session/sweeper.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/base.h"
#include "daemon/base/activity.h"
#include "daemon/base/log.h"
#include "daemon/base/thread.h"
#include "daemon/config/config.h"
#include "daemon/host/procfs.h"
#include "daemon/process/process.h"
#include "daemon/session/budget.h"
#include "daemon/session/memory_budget.h"
#include "daemon/session/session.h"
#include "daemon/store/history.h"
#include "daemon/window/resolver.h"
#include "daemon/window/stack.h"

/* Time between two measurements of the cost, and between two checks whether a sweep is due. */
#define TICK_NS NS_PER_S

/*
 * Stacks to which nothing refers are kept for this long. Otherwise the symbols of a rare stack
 * would have to be looked up again each time that it appears.
 */
#define STACK_KEEP_NS (60 * NS_PER_S)

/*
 * A process is kept for this long after the windows of all sessions have its exit, in case a record
 * was delayed.
 */
#define RECORDS_LATE_NS NS_PER_S

/*
 * When a sweep ends and the allocator has more free memory than this, in bytes, that memory is
 * returned to the kernel: the next window of a host with many processes needs it, but few hosts
 * have many all the time. Finding out how much is free takes milliseconds if there are many pieces,
 * so it is done at this interval, MEMORY_CHECK_NS, or MEMORY_SOON_NS while stackd takes more than
 * [budget] memory.
 */
#define MEMORY_SPARE	((size_t)4 << 20)
#define MEMORY_CHECK_NS (20 * NS_PER_S)
#define MEMORY_SOON_NS	(5 * NS_PER_S)

struct sweeper {
	struct sweeper_options options;
	pthread_t thread;
	pthread_mutex_t lock; /* guards is_stopping and memory */
	pthread_cond_t stopping;
	bool is_stopping;
	struct sweeper_memory memory;
	struct memory_budget memory_budget;
	int64_t swept_ns;   /* when the last sweep began */
	int64_t built_ns;   /* sessions_built_ns() at that time */
	int64_t checked_ns; /* when memory_check() last ran */
};

/*
 * Sweeps the tables. `built` is the result of sessions_built_ns(). Later events may not be in a
 * window yet, so the sweep takes `built` as the present time.
 */
static void tables_sweep(const struct sweeper_options *options, int64_t built, int64_t named)
{
	const struct process_sweep sweep = {
		.lost_ns = built - STACK_KEEP_NS,
		.dead_ns = built - RECORDS_LATE_NS,
		.named_ns = (named < built ? named : built) - RECORDS_LATE_NS,
	};

	stack_table_sweep(options->stacks, STACK_KEEP_NS, built);
	process_table_sweep(options->processes, &sweep);
}

/* Returns free memory to the kernel if there is much of it, and if every_ns have passed. */
static void memory_check(struct sweeper *sweeper, int64_t now, int64_t every_ns)
{
	if (now - sweeper->checked_ns < every_ns)
		return;
	sweeper->checked_ns = now;
	if (mallinfo2().fordblks > MEMORY_SPARE)
		malloc_trim(0);
}

/* Returns what windows take, with their stacks and processes: what history_add() counts. */
static size_t windows_bytes(const struct sweeper_options *options)
{
	struct history_stats stats;

	history_stats(options->history, &stats);
	return stats.bytes + stats.waiting_bytes + stack_table_referred_bytes(options->stacks) +
	       process_table_referred_bytes(options->processes);
}

static void log_windows_limit(size_t before, const struct memory_reading *reading, size_t limit)
{
	if (limit < reading->most && before >= reading->most)
		log_notice("windows in memory may take %zu MiB from now on, and this may change: "
			   "stackd takes %zu MiB, and [budget] memory allows %zu MiB",
			   limit >> 20, reading->rss >> 20, reading->budget >> 20);
	else if (limit >= reading->most && before < reading->most)
		log_notice("windows in memory may take what [window] max_memory says again");
}

/* Limits the windows in memory so that stackd keeps within [budget] memory. */
static void memory_keep(struct sweeper *sweeper)
{
	const struct sweeper_options *options = &sweeper->options;
	const struct config *config = options->config;
	struct memory_budget *budget = &sweeper->memory_budget;
	const struct memory_reading reading = {
		.rss = procfs_own_rss(),
		.budget = __atomic_load_n(&config->budget_memory, __ATOMIC_RELAXED),
		.windows = windows_bytes(options),
		.most = __atomic_load_n(&config->window_max_memory, __ATOMIC_RELAXED),
	};
	const size_t before = budget->limit ? budget->limit : reading.most;
	const size_t limit = memory_budget_update(budget, &reading);

	history_set_budget(options->history, limit);
	pthread_mutex_lock(&sweeper->lock);
	sweeper->memory = (struct sweeper_memory){ budget->least, budget->lowered };
	pthread_mutex_unlock(&sweeper->lock);
	log_windows_limit(before, &reading, limit);
	if (reading.rss > reading.budget)
		memory_check(sweeper, clock_ns(CLOCK_MONOTONIC), MEMORY_SOON_NS);
}

void sweeper_memory(struct sweeper *sweeper, struct sweeper_memory *out)
{
	*out = (struct sweeper_memory){};
	if (!sweeper)
		return;
	pthread_mutex_lock(&sweeper->lock);
	*out = sweeper->memory;
	pthread_mutex_unlock(&sweeper->lock);
}

/*
 * Sweeps the tables if windows of all sessions have been built and folded since the last sweep:
 * much that these windows needed is then no longer referred to. If that takes longer than the
 * length of a window, sweeps them anyway.
 */
static void sweep_if_due(struct sweeper *sweeper)
{
	const struct sweeper_options *options = &sweeper->options;
	int64_t now = clock_ns(CLOCK_MONOTONIC);
	int64_t built = sessions_built_ns(options->sessions);
	struct resolver_stats names;

	if (built > now)
		built = now;
	resolver_stats(options->resolver, &names);
	if (now - sweeper->swept_ns < options->config->window_length_ns &&
	    (built == sweeper->built_ns || names.named_ns < built))
		return;
	tables_sweep(options, built, names.named_ns);
	memory_check(sweeper, now, MEMORY_CHECK_NS);
	sweeper->swept_ns = now;
	sweeper->built_ns = built;
}

/* Sleeps for TICK_NS. False if the sweeper is to stop. */
static bool sweeper_wait(struct sweeper *sweeper)
{
	int64_t end = clock_ns(CLOCK_MONOTONIC) + TICK_NS;
	bool is_stopping;
	int r = 0;

	pthread_mutex_lock(&sweeper->lock);
	while (!sweeper->is_stopping && !r)
		r = thread_wait_until(&sweeper->stopping, &sweeper->lock, end);
	is_stopping = sweeper->is_stopping;
	pthread_mutex_unlock(&sweeper->lock);
	return !is_stopping;
}

static void *sweeper_run(void *data)
{
	struct activity activity = { .thread = "sweeper", .work = "sweeping tables" };
	struct sweeper *sweeper = data;

	activity_watch(&activity);
	sweeper->swept_ns = clock_ns(CLOCK_MONOTONIC);
	while (sweeper_wait(sweeper)) {
		activity_begin(&activity);
		budget_tick(sweeper->options.budget);
		memory_keep(sweeper);
		sessions_follow_groups(sweeper->options.sessions);
		sweep_if_due(sweeper);
		activity_end(&activity);
	}
	activity_unwatch(&activity);
	return NULL;
}

static void sweeper_free(struct sweeper *sweeper)
{
	pthread_cond_destroy(&sweeper->stopping);
	pthread_mutex_destroy(&sweeper->lock);
	free(sweeper);
}

int sweeper_start(const struct sweeper_options *options, struct sweeper **out)
{
	struct sweeper *sweeper = calloc(1, sizeof(*sweeper));
	int r;

	if (!sweeper)
		return -ENOMEM;
	sweeper->options = *options;
	pthread_mutex_init(&sweeper->lock, NULL);
	pthread_cond_init(&sweeper->stopping, NULL);
	r = thread_start(&sweeper->thread, "sweeper", sweeper_run, sweeper);
	if (r) {
		sweeper_free(sweeper);
		return r;
	}
	*out = sweeper;
	return 0;
}

struct sweeper *sweeper_stop(struct sweeper *sweeper)
{
	if (!sweeper)
		return NULL;
	pthread_mutex_lock(&sweeper->lock);
	sweeper->is_stopping = true;
	pthread_cond_signal(&sweeper->stopping);
	pthread_mutex_unlock(&sweeper->lock);
	pthread_join(sweeper->thread, NULL);
	sweeper_free(sweeper);
	return NULL;
}
