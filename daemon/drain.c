/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/drain.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "bpf/shared.h"
#include "daemon/assembler.h"
#include "daemon/log.h"
#include "proto/base.h"

/* The ring is looked at this often; programs wake the drain earlier when it fills. */
#define TICK_NS (100 * NS_PER_MS)

/* Stacks nobody references are kept this long, so that a rare one is not resolved each time. */
#define STACK_KEEP_NS (60 * NS_PER_S)

enum {
	BATCH = 2048, /* members a read of a map; grows when a bucket holds more */
	BATCH_MAX = 65536,
	REREADS = 8,	/* of a thread that changes while it is copied */
	CLOCK_READINGS = 5,
	STALE_CUTS = 4, /* a thread no iterator saw for so many cuts has no task */
};

struct batch {
	void *keys;
	void *values;
	uint32_t room;
	uint32_t n;
};

struct drain {
	pthread_t thread;
	pthread_mutex_t lock; /* guards what follows, up to stats */
	pthread_cond_t cut_done;
	bool is_stopping;
	bool cut_wanted;
	uint64_t seq;
	int64_t last_cut_ns;
	struct drain_stats stats;

	int wake_fd;
	struct probe *probe;
	struct process_table *processes;
	struct stack_table *stacks;
	struct resolver *resolver;
	struct history *history;
	struct assembler *assembler;
	struct ring_buffer *ring;
	struct cpu_counts *cpus; /* one a possible CPU, as read */
	size_t cpu_size;	 /* of a value of the map, per CPU */
	int n_cpus;
	struct cpu_counts last;
	uint64_t threads; /* of the cut in progress */
	uint64_t keys;
	uint64_t stale; /* since the start */
	uint64_t last_missed;
	uint64_t last_unknown;
	int64_t real_offset_ns; /* realtime less monotonic */
	int64_t length_ns;
	int64_t min_length_ns;
	int64_t next_ns;
};

static void handle_stack(struct drain *drain, const struct record_stack *record)
{
	struct process_id id = {
		.pid = (int32_t)record->tgid,
		.exec_gen = record->exec_gen,
		.start_boot_ns = record->leader_boot_ns,
	};
	struct process *process = NULL;
	struct stack *stack;
	bool is_new;

	if (record->frames > STACK_DEPTH)
		return;
	if (record->tgid) {
		process = process_table_see(drain->processes, &id, false, NULL);
		if (!process)
			return;
	}
	stack = stack_table_put(drain->stacks, record->id, process, (const uint64_t *)record->ip,
				record->frames, &is_new);
	process_unref(process);
	if (stack && is_new && resolver_add_stack(drain->resolver, stack))
		log_err(-ENOMEM, "queue a stack for its names");
}

static void handle_process(struct drain *drain, const struct record_process *record)
{
	struct process_id id = {
		.pid = (int32_t)record->tgid,
		.exec_gen = record->exec_gen,
		.start_boot_ns = record->leader_boot_ns,
	};
	struct process_id parent = {
		.pid = (int32_t)record->parent_tgid,
		.exec_gen = record->parent_exec_gen,
		.start_boot_ns = record->parent_boot_ns,
	};

	switch (record->head.type) {
	case RECORD_FORK:
		if (!record->is_kernel)
			process_table_note_fork(drain->processes, &id, &parent, record->comm);
		break;
	case RECORD_EXEC:
		process_table_note_exec(drain->processes, &id, record->comm);
		assembler_add_exec(drain->assembler, record);
		break;
	default:
		process_table_note_exit(drain->processes, &id);
	}
}

static int on_record(void *context, void *data, size_t size)
{
	const struct record_head *head = data;
	struct drain *drain = context;

	if (size < sizeof(*head))
		return 0;
	switch (head->type) {
	case RECORD_STACK:
		handle_stack(drain, data);
		break;
	case RECORD_WAIT:
		assembler_add_wait(drain->assembler, data);
		break;
	case RECORD_THREAD_END:
		assembler_add_thread_end(drain->assembler, data);
		break;
	case RECORD_FORK:
	case RECORD_EXEC:
	case RECORD_EXIT:
		handle_process(drain, data);
		break;
	}
	return 0;
}

