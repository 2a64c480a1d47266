/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/drain/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "common/base.h"
#include "daemon/base/log.h"
#include "daemon/base/real_offset.h"
#include "daemon/drain/map_read.h"
#include "daemon/host/procfs.h"
#include "daemon/probe/probe.h"
#include "daemon/window/stack.h"

/*
 * To begin a new window, the drain writes the window's start, which is this far ahead, waits for
 * it, and then writes the window's number. Each program that reads a clock later than the start
 * thus knows the start. Each further attempt doubles it, as reading the clock takes some us where
 * the vDSO cannot.
 */
#define CUT_LEAD_NS (2 * NS_PER_US)

/*
 * Maximum accepted time between the start of a window and the writing of its number. Waits that end
 * during this time are counted in the old window.
 */
#define CUT_SLACK_NS (50 * NS_PER_US)

enum {
	REREADS = 8, /* maximum number of attempts to copy a thread's state while BPF programs
			change it */
	CUT_ATTEMPTS = 5,
	PENDING_READS = 20, /* maximum number of attempts to find no pending wait on a CPU */
	PENDING_RETRY_US = 50,
	STALE_CUTS = 4, /* if the task iterator has not found a thread for more windows than this,
			   the thread may have ended */
};

static void on_row(void *context, const void *key, const void *value)
{
	struct drain *drain = context;

	drain->keys++;
	window_builder_add(drain->builder, key, value);
}

/*
 * Copies one entry of the table of threads. BPF programs may be writing to the entry: they increase
 * seq_begin before a change and seq_done after it. False if the entry is free.
 */
static bool thread_copy(const struct thread *slot, struct thread *copy)
{
	uint32_t done;
	int i;

	for (i = 0; i < REREADS; i++) {
		done = __atomic_load_n(&slot->seq_done, __ATOMIC_ACQUIRE);
		memcpy(copy, slot, sizeof(*copy));
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&slot->seq_begin, __ATOMIC_RELAXED) == done)
			return copy->uid != 0;
	}
	/*
	 * The entry changed during each attempt. Use the last copy, in which at most one context
	 * switch is missing.
	 */
	return copy->uid != 0;
}

/*
 * True if the thread has ended: its flag says so, or it is not in /proc and the BPF iterator over
 * all tasks has not found it for more than STALE_CUTS windows. The iterator alone is not enough,
 * because some hosts hide threads from it.
 */
static bool thread_is_stale(const struct thread *thread, uint32_t epoch)
{
	if (thread->flags & THREAD_IS_OVER)
		return true;
	if (epoch - thread->seen_cut <= STALE_CUTS)
		return false;
	return !procfs_has_thread(thread->tgid, thread->tid);
}

bool drain_has_threads(const struct drain *drain)
{
	return probe_has_threads(drain->probe);
}

/*
 * Reads n entries of the table of threads. False if no thread ever had one of them: an entry that
 * was used keeps an epoch.
 */
static bool threads_read(struct drain *drain, struct thread *slots, int n)
{
	uint32_t epoch = probe_cut(drain->probe)->epoch;
	struct thread thread;
	bool is_used = false;
	int i;

	for (i = 0; i < n; i++) {
		is_used |= slots[i].epoch != 0;
		if (!slots[i].uid || !thread_copy(&slots[i], &thread))
			continue;
		drain->threads++;
		if (thread_is_stale(&thread, epoch)) {
			/*
			 * The thread has ended unnoticed. Remove it from the table: the BPF
			 * programs look up threads there by the address of their task_struct, and
			 * another thread may soon have this address.
			 */
			probe_drop_thread(drain->probe, &slots[i]);
			continue;
		}
		window_builder_add_thread(drain->builder, &thread);
	}
	return is_used;
}

/* Reads all entries of the table of threads that were ever used. Returns 0 or a negative errno. */
static int thread_table_read(struct drain *drain)
{
	struct thread *slots;
	uint64_t first = 0;
	int n;

	drain->threads = 0;
	do {
		n = probe_map_threads(drain->probe, first, &slots);
		first += n > 0 ? (uint64_t)n : 0;
	} while (n > 0 && threads_read(drain, slots, n));
	return n < 0 ? n : 0;
}

int drain_visit_tasks(struct drain *drain)
{
	_cleanup_(closep) int fd = probe_iterate(drain->probe);
	char buffer[512];
	ssize_t n;

	if (fd < 0)
		return fd;
	do {
		n = read(fd, buffer, sizeof(buffer));
	} while (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)));
	return n < 0 ? -errno : 0;
}

