/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/probe/switch_hook.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "bpf/layout.h"
#include "common/base.h"
#include "daemon/probe/kernel_btf.h"

#include "offcpu.skel.h"

/*
 * RING: size of the ring buffer in bytes. SEEN: number of entries in the map of stacks that were
 * sent before. The SMALL_ sizes are for sessions that a client started.
 */
enum { SMALL_RING = 1 << 20, SMALL_SEEN = 16384, SEEN = 32768 };

/* Number of entries of the table of threads that are mapped into memory together. */
enum { PIECE_THREADS = 1024 };

_Static_assert(PIECE_THREADS * sizeof(struct thread) % 4096 == 0,
	       "a piece of the table of threads begins at a page");

static uint64_t round_up_power_of_two(uint64_t v)
{
	uint64_t p = 1;

	while (p < v)
		p <<= 1;
	return p;
}

/*
 * When a cgroup has used up its CPU quota, the kernel stops the cgroup's threads. True if this
 * kernel stops a whole run queue at once, as before Linux 6.18; false if it stops each thread
 * separately. See bpf/throttle.bpf.h.
 */
static bool throttled_by_queue(void)
{
	return !kernel_btf_has_member("task_struct", "throttled");
}

/* Gives the maps that have an entry for each thread room for n of them. */
static int threads_resize(const struct offcpu *skel, uint32_t n)
{
	struct bpf_map *const maps[] = { skel->maps.threads, skel->maps.wakers, skel->maps.slots,
					 skel->maps.free_slots };

	for (size_t i = 0; i < ARRAY_SIZE(maps); i++) {
		int r = bpf_map__set_max_entries(maps[i], n);

		if (r)
			return r;
	}
	return 0;
}

static int offcpu_configure(struct probe *probe)
{
	const struct probe_options *options = &probe->options;
	struct offcpu *skel = (struct offcpu *)probe->skeleton;
	const struct probe_sizes sizes = {
		.key = sizeof(struct wait_key),
		.value = sizeof(struct wait_sums),
		.ring_bytes = options->is_small ? SMALL_RING
						: (uint32_t)round_up_power_of_two(
							  options->config->offcpu_stack_ring),
		.n_seen = options->is_small ? SMALL_SEEN : SEEN,
	};
	int r;

	probe->max_threads = options->config->offcpu_max_threads;
	probe_set_variables(probe, skel->rodata, sizes.ring_bytes);
	skel->rodata->min_wait_ns = (uint64_t)options->min_wait_ns;
	skel->rodata->sample_from_ns = probe_sample_from(options);
	skel->rodata->stack_hook = probe->hook;
	r = probe_prepare(probe, &sizes);
	if (r)
		return r;
	r = threads_resize(skel, (uint32_t)probe->max_threads);
	if (r)
		return r;
	r = bpf_program__set_autoload(skel->progs.on_wakeup, throttled_by_queue());
	if (r)
		return r;
	r = probe_choose_move(probe);
	if (r)
		return r;
	return switch_hook_configure(probe, skel->progs.on_sched_exit,
				     skel->progs.on_finish_switch);
}

/* Returns the number of pieces in which the table of threads is mapped into memory. */
static uint64_t thread_pieces(const struct probe *probe)
{
	return (probe->max_threads + PIECE_THREADS - 1) / PIECE_THREADS;
}

/* Returns the number of entries of the piece that begins with entry number `first`. */
static uint64_t piece_threads(const struct probe *probe, uint64_t first)
{
	uint64_t left = probe->max_threads - first;

	return left < PIECE_THREADS ? left : PIECE_THREADS;
}

/*
 * Marks all slots of the table of threads as free: pushes their numbers to the stack of free slots,
 * the highest number first. The BPF programs then take the lowest numbers first, so that they touch
 * few pages of the table.
 */
static int threads_prepare(struct probe *probe)
{
	const struct offcpu *skel = (const struct offcpu *)probe->skeleton;
	int free_fd = bpf_map__fd(skel->maps.free_slots), r;
	uint32_t slot = (uint32_t)probe->max_threads;

	while (slot-- > 0) {
		r = bpf_map_update_elem(free_fd, NULL, &slot, BPF_ANY);
		if (r)
			return r;
	}
	probe->threads = calloc(thread_pieces(probe), sizeof(*probe->threads));
	return probe->threads ? 0 : -ENOMEM;
}

/*
 * Attaches the BPF program on sched_switch last, because waits begin there. The hook that takes the
 * stack of a wait, and the programs that see who wakes a thread, must be attached before the first
 * wait begins.
 */