static void batch_fini(struct batch *batch)
{
	free(batch->keys);
	free(batch->values);
}

static int batch_resize(struct batch *batch, uint32_t room, size_t key_size, size_t value_size)
{
	void *keys = reallocarray(batch->keys, room, key_size), *values;

	if (!keys)
		return -ENOMEM;
	batch->keys = keys;
	values = reallocarray(batch->values, room, value_size);
	if (!values)
		return -ENOMEM;
	batch->values = values;
	batch->room = room;
	return 0;
}

typedef void (*batch_entry_fn)(struct drain *drain, const void *key, const void *value);

/*
 * Empties a hash, a batch of buckets at a time. A bucket that does not fit answers ENOSPC: more
 * room, and again.
 */
static int map_read(struct drain *drain, int fd, size_t key_size, size_t value_size,
                    batch_entry_fn entry_fn)
{
	_cleanup_(batch_fini) struct batch batch = {};
	uint64_t in = 0, out = 0;
	bool is_first = true;
	uint32_t i;
	int r = batch_resize(&batch, BATCH, key_size, value_size), end;

	while (!r) {
		batch.n = batch.room;
		end = bpf_map_lookup_and_delete_batch(fd, is_first ? NULL : &in, &out, batch.keys,
		                                      batch.values, &batch.n, NULL);
		if (end == -ENOSPC && batch.room < BATCH_MAX) {
			r = batch_resize(&batch, batch.room * 2, key_size, value_size);
			continue;
		}
		if (end && end != -ENOENT)
			return end;
		for (i = 0; i < batch.n; i++)
			entry_fn(drain, (char *)batch.keys + i * key_size,
			         (char *)batch.values + i * value_size);
		if (end == -ENOENT)
			return 0;
		in = out;
		is_first = false;
	}
	return r;
}

static void on_row(struct drain *drain, const void *key, const void *value)
{
	drain->keys++;
	assembler_add_row(drain->assembler, key, value);
}

/* A whole copy of a slot: the writer bumps seq_begin before and seq_done after it writes. */
static bool thread_copy(const struct thread *slot, struct thread *copy)
{
	uint64_t done;
	int i;

	for (i = 0; i < REREADS; i++) {
		done = __atomic_load_n(&slot->seq_done, __ATOMIC_ACQUIRE);
		memcpy(copy, slot, sizeof(*copy));
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&slot->seq_begin, __ATOMIC_RELAXED) == done)
			return copy->uid != 0;
	}
	/* It changes all the time: what is torn is off by one switch. */
	return copy->uid != 0;
}

/* No iterator saw it for some cuts (some hosts hide threads from it), and it is not in /proc. */
static bool thread_is_stale(const struct thread *thread, uint32_t epoch)
{
	char path[64];

	if (epoch - thread->seen_cut <= STALE_CUTS || thread->status == THREAD_ON_CPU)
		return false;
	snprintf(path, sizeof(path), "/proc/%u/task/%u", thread->tgid, thread->tid);
	return access(path, F_OK) != 0;
}

static void threads_read(struct drain *drain)
{
	struct thread *slots = probe_threads(drain->probe), thread;
	uint64_t i, n = probe_max_threads(drain->probe);
	uint32_t epoch = probe_cut(drain->probe)->epoch;

	drain->threads = 0;
	for (i = 0; i < n; i++) {
		if (!slots[i].uid || !thread_copy(&slots[i], &thread))
			continue;
		drain->threads++;
		if (thread_is_stale(&thread, epoch)) {
			/* Its end was missed. The address may be another task's soon. */
			probe_drop_thread(drain->probe, &slots[i]);
			drain->stale++;
			continue;
		}
		assembler_add_thread(drain->assembler, &thread);
	}
}

