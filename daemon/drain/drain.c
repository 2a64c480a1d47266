/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/drain/drain.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "common/base.h"
#include "daemon/base/log.h"
#include "daemon/base/thread.h"
#include "daemon/config/config.h"
#include "daemon/drain/call_stream.h"
#include "daemon/drain/internal.h"
#include "daemon/drain/tick.h"
#include "daemon/probe/kinds.h"
#include "daemon/probe/probe.h"
#include "daemon/window/resolver.h"

/*
 * Maximum time for which a drain sleeps. Then it looks at the settings, because a reload may have
 * changed the length of windows.
 */
#define SLEEP_MAX_NS NS_PER_S

/* The cost of the programs is added at intervals of this length, or a little later. */
#define COST_TICK_NS (NS_PER_S * 9 / 10)

/*
 * The user stacks of waits that have not ended are read at OPENWAIT_LEAD_NS before the end of a
 * window. Waits that have lasted for less than OPENWAIT_MIN_NS by then are left out.
 */
#define OPENWAIT_LEAD_NS (300 * NS_PER_MS)
#define OPENWAIT_MIN_NS	 (100 * NS_PER_MS)

/*
 * A thread of its own reads the user stacks. When the drain stops, it waits at most this long for
 * the end of that thread. If the thread hangs for longer, because another process hangs, it is
 * detached.
 */
#define OPENWAIT_STOP_NS NS_PER_S

/*
 * Requests that the user stacks of waits that have not ended are read, and waits for up to
 * timeout_ns until they have been read. Any thread.
 */
static void openwaits_read(struct drain *drain, int64_t timeout_ns)
{
	struct cut *cut = probe_cut(drain->probe);
	const struct openwait_pass pass = {
		.epoch = __atomic_load_n(&cut->epoch, __ATOMIC_RELAXED),
		.lost_epoch = __atomic_load_n(&cut->lost_epoch, __ATOMIC_RELAXED),
		.min_ns = OPENWAIT_MIN_NS,
		.max_looks = drain->config->offcpu_max_open_stacks,
	};

	if (drain->openwait && pass.max_looks)
		openwait_reader_pass(drain->openwait, &pass, timeout_ns);
}

static void drain_cut_now(struct drain *drain)
{
	int64_t begin = clock_ns(CLOCK_MONOTONIC), took;
	struct window *window = NULL;
	int r = drain_cut_window(drain, &window);
	uint64_t seq = 0;

	took = clock_ns(CLOCK_MONOTONIC) - begin;
	pthread_mutex_lock(&drain->lock);
	drain->last_cut_ns = begin;
	drain->cut_wanted = false;
	drain->stats.cut_ns = took;
	drain->stats.last_ns = begin + took;
	drain->stats.threads = drain->threads;
	pressure_meter_stats(drain->pressure, &drain->stats.pressure);
	if (drain->keys > drain->stats.keys_max)
		drain->stats.keys_max = drain->keys;
	if (took > drain->stats.cut_max_ns)
		drain->stats.cut_max_ns = took;
	pthread_mutex_unlock(&drain->lock);
	if (!r) {
		drain_stacks_hold_opens(drain, window);
		resolver_add_window(drain->resolver, TAKE(window), &seq);
	}
	/*
	 * Call probe_refresh() before signalling `done`: threads wait for this signal, and one of
	 * them may detach the probe then.
	 */
	probe_refresh(drain->probe);
	pthread_mutex_lock(&drain->lock);
	drain->stats.cuts++;
	if (seq)
		drain->seq = seq;
	pthread_cond_broadcast(&drain->done);
	pthread_mutex_unlock(&drain->lock);
	drain_stacks_roll(drain);
	/*
	 * If a query ends the window early, the next window still ends at the time that was planned
	 * before. The store joins windows that are too short, and a crash costs no more than one
	 * window of full length.
	 */
	if (begin >= drain->period_ns + drain->config->window_length_ns)
		drain->period_ns = begin;
	drain->next_ns = drain->period_ns + drain->config->window_length_ns;
	drain->has_asked_openwait = false;
}