/*
 * Waits until no BPF program uses the old window's map any more. To wait, updates an entry of a map
 * of maps: the kernel completes such an update only after an RCU grace period. No BPF program reads
 * this entry.
 */
static int windows_settle(struct drain *drain)
{
	int fd = probe_window_fd(drain->probe, 0);
	uint32_t slot = 2;

	return bpf_map_update_elem(probe_outer_fd(drain->probe), &slot, &fd, 0);
}

/*
 * Reads the counters of each CPU into drain->cpus. Returns 0 or a negative errno.
 */
static int counts_read(struct drain *drain)
{
	uint32_t zero = 0;

	if (bpf_map_lookup_elem(probe_cpus_fd(drain->probe), &zero, drain->cpus))
		return -errno;
	return 0;
}

static const struct cpu_counts *counts_of(const struct drain *drain, int cpu)
{
	return (const struct cpu_counts *)((const char *)drain->cpus +
					   (size_t)cpu * drain->cpu_size);
}

/*
 * Waits until each wait that had ended before the call has been recorded. A wait is pending from
 * its end until the program that takes the stacks has recorded it. On nearly all CPUs none is, or
 * only for some microseconds; if one stays, waits for an RCU grace period, as windows_settle()
 * does, which takes 20 ms. Returns 0 or a negative errno.
 */
static int pendings_settle(struct drain *drain)
{
	int cpu = 0, i, r;

	for (i = 0; i < PENDING_READS; i++) {
		r = counts_read(drain);
		if (r)
			return r;
		while (cpu < drain->n_cpus && !counts_of(drain, cpu)->pendings)
			cpu++;
		if (cpu == drain->n_cpus)
			return 0;
		usleep(PENDING_RETRY_US);
	}
	return windows_settle(drain);
}

int drain_read_counts(struct drain *drain, struct cpu_counts *sum)
{
	const uint64_t *from;
	uint64_t *to = (uint64_t *)sum;
	size_t i;
	int cpu, r;

	r = counts_read(drain);
	if (r)
		return r;
	memset(sum, 0, sizeof(*sum));
	for (cpu = 0; cpu < drain->n_cpus; cpu++) {
		from = (const uint64_t *)counts_of(drain, cpu);
		for (i = 0; i < sizeof(*sum) / sizeof(*to); i++)
			to[i] += from[i];
	}
	return 0;
}

/*
 * Returns the number of calls that were skipped and for which no recorded call will stand; 0 unless
 * this is the last window of the session. A recorded call stands for itself and for the calls that
 * were skipped before it. When the session ends, no recorded call follows the calls that were
 * skipped last.
 */
static uint64_t calls_left(struct drain *drain, const struct cpu_counts *counts)
{
	bool is_last;

	pthread_mutex_lock(&drain->lock);
	is_last = drain->is_stopping;
	pthread_mutex_unlock(&drain->lock);
	return is_last ? counts->calls_passed + counts->calls_refused : 0;
}

void drain_add_cost(struct drain *drain, const struct cpu_counts *counts)
{
	const struct cpu_counts *before = &drain->run_counts;
	const enum probe_kind kind = probe_kind(drain->probe);
	const uint64_t ns = cost_of_programs(counts, before);
	struct cost_programs cost = { .ns = ns };
	unsigned int i;

	if (!drain->is_always) {
		cost.session_ns = ns;
	} else if (probe_kind_has(kind, PROBE_PICKS)) {
		if (probe_kind_has_waits(kind))
			cost.walks_at_ns = clock_ns(CLOCK_MONOTONIC);
		cost.walk_ns = counts->walk_ns - before->walk_ns;
		cost.sampled = counts->sampled - before->sampled;
		cost.waits = counts->waits - before->waits + cost.sampled;
		for (i = 0; i < BRAKE_STEPS; i++)
			cost.braked += counts->braked[i] - before->braked[i];
	}
	cost_meter_add(drain->cost, &cost);
	drain->run_counts = *counts;
	drain->run_counts_ns = clock_ns(CLOCK_MONOTONIC);
}

/*
 * Sets window->cost to what all of stackd cost since the previous window ended, and to what it was
 * allowed to cost and shed meanwhile.
 */
/*
 * Returns by how much a CPU time has grown. It may seem to be less than before where a child
 * process ended between the reading of its time and of that of all children.
 */
static uint64_t grown_ns(uint64_t now_ns, uint64_t last_ns)
{
	return now_ns > last_ns ? now_ns - last_ns : 0;
}