/* The task iterator seeds threads and takes the kernel stacks of open waits. */
static int tasks_visit(struct drain *drain)
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

/* Returns when no program that runs still uses the window before (an RCU grace period). */
static int windows_settle(struct drain *drain)
{
	int fd = probe_window_fd(drain->probe, 0);
	uint32_t slot = 2;

	return bpf_map_update_elem(probe_outer_fd(drain->probe), &slot, &fd, 0);
}

static int counts_read(struct drain *drain, struct cpu_counts *sum)
{
	const uint64_t *from;
	uint64_t *to = (uint64_t *)sum;
	uint32_t zero = 0;
	size_t i;
	int cpu;

	if (bpf_map_lookup_elem(probe_cpus_fd(drain->probe), &zero, drain->cpus))
		return -errno;
	memset(sum, 0, sizeof(*sum));
	for (cpu = 0; cpu < drain->n_cpus; cpu++) {
		from = (const uint64_t *)((const char *)drain->cpus +
					  (size_t)cpu * drain->cpu_size);
		for (i = 0; i < sizeof(*sum) / sizeof(*to); i++)
			to[i] += from[i];
	}
	return 0;
}

/* What was lost since the last cut goes into the window, and into the sums for `status`. */
static void losses_add(struct drain *drain, struct window *window)
{
	struct stack_table_stats stacks;
	struct cpu_counts counts;
	uint64_t missed = probe_missed(drain->probe);
	unsigned int i;

	if (counts_read(drain, &counts))
		counts = drain->last;
	for (i = 0; i < LOST_N; i++)
		window->lost[i] += counts.lost[i] - drain->last.lost[i];
	window->lost_ns = counts.lost_ns - drain->last.lost_ns;
	window->switch_ins = counts.switch_ins - drain->last.switch_ins;
	window->lost[WINDOW_LOST_MISSED_RUNS] = missed - drain->last_missed;
	stack_table_stats(drain->stacks, &stacks);
	window->lost[WINDOW_LOST_STACK_FRAMES] = stacks.unknown - drain->last_unknown;
	drain->last = counts;
	drain->last_missed = missed;
	drain->last_unknown = stacks.unknown;
	pthread_mutex_lock(&drain->lock);
	for (i = 0; i < WINDOW_LOST_N; i++)
		drain->stats.lost[i] += window->lost[i];
	drain->stats.counts = counts;
	pthread_mutex_unlock(&drain->lock);
}

/* The new window begins here: its start first, then the word that programs read once. */
static int64_t epoch_bump(struct cut *cut)
{
	uint32_t next = cut->epoch + 1;
	int64_t now = clock_ns(CLOCK_MONOTONIC);

	__atomic_store_n(&cut->start_ns[next & 1], (uint64_t)now, __ATOMIC_RELEASE);
	__atomic_store_n(&cut->epoch, next, __ATOMIC_RELEASE);
	return now;
}

static int window_read(struct drain *drain, unsigned int slot)
{
	drain->keys = 0;
	threads_read(drain);
	return map_read(drain, probe_window_fd(drain->probe, slot), sizeof(struct wait_key),
	                sizeof(struct wait_sums), on_row);
}

/* Of some readings the one least disturbed between its two clocks. */
static int64_t real_offset_read(void)
{
	int64_t before, real, after, offset = 0, least = INT64_MAX;
	int i;

	for (i = 0; i < CLOCK_READINGS; i++) {
		before = clock_ns(CLOCK_MONOTONIC);
		real = clock_ns(CLOCK_REALTIME);
		after = clock_ns(CLOCK_MONOTONIC);
		if (after - before >= least)
			continue;
		least = after - before;
		offset = real - before - least / 2;
	}
	return offset;
}

/*
 * Kept while the clocks agree to a millisecond, so that a window begins where the one before ended
 * in either clock; a step of the realtime clock shows in the windows after it.
 */