/*
 * Sleeps until the drain has something to do: until the ring buffer has to be emptied, stacks have
 * to be read, the budget has to be checked, or the window has to end. Never sleeps longer than
 * SLEEP_MAX_NS. False if the drain has to stop.
 */
static bool drain_wait(struct drain *drain)
{
	struct pollfd fds[] = {
		{ .fd = drain_ring_poll_fd(drain->ring), .events = POLLIN },
		{ .fd = drain->wake_fd, .events = POLLIN },
	};
	int64_t now = clock_ns(CLOCK_MONOTONIC), until = now + SLEEP_MAX_NS;
	uint64_t count;
	bool stop;

	if (probe_pace(drain->probe))
		until = now + CALL_BUDGET_TICK_NS;
	if (drain->openwait && !drain->has_asked_openwait &&
	    drain->next_ns - OPENWAIT_LEAD_NS < until)
		until = drain->next_ns - OPENWAIT_LEAD_NS;
	if (drain->next_ns < until)
		until = drain->next_ns;
	if (until > now)
		poll(fds, ARRAY_SIZE(fds), (int)((until - now + NS_PER_MS - 1) / NS_PER_MS));
	if (fds[1].revents & POLLIN && read(drain->wake_fd, &count, sizeof(count)) < 0)
		log_err(-errno, "read the drain's wake-up");
	pthread_mutex_lock(&drain->lock);
	stop = drain->is_stopping;
	/*
	 * next_ns is computed each time, because a reload may have changed the length of windows.
	 */
	drain->next_ns = drain->cut_wanted ? 0 : drain->period_ns + drain->config->window_length_ns;
	pthread_mutex_unlock(&drain->lock);
	return !stop;
}

/* Adds the cost of the programs from time to time, so that windows of other probes have it. */
static void drain_measure(struct drain *drain)
{
	struct cpu_counts counts;

	if (clock_ns(CLOCK_MONOTONIC) - drain->run_counts_ns >= COST_TICK_NS &&
	    !drain_read_counts(drain, &counts))
		drain_add_cost(drain, &counts);
}

/*
 * Passes a new length below which waits are sampled to the programs. Each wait is weighed by the
 * length that is valid when the wait ends, so the sums of the open window stay right.
 */
static void drain_set_sampling(struct drain *drain)
{
	struct cut *cut = probe_cut(drain->probe);
	uint64_t below = probe_sample_below(drain->probe);

	if (below > drain->below_max_ns)
		drain->below_max_ns = below;
	__atomic_store_n(&cut->sample_below_ns[cut->epoch & 1], below, __ATOMIC_RELAXED);
	__atomic_store_n(&cut->brake_share, probe_brake(drain->probe), __ATOMIC_RELAXED);
	probe_pass_shed(drain->probe, cut);
	drain->shed |= cost_meter_shed(drain->cost);
}

/*
 * Measures the CPU cost of recording calls. Sets the share of calls that the BPF programs record
 * from now on so that the cost stays within the budget.
 */
static void drain_keep_budget(struct drain *drain)
{
	struct call_pace *shared = probe_pace(drain->probe);
	struct cpu_counts counts;
	struct call_counts now = { .time_ns = clock_ns(CLOCK_MONOTONIC) };

	if (!shared || now.time_ns - drain->budget.last.time_ns < CALL_BUDGET_TICK_NS ||
	    drain_read_counts(drain, &counts))
		return;
	now.calls = counts.samples;
	now.wanted = counts.samples - counts.filtered;
	now.run_ns = counts.call_ns;
	call_budget_update(&drain->budget, &now);
	__atomic_store_n(&shared->every, drain->budget.every, __ATOMIC_RELAXED);
	pthread_mutex_lock(&drain->lock);
	drain->stats.counts = counts;
	drain->stats.every = drain->budget.every;
	drain->stats.calls_per_s = drain->budget.calls_per_s;
	drain->stats.load_percent = drain->budget.load_percent;
	drain->stats.is_over = drain->budget.is_over;
	pthread_mutex_unlock(&drain->lock);
}