static void cost_put(struct drain *drain, struct window *window, uint32_t shed)
{
	const uint64_t limit_ppm = cost_meter_limit(drain->cost);
	struct window_cost *cost = &window->cost;
	struct cost_totals now;
	unsigned int i;

	cost_meter_read(drain->cost, &now);
	cost->ns = cost->known_ns = (uint64_t)(now.at_ns - drain->last_cost.at_ns);
	cost->cpu_ns = grown_ns(now.cpu_ns, drain->last_cost.cpu_ns);
	cost->bpf_ns = now.bpf.ns - drain->last_cost.bpf.ns;
	cost->answers_ns = grown_ns(now.answers_ns, drain->last_cost.answers_ns);
	cost->sessions_ns = now.bpf.session_ns - drain->last_cost.bpf.session_ns;
	cost->limited_ns = limit_ppm ? cost->ns : 0;
	cost->budget_ns = (uint64_t)((double)cost->limited_ns * (double)limit_ppm / 1e6);
	cost->beyond_ns = cost_meter_is_beyond(drain->cost) ? cost->ns : 0;
	for (i = 0; i < WINDOW_SHED_N; i++)
		if (shed >> i & 1)
			cost->shed_ns[i] = cost->ns;
	drain->last_cost = now;
}

/*
 * Stores in the window the losses that happened since the previous window was built, and adds them
 * to the sums in drain->stats, which clients can ask for.
 */
static void losses_add(struct drain *drain, struct window *window)
{
	struct openwait_stats openwait;
	struct cpu_counts counts;
	uint64_t missed = probe_missed(drain->probe), unknown = stack_unknown_here();
	unsigned int i;

	openwait_reader_stats(drain->openwait, &openwait);
	if (drain_read_counts(drain, &counts))
		counts = drain->last;
	else
		for (i = 0; i < LOST_N; i++)
			counts.lost[i] += openwait.lost[i];
	counts.lost[LOST_CALL_HELD] += calls_left(drain, &counts);
	for (i = 0; i < LOST_N; i++)
		window->lost[i] += counts.lost[i] - drain->last.lost[i];
	window->lost_ns = counts.lost_ns - drain->last.lost_ns;
	window->switch_ins = counts.switch_ins - drain->last.switch_ins;
	window->sampled = counts.samples - drain->last.samples;
	for (i = 0; i < BRAKE_STEPS; i++)
		window->cost.braked += counts.braked[i] - drain->last.braked[i];
	window->lost[WINDOW_LOST_MISSED_RUNS] = missed - drain->last_missed;
	window->lost[WINDOW_LOST_STACK_FRAMES] = unknown - drain->last_unknown;
	drain->last = counts;
	drain->last_missed = missed;
	drain->last_unknown = unknown;
	drain_add_cost(drain, &counts);
	pthread_mutex_lock(&drain->lock);
	for (i = 0; i < WINDOW_LOST_N; i++)
		drain->stats.lost[i] += window->lost[i];
	drain->stats.counts = counts;
	pthread_mutex_unlock(&drain->lock);
}

/*
 * Writes the start of the window with the number `next`, lead_ns from now, sets *start_ns to it,
 * and returns when it has come. False if this thread was held up meanwhile.
 */
static bool cut_start(struct cut *cut, uint32_t next, int64_t lead_ns, int64_t *start_ns)
{
	const int64_t start = clock_ns(CLOCK_MONOTONIC) + lead_ns;

	__atomic_store_n(&cut->start_ns[next & 1], (uint64_t)start, __ATOMIC_SEQ_CST);
	*start_ns = start;
	if (clock_ns(CLOCK_MONOTONIC) >= start)
		return false;
	while (clock_ns(CLOCK_MONOTONIC) < start)
		;
	return clock_ns(CLOCK_MONOTONIC) - start <= CUT_SLACK_NS;
}

/*
 * Begins a new window: writes its start, then its number (epoch). BPF programs read the clock, the
 * number, and then the starts of both windows. If this thread is held up, it corrects the start
 * before it writes the number. What happens between the start and the writing of the number is
 * counted in the old window, as if it happened at its end (see cut_time() in thread.bpf.h).
 */
int64_t drain_bump_epoch(struct cut *cut)
{
	uint32_t next = cut->epoch + 1;
	int64_t start, late;
	int i = 0;

	while (!cut_start(cut, next, CUT_LEAD_NS << i, &start) && ++i < CUT_ATTEMPTS)
		;
	__atomic_store_n(&cut->epoch, next, __ATOMIC_RELEASE);
	late = clock_ns(CLOCK_MONOTONIC) - start;
	if (late > NS_PER_MS)
		log_info("a cut was held up for up to %" PRId64
			 " us: what began or ended meanwhile "
			 "did so at the end of the window before",
			 late / NS_PER_US);
	return start;
}