static int64_t real_offset(struct drain *drain)
{
	int64_t offset = real_offset_read(), change = offset - drain->real_offset_ns;

	if (change > NS_PER_MS || change < -NS_PER_MS)
		drain->real_offset_ns = offset;
	return drain->real_offset_ns;
}

static int cut_window(struct drain *drain, struct window **out)
{
	struct cut *cut = probe_cut(drain->probe);
	unsigned int slot = cut->epoch & 1;
	int64_t start = (int64_t)cut->start_ns[slot], end = epoch_bump(cut);
	struct window *window;
	int r, visited;

	r = windows_settle(drain);
	if (r)
		return log_err(r, "wait for programs to leave the window");
	visited = tasks_visit(drain);
	if (visited && visited != -ENOENT /* detached already */)
		log_err(visited, "visit the tasks for open waits");
	assembler_begin(drain->assembler, start, end, cut->epoch);
	r = window_read(drain, slot);
	if (r)
		log_err(r, "read the window's map");
	ring_buffer__consume(drain->ring);
	window = assembler_finish(drain->assembler);
	if (!window)
		return log_err(-ENOMEM, "assemble a window");
	window->real_offset_ns = real_offset(drain);
	losses_add(drain, window);
	window_seal(window);
	*out = window;
	return 0;
}

static void drain_cut_now(struct drain *drain)
{
	int64_t begin = clock_ns(CLOCK_MONOTONIC), took;
	struct window *window = NULL;
	int r = cut_window(drain, &window);

	took = clock_ns(CLOCK_MONOTONIC) - begin;
	pthread_mutex_lock(&drain->lock);
	drain->last_cut_ns = begin;
	drain->cut_wanted = false;
	drain->stats.cuts++;
	drain->stats.cut_ns = took;
	drain->stats.last_ns = begin + took;
	drain->stats.threads = drain->threads;
	drain->stats.stale = drain->stale;
	if (drain->keys > drain->stats.keys_max)
		drain->stats.keys_max = drain->keys;
	if (took > drain->stats.cut_max_ns)
		drain->stats.cut_max_ns = took;
	if (!r)
		window->seq = ++drain->seq;
	pthread_mutex_unlock(&drain->lock);
	if (!r)
		resolver_add_window(drain->resolver, TAKE(window));
	pthread_mutex_lock(&drain->lock);
	pthread_cond_broadcast(&drain->cut_done);
	pthread_mutex_unlock(&drain->lock);
	stack_table_sweep(drain->stacks, STACK_KEEP_NS);
	process_table_sweep(drain->processes, STACK_KEEP_NS);
	drain->next_ns = begin + drain->length_ns;
}

/* Sleeps until the ring wants emptying, a cut is due or asked for. */
static bool drain_wait(struct drain *drain)
{
	struct pollfd fds[] = {
		{ .fd = ring_buffer__epoll_fd(drain->ring), .events = POLLIN },
		{ .fd = drain->wake_fd, .events = POLLIN },
	};
	int64_t now = clock_ns(CLOCK_MONOTONIC), until = now + TICK_NS;
	uint64_t count;
	bool stop;

	if (drain->next_ns < until)
		until = drain->next_ns;
	if (until > now)
		poll(fds, ARRAY_SIZE(fds), (int)((until - now + NS_PER_MS - 1) / NS_PER_MS));
	if (fds[1].revents & POLLIN && read(drain->wake_fd, &count, sizeof(count)) < 0)
		log_err(-errno, "read the drain's wake-up");
	pthread_mutex_lock(&drain->lock);
	stop = drain->is_stopping;
	if (drain->cut_wanted)
		drain->next_ns = 0;
	pthread_mutex_unlock(&drain->lock);
	return !stop;
}

static void *drain_run(void *data)
{
	struct drain *drain = data;

	while (drain_wait(drain)) {
		ring_buffer__consume(drain->ring);
		if (clock_ns(CLOCK_MONOTONIC) >= drain->next_ns)
			drain_cut_now(drain);
	}
	drain_cut_now(drain);
	return NULL;
}