static int offcpu_attach(struct probe *probe)
{
	const struct offcpu *skel = (const struct offcpu *)probe->skeleton;
	struct bpf_program *programs[] = {
		skel->progs.on_fork,	   skel->progs.on_exec,	  skel->progs.on_exit,
		skel->progs.on_wakeup_new, skel->progs.on_waking,
	};
	int r = threads_prepare(probe);

	if (r)
		return r;
	r = probe_attach_all(probe, programs, ARRAY_SIZE(programs));
	if (r)
		return r;
	if (bpf_program__autoload(skel->progs.on_wakeup)) {
		r = probe_attach_one(probe, skel->progs.on_wakeup);
		if (r)
			return r;
	}
	if (bpf_program__autoload(skel->progs.on_move)) {
		r = probe_attach_one(probe, skel->progs.on_move);
		if (r)
			return r;
	}
	r = switch_hook_attach(probe, skel->progs.on_sched_exit, skel->progs.on_finish_switch);
	if (r)
		return r;
	r = probe_attach_one(probe, skel->progs.on_switch);
	if (r)
		return r;
	probe->iterator = bpf_program__attach_iter(skel->progs.on_task, NULL);
	r = (int)libbpf_get_error(probe->iterator);
	if (r)
		probe->iterator = NULL;
	return r;
}

static void offcpu_close(struct probe *probe)
{
	for (uint64_t i = 0; probe->threads && i < thread_pieces(probe); i++)
		if (probe->threads[i])
			munmap(probe->threads[i],
			       piece_threads(probe, i * PIECE_THREADS) * sizeof(struct thread));
	free(TAKE(probe->threads));
}

static void offcpu_blind(const struct probe *probe, struct probe_status *out)
{
	if (probe->hook == HOOK_SWITCH_OUT)
		out->blind[out->n_blind++] = "switches that sched_switch does not show";
}

static bool offcpu_is_enabled(const struct config *config)
{
	return config->offcpu_enabled;
}

static int64_t offcpu_min_wait(const struct config *config)
{
	return config->offcpu_min_wait_ns;
}

static int64_t offcpu_sample_below(const struct config *config)
{
	return config->offcpu_sample_below_ns;
}

static uint64_t offcpu_keys_max(const struct probe_options *options)
{
	return options->is_small ? PROBE_SMALL_KEYS : options->config->offcpu_max_keys;
}

PROBE_SKELETON(offcpu)

const struct probe_ops probe_offcpu_ops = {
	.is_enabled = offcpu_is_enabled,
	.min_wait = offcpu_min_wait,
	.sample_below = offcpu_sample_below,
	.keys_max = offcpu_keys_max,
	.is_essential = true,
	.open = offcpu_open,
	.configure = offcpu_configure,
	.cut = offcpu_cut,
	.attach = offcpu_attach,
	.choose = switch_hook_choose,
	.hook = switch_hook_name,
	.blind = offcpu_blind,
	.close = offcpu_close,
};

bool probe_has_threads(const struct probe *probe)
{
	return probe->threads != NULL;
}

int probe_map_threads(struct probe *probe, uint64_t first, struct thread **out)
{
	const struct offcpu *skel = (const struct offcpu *)probe->skeleton;
	struct thread **piece;
	uint64_t n;

	if (first >= probe->max_threads)
		return 0;
	piece = &probe->threads[first / PIECE_THREADS];
	n = piece_threads(probe, first);
	if (!*piece) {
		void *memory = mmap(NULL, n * sizeof(struct thread), PROT_READ | PROT_WRITE,
				    MAP_SHARED, bpf_map__fd(skel->maps.threads),
				    (off_t)(first * sizeof(struct thread)));

		if (memory == MAP_FAILED)
			return -errno;
		*piece = memory;
	}
	*out = *piece;
	return (int)n;
}

void probe_drop_thread(const struct probe *probe, struct thread *thread)
{
	const struct offcpu *skel = (const struct offcpu *)probe->skeleton;
	uint32_t slot = thread->slot;
	uint64_t task = thread->task;

	if (bpf_map_delete_elem(bpf_map__fd(skel->maps.slots), &task))
		return;
	thread->task = 0;
	thread->uid = 0;
	bpf_map_update_elem(bpf_map__fd(skel->maps.free_slots), NULL, &slot, BPF_ANY);
}

int probe_iterate(const struct probe *probe)
{
	int fd;

	if (!probe->iterator)
		return -ENOENT;
	fd = bpf_iter_create(bpf_link__fd(probe->iterator));
	return fd < 0 ? -errno : fd;
}