static int window_read(struct drain *drain, unsigned int slot)
{
	const struct window_builder *builder = drain->builder;
	int r = 0, s;

	drain->keys = 0;
	if (drain_has_threads(drain))
		r = thread_table_read(drain);
	s = drain_map_read(probe_window_fd(drain->probe, slot), window_builder_key_size(builder),
			   window_builder_value_size(builder), on_row, drain);
	return r ? r : s;
}

/*
 * Stores in the window what the brakes of the CPUs did. `before` has their counters from right
 * before the window began; those in drain->last were read after it ended. So the length is never
 * less than that of any wait in the window, but may be that of a wait shortly before or after it.
 */
static void brake_put(struct drain *drain, struct window *window, const uint64_t *before)
{
	uint32_t steps = 0, i;

	for (i = 0; i < BRAKE_STEPS; i++)
		if (drain->last.braked[i] != before[i])
			steps = i + 1;
	if (!steps)
		return;
	window->cost.brake_below_ns =
		(int64_t)probe_brake_below(drain->probe, steps, (uint64_t)window->sample_below_ns);
	if (window->cost.brake_below_ns > window->sample_below_ns)
		window->sample_below_ns = window->cost.brake_below_ns;
}

int drain_cut_window(struct drain *drain, struct window **out)
{
	struct cut *cut = probe_cut(drain->probe);
	unsigned int slot = cut->epoch & 1;
	int64_t start = (int64_t)cut->start_ns[slot], end;
	const uint64_t below = drain->below_max_ns, below_before = drain->below_before_ns;
	uint64_t braked[BRAKE_STEPS];
	const uint32_t shed = drain->shed;
	struct cpu_counts counts;
	struct window *window;
	bool has_all;
	int r, s;

	memcpy(braked, drain->braked, sizeof(braked));
	if (!drain_read_counts(drain, &counts))
		memcpy(drain->braked, counts.braked, sizeof(drain->braked));
	drain->shed = cost_meter_shed(drain->cost);
	drain->below_before_ns = below;
	drain->below_max_ns = cut->sample_below_ns[!slot] = probe_sample_below(drain->probe);
	end = drain_bump_epoch(cut);
	r = windows_settle(drain);
	if (r)
		return log_err(r, "wait for programs to leave the window");
	if (drain_has_threads(drain)) {
		r = drain_visit_tasks(drain);
		if (r && r != -ENOENT /* the programs are detached already */)
			log_err(r, "visit the tasks for open waits");
	}
	window_builder_begin(drain->builder, start, end, cut->epoch);
	r = window_read(drain, slot);
	if (r)
		log_err(r, "read the window's maps");
	/*
	 * A thread that was read while it was on its CPU may just have ended a wait that spans the
	 * cut. Its record says so, and says which wait that was: see wait_to_open().
	 */
	s = drain_has_threads(drain) ? pendings_settle(drain) : 0;
	if (s)
		log_err(s, "wait for the records of waits that span the cut");
	/*
	 * windows_settle() has waited for all programs that used the old window, so these programs
	 * have committed their records. But records are read in the order in which they were
	 * reserved, and a program that uses the new window may have reserved an earlier record that
	 * it has not committed yet. Wait for that record.
	 */
	has_all = drain_ring_catch_up(drain->ring) && !s;
	window = window_builder_finish(drain->builder);
	if (!window)
		return log_err(-ENOMEM, "build a window");
	/*
	 * Entries that could not be read stay in the BPF map and are read with a later window.
	 * Records that arrived too late are in a later window, too. Both count as losses of this
	 * window.
	 */
	window->lost[WINDOW_LOST_LATE_RECORDS] = !has_all || r;
	window->session = drain->session;
	window->folding = drain->folding;
	/* A wait that was picked before the window began may have been recorded in it. */
	window->sample_below_ns = (int64_t)(below > below_before ? below : below_before);
	real_offset_renew(&drain->real_offset_ns);
	window->real_offset_ns = drain->real_offset_ns;
	window->boot_offset_ns = clock_ns(CLOCK_BOOTTIME) - clock_ns(CLOCK_MONOTONIC);
	losses_add(drain, window);
	brake_put(drain, window, braked);
	cost_put(drain, window, shed | drain->shed);
	pressure_meter_read(drain->pressure, drain->config->pressure_max_units, &window->pressure);
	window_seal(window);
	*out = window;
	return 0;
}
