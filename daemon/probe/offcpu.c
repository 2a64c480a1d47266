/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/probe/switch_hook.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "bpf/layout.h"
#include "common/base.h"

#include "offcpu.skel.h"

/* Of an ad-hoc session: it has less to keep. */
enum { SMALL_RING = 1 << 20, SMALL_SEEN = 16384, SEEN = 32768 };

static uint64_t round_up_power_of_two(uint64_t v)
{
	uint64_t p = 1;

	while (p < v)
		p <<= 1;
	return p;
}

/* Before 6.18 a thread does not say itself that it is throttled (bpf/throttle.bpf.h). */
static bool quota_is_by_queue(void)
{
	return !probe_kernel_has_member("task_struct", "throttled");
}

/* Sizes and switches, before load. */
static int skeleton_configure(struct probe *probe)
{
	const struct probe_options *options = &probe->options;
	struct offcpu *skel = probe->offcpu;
	uint32_t ring =
		options->is_small
			? SMALL_RING
			: (uint32_t)round_up_power_of_two(options->config->offcpu_stack_ring);
	int r;

	skel->rodata->hash_seed = options->hash_seed;
	skel->rodata->min_wait_ns = (uint64_t)options->min_wait_ns;
	skel->rodata->stack_hook = probe->hook;
	skel->rodata->ring_wake_bytes = ring / 4;
	skel->rodata->ring_stack_bytes = ring - ring / 4;
	if (options->filter)
		memcpy(&skel->rodata->filter, options->filter, sizeof(*options->filter));
	r = probe_prepare(probe, sizeof(struct wait_key), sizeof(struct wait_sums), ring,
			  options->is_small ? SMALL_SEEN : SEEN);
	if (!r)
		r = bpf_map__set_max_entries(skel->maps.threads, (uint32_t)probe->max_threads);
	if (!r)
		r = bpf_map__set_max_entries(skel->maps.slots, (uint32_t)probe->max_threads);
	if (!r)
		r = bpf_map__set_max_entries(skel->maps.free_slots, (uint32_t)probe->max_threads);
	if (r)
		return r;
	bpf_program__set_autoload(skel->progs.on_wakeup, quota_is_by_queue());
	bpf_program__set_autoload(skel->progs.on_sched_exit, probe->hook == HOOK_SCHED_EXIT);
	return bpf_program__set_autoload(skel->progs.on_finish_switch,
					 probe->hook == HOOK_FINISH_SWITCH);
}

static size_t threads_size(const struct probe *probe)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (probe->max_threads * sizeof(struct thread) + page - 1) & ~(page - 1);
}

/* All slots are free, the lowest on top, so that few pages are touched. */
static int threads_prepare(struct probe *probe)
{
	int free_fd = bpf_map__fd(probe->offcpu->maps.free_slots), r;
	uint32_t slot = (uint32_t)probe->max_threads;
	void *threads;

	while (slot-- > 0) {
		r = bpf_map_update_elem(free_fd, NULL, &slot, BPF_ANY);
		if (r)
			return r;
	}
	threads = mmap(NULL, threads_size(probe), PROT_READ | PROT_WRITE, MAP_SHARED,
		       bpf_map__fd(probe->offcpu->maps.threads), 0);
	if (threads == MAP_FAILED)
		return -errno;
	probe->threads = threads;
	return 0;
}

/*
 * The order matters: sched_switch comes last, so that no wait is pending before the hook that
 * takes its stack is there, and threads are known to their wakers from the first switch on.
 */
static int probe_attach(struct probe *probe)
{
	struct offcpu *skel = probe->offcpu;
	struct bpf_program *programs[] = {
		skel->progs.on_fork,	   skel->progs.on_exec,	  skel->progs.on_exit,
		skel->progs.on_wakeup_new, skel->progs.on_waking,
	};
	int r = probe_attach_all(probe, programs, ARRAY_SIZE(programs));

	if (!r && bpf_program__autoload(skel->progs.on_wakeup))
		r = probe_attach_one(probe, skel->progs.on_wakeup);
	if (!r)
		r = probe_hook_attach(probe, skel->progs.on_sched_exit,
				      skel->progs.on_finish_switch);
	if (!r)
		r = probe_attach_one(probe, skel->progs.on_switch);
	if (r)
		return r;
	probe->iterator = bpf_program__attach_iter(skel->progs.on_task, NULL);
	r = (int)libbpf_get_error(probe->iterator);
	if (r)
		probe->iterator = NULL;
	return r;
}

void probe_offcpu_close(struct probe *probe)
{
	if (probe->threads)
		munmap(probe->threads, threads_size(probe));
	probe->threads = NULL;
	offcpu__destroy(probe->offcpu);
	probe->offcpu = NULL;
}

static int probe_try(struct probe *probe)
{
	int r;

	probe->offcpu = offcpu__open();
	if (!probe->offcpu)
		return -errno;
	probe->object = probe->offcpu->obj;
	r = skeleton_configure(probe);
	if (!r)
		r = offcpu__load(probe->offcpu);
	if (!r && !probe->offcpu->bss)
		r = -ENOMEM; /* libbpf goes on without its variables mapped */
	if (!r)
		r = probe_finish(probe);
	if (!r)
		r = threads_prepare(probe);
	if (!r)
		r = probe_attach(probe);
	if (r) {
		probe_unload(probe);
		return r;
	}
	probe->cut = &probe->offcpu->bss->cut;
	return 0;
}

int probe_offcpu_open(struct probe *probe)
{
	probe->max_threads = probe->options.config->offcpu_max_threads;
	return probe_hook_choose(probe, probe_try);
}

void probe_offcpu_status(const struct probe *probe, struct probe_status *out)
{
	out->hook = probe_hook_name(probe->hook);
	if (probe->hook == HOOK_SWITCH_OUT)
		out->blind[out->n_blind++] = "switches that sched_switch does not show";
}

struct thread *probe_threads(const struct probe *probe)
{
	return probe->threads;
}

uint64_t probe_max_threads(const struct probe *probe)
{
	return probe->max_threads;
}

void probe_drop_thread(const struct probe *probe, struct thread *thread)
{
	uint32_t slot = thread->slot;
	uint64_t task = thread->task;

	if (bpf_map_delete_elem(bpf_map__fd(probe->offcpu->maps.slots), &task))
		return;
	thread->task = 0;
	thread->uid = 0;
	bpf_map_update_elem(bpf_map__fd(probe->offcpu->maps.free_slots), NULL, &slot, BPF_ANY);
}

int probe_iterate(const struct probe *probe)
{
	int fd;

	if (!probe->iterator)
		return -ENOENT;
	fd = bpf_iter_create(bpf_link__fd(probe->iterator));
	return fd < 0 ? -errno : fd;
}