/*
 * Empties the ring. For threads that wait for a pass, also waits until records are committed.
 * Returns false if some were not in time.
 */
static bool ring_empty(struct drain *drain, bool is_awaited)
{
	if (is_awaited)
		return drain_ring_catch_up(drain->ring);
	drain_ring_consume(drain->ring);
	return true;
}

/* Wakes the threads that have asked for this pass. */
static void pass_end(struct drain *drain, uint64_t asked)
{
	pthread_mutex_lock(&drain->lock);
	drain->passed = asked;
	pthread_cond_broadcast(&drain->done);
	pthread_mutex_unlock(&drain->lock);
}

/* Returns the number of the last pass that was asked for. */
static uint64_t pass_asked(struct drain *drain)
{
	uint64_t asked;

	pthread_mutex_lock(&drain->lock);
	asked = drain->asked;
	pthread_mutex_unlock(&drain->lock);
	return asked;
}

static void *drain_run(void *data)
{
	struct drain *drain = data;
	uint64_t asked;
	bool is_whole;

	thread_set_urgent();
	while (drain_wait(drain)) {
		asked = pass_asked(drain);
		is_whole = ring_empty(drain, asked != drain->passed);
		resolver_wake(drain->resolver);
		if (!drain->has_asked_openwait &&
		    clock_ns(CLOCK_MONOTONIC) >= drain->next_ns - OPENWAIT_LEAD_NS) {
			openwaits_read(drain, 0);
			drain->has_asked_openwait = true;
		}
		drain_keep_budget(drain);
		drain_measure(drain);
		drain_set_sampling(drain);
		if (clock_ns(CLOCK_MONOTONIC) >= drain->next_ns)
			drain_cut_now(drain);
		process_table_show(drain->processes);
		if (asked != drain->passed && is_whole)
			pass_end(drain, asked);
	}
	drain_cut_now(drain);
	return NULL;
}

/* The operations of the window builders, by kind of probe; generated from the list PROBE_KINDS. */
#define BUILDER_DECLARE(kind, probe, name) extern const struct window_builder_ops build_##name;
#define BUILDER_ROW(kind, probe, name)	   [kind] = &build_##name,

PROBE_KINDS(BUILDER_DECLARE)

static const struct window_builder_ops *const builders[] = { PROBE_KINDS(BUILDER_ROW) };

_Static_assert(ARRAY_SIZE(builders) == PROBE_KIND_N, "every kind has a builder");

static int drain_open_builder(struct drain *drain, int64_t min_wait_ns)
{
	struct window_builder_options options = {
		.kind = probe_kind(drain->probe),
		.processes = drain->processes,
		.stacks = drain->stacks,
		.period_ns = probe_period_ns(drain->probe),
		.min_wait_ns = min_wait_ns,
		.counts_spawns = drain->is_always,
	};

	options.io_slots = probe_io_slots(drain->probe, &options.n_io_slots);
	return window_builder_new(builders[options.kind], &options, &drain->builder);
}

static int drain_open(struct drain *drain, int64_t min_wait_ns)
{
	uint32_t size = sizeof(struct bpf_map_info);
	struct bpf_map_info info = {};
	int r;

	drain->n_cpus = libbpf_num_possible_cpus();
	if (drain->n_cpus < 0)
		return drain->n_cpus;
	if (bpf_obj_get_info_by_fd(probe_cpus_fd(drain->probe), &info, &size))
		return -errno;
	drain->cpu_size = (info.value_size + 7) & ~(size_t)7;
	drain->cpus = calloc((size_t)drain->n_cpus, drain->cpu_size);
	if (!drain->cpus)
		return -ENOMEM;
	drain->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (drain->wake_fd < 0)
		return -errno;
	r = drain_open_builder(drain, min_wait_ns);
	if (r)
		return r;
	r = drain_ring_open(probe_ring_fd(drain->probe), drain_on_record, drain, &drain->ring);
	return r ? r : tick_add(drain->tick, drain->ring, drain->wake_fd);
}