static int drain_open(struct drain *drain, const struct config *config)
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
	r = assembler_new(drain->processes, drain->stacks, config->offcpu_min_wait_ns,
			  &drain->assembler);
	if (r)
		return r;
	drain->ring = ring_buffer__new(probe_ring_fd(drain->probe), on_record, drain, NULL);
	return drain->ring ? 0 : -errno;
}

static struct drain *drain_free(struct drain *drain)
{
	ring_buffer__free(drain->ring);
	assembler_free(drain->assembler);
	closep(&drain->wake_fd);
	free(drain->cpus);
	pthread_cond_destroy(&drain->cut_done);
	pthread_mutex_destroy(&drain->lock);
	free(drain);
	return NULL;
}

static struct drain *drain_new(void)
{
	struct drain *drain = calloc(1, sizeof(*drain));
	pthread_condattr_t attr;

	if (!drain)
		return NULL;
	drain->wake_fd = -1;
	pthread_mutex_init(&drain->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&drain->cut_done, &attr);
	pthread_condattr_destroy(&attr);
	return drain;
}

int drain_start(const struct config *config, struct probe *probe, struct process_table *processes,
		struct stack_table *stacks, struct resolver *resolver, struct history *history,
		struct drain **out)
{
	struct drain *drain = drain_new();
	int r;

	if (!drain)
		return -ENOMEM;
	drain->probe = probe;
	drain->processes = processes;
	drain->stacks = stacks;
	drain->resolver = resolver;
	drain->history = history;
	drain->length_ns = config->window_length_ns;
	drain->min_length_ns = config->window_min_length_ns;
	drain->last_cut_ns = clock_ns(CLOCK_MONOTONIC);
	drain->next_ns = drain->last_cut_ns + drain->length_ns;
	drain->stats.last_ns = drain->last_cut_ns;
	r = drain_open(drain, config);
	if (!r) {
		epoch_bump(probe_cut(probe));
		/* The iterator needs this thread's own arrival on a CPU: let it arrive once. */
		usleep(1000);
		r = tasks_visit(drain);
	}
	if (!r)
		r = -pthread_create(&drain->thread, NULL, drain_run, drain);
	if (r) {
		drain_free(drain);
		return r;
	}
	pthread_setname_np(drain->thread, "drain");
	*out = drain;
	return 0;
}

static void drain_wake(struct drain *drain)
{
	uint64_t one = 1;

	if (write(drain->wake_fd, &one, sizeof(one)) < 0)
		log_err(-errno, "wake the drain");
}

struct drain *drain_stop(struct drain *drain)
{
	if (!drain)
		return NULL;
	pthread_mutex_lock(&drain->lock);
	drain->is_stopping = true;
	pthread_mutex_unlock(&drain->lock);
	drain_wake(drain);
	pthread_join(drain->thread, NULL);
	return drain_free(drain);
}

int drain_cut(struct drain *drain, int64_t timeout_ns, uint64_t *seq_out)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC), end = now + timeout_ns;
	struct timespec deadline = { .tv_sec = end / NS_PER_S, .tv_nsec = end % NS_PER_S };
	uint64_t cuts;
	int r = 0;

	pthread_mutex_lock(&drain->lock);
	/* The very first question need not wait: there is nothing else to answer it with. */
	if (now - drain->last_cut_ns >= drain->min_length_ns || drain->seq == 0) {
		cuts = drain->stats.cuts;
		drain->cut_wanted = true;
		drain_wake(drain);
		while (drain->stats.cuts == cuts && !r)
			r = pthread_cond_timedwait(&drain->cut_done, &drain->lock, &deadline);
	}
	*seq_out = drain->seq;
	pthread_mutex_unlock(&drain->lock);
	return -r;
}

void drain_stats(struct drain *drain, struct drain_stats *out)
{
	pthread_mutex_lock(&drain->lock);
	*out = drain->stats;
	pthread_mutex_unlock(&drain->lock);
}