static struct drain *drain_free(struct drain *drain)
{
	openwait_reader_stop(drain->openwait, OPENWAIT_STOP_NS);
	if (drain->ring)
		tick_remove(drain->tick, drain->ring);
	drain_ring_close(drain->ring);
	drain_stacks_fini(drain);
	pressure_meter_free(drain->pressure);
	window_builder_free(drain->builder);
	call_stream_unref(drain->calls);
	closep(&drain->wake_fd);
	free(drain->cpus);
	pthread_cond_destroy(&drain->done);
	pthread_mutex_destroy(&drain->lock);
	free(drain);
	return NULL;
}

static struct drain *drain_new(void)
{
	struct drain *drain = calloc(1, sizeof(*drain));

	if (!drain)
		return NULL;
	drain->wake_fd = -1;
	pthread_mutex_init(&drain->lock, NULL);
	pthread_cond_init(&drain->done, NULL);
	return drain;
}

/*
 * Begins the first window. Then runs the task iterator, a BPF program that adds all existing
 * threads to the table of threads. The kernel stores when a thread last got a CPU, but by another
 * clock than the BPF programs use. To convert such times, the iterator needs one moment whose time
 * is known by both clocks. Therefore this thread sleeps shortly: when it gets a CPU again, the
 * kernel and the BPF programs both store the time.
 */
static int drain_begin(struct drain *drain)
{
	struct cut *cut = probe_cut(drain->probe);
	struct window_pressure none = {};

	drain->below_max_ns = probe_sample_below(drain->probe);
	cut->brake_share = probe_brake(drain->probe);
	cut->sample_below_ns[(cut->epoch + 1) & 1] = drain->below_max_ns;
	drain_bump_epoch(cut);
	pressure_meter_read(drain->pressure, drain->config->pressure_max_units, &none);
	pressure_meter_stats(drain->pressure, &drain->stats.pressure);
	if (!drain_has_threads(drain))
		return 0;
	usleep(1000);
	return drain_visit_tasks(drain);
}

/* Opens what the drain reads, begins the first window and starts the thread. */
static int drain_launch(struct drain *drain, const struct drain_options *options)
{
	const struct pressure_meter_options pressure = { .with_units = options->reads_units };
	int r = drain_open(drain, options->min_wait_ns);

	if (r)
		return r;
	r = pressure_meter_new(&pressure, &drain->pressure);
	if (r)
		return r;
	r = drain_begin(drain);
	if (r)
		return r;
	if (drain_has_threads(drain)) {
		r = openwait_reader_of(drain->probe, &drain->openwait);
		if (r)
			return r;
	}
	if (!options->is_always)
		openwaits_read(drain, 0);
	return thread_start(&drain->thread, probe_kind_name(probe_kind(drain->probe)), drain_run,
			    drain);
}

int drain_start(const struct drain_options *options, struct drain **out)
{
	struct drain *drain = drain_new();
	int r;

	if (!drain)
		return -ENOMEM;
	drain->config = options->config;
	drain->probe = options->probe;
	drain->processes = options->processes;
	drain->stacks = options->stacks;
	drain->resolver = options->resolver;
	drain->tick = options->tick;
	drain->cost = options->cost;
	cost_meter_read(drain->cost, &drain->last_cost);
	drain->session = options->session;
	drain->folding = options->folding;
	drain->follows_processes = options->follows_processes;
	drain->is_always = options->is_always;
	drain->calls = options->calls ? call_stream_ref(options->calls) : NULL;
	call_budget_init(&drain->budget, options->config->stackcount_max_cpu, options->call_cost_ns,
			 options->rate, clock_ns(CLOCK_MONOTONIC));
	drain->last_cut_ns = clock_ns(CLOCK_MONOTONIC);
	drain->period_ns = drain->last_cut_ns;
	drain->next_ns = drain->period_ns + options->config->window_length_ns;
	drain->stats.last_ns = drain->last_cut_ns;
	r = drain_launch(drain, options);
	if (r) {
		drain_free(drain);
		return r;
	}
	*out = drain;
	return 0;
}

static void drain_wake(struct drain *drain)
{
	uint64_t one = 1;

	if (write(drain->wake_fd, &one, sizeof(one)) < 0)
		log_err(-errno, "wake the drain");
}

struct drain *drain_stop(struct drain *drain, struct drain_stats *stats_out, uint64_t *seq_out)
{
	if (!drain)
		return NULL;
	openwaits_read(drain, OPENWAIT_LEAD_NS);
	pthread_mutex_lock(&drain->lock);
	drain->is_stopping = true;
	pthread_mutex_unlock(&drain->lock);
	drain_wake(drain);
	pthread_join(drain->thread, NULL);
	if (stats_out)
		*stats_out = drain->stats;
	if (seq_out)
		*seq_out = drain->seq;
	return drain_free(drain);
}

/*
 * True if a client's request may end the open window now: if the window is long enough, or if it is
 * the first one of the session, because then no older window can answer the request. Called with
 * the lock held.
 */
static bool is_cut_allowed(const struct drain *drain)
{
	return drain->seq == 0 || clock_ns(CLOCK_MONOTONIC) - drain->last_cut_ns >=
					  drain->config->window_min_length_ns;
}

int drain_cut(struct drain *drain, int64_t timeout_ns, uint64_t *seq_out)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC), end = now + timeout_ns;
	bool is_allowed;
	uint64_t cuts;
	int r = 0;

	pthread_mutex_lock(&drain->lock);
	is_allowed = is_cut_allowed(drain);
	pthread_mutex_unlock(&drain->lock);
	if (is_allowed)
		openwaits_read(drain, OPENWAIT_LEAD_NS);
	pthread_mutex_lock(&drain->lock);
	if (is_cut_allowed(drain)) {
		cuts = drain->stats.cuts;
		drain->cut_wanted = true;
		drain_wake(drain);
		while (drain->stats.cuts == cuts && !r)
			r = thread_wait_until(&drain->done, &drain->lock, end);
	}
	*seq_out = drain->seq;
	pthread_mutex_unlock(&drain->lock);
	return r;
}

int drain_catch_up(struct drain *drain, int64_t timeout_ns)
{
	int64_t end = clock_ns(CLOCK_MONOTONIC) + timeout_ns;
	uint64_t asked;
	int r = 0;

	pthread_mutex_lock(&drain->lock);
	asked = ++drain->asked;
	drain_wake(drain);
	while (drain->passed < asked && !r)
		r = thread_wait_until(&drain->done, &drain->lock, end);
	pthread_mutex_unlock(&drain->lock);
	return r;
}

void drain_stats(struct drain *drain, struct drain_stats *out)
{
	pthread_mutex_lock(&drain->lock);
	*out = drain->stats;
	pthread_mutex_unlock(&drain->lock);
	openwait_reader_stats(drain->openwait, &out->openwait);
}

/*
 * `recovered` counts switch-ins that sched_switch did not show to the programs. Usually the reason
 * is a hidden thread: the host runs no BPF programs when this thread leaves its CPU. But each CPU
 * may also add one when the programs are attached in the middle of a context switch. So only a
 * count well above the number of CPUs shows that there are hidden threads.
 */
uint64_t drain_hidden(const struct drain_stats *stats)
{
	const struct cpu_counts *counts = &stats->counts;
	uint64_t cpus = (uint64_t)sysconf(_SC_NPROCESSORS_CONF);

	return counts->recovered > 2 * cpus ? counts->recovered + counts->hidden : counts->hidden;
}
