/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/probe/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/layout.h"
#include "common/base.h"
#include "daemon/base/log.h"
#include "daemon/broker/broker.h"
#include "daemon/host/cpu_list.h"

#include "oncpu.skel.h"

/* Its stacks are few: twice as many as samples at the most. */
enum { RING = 512 << 10, SEEN = 4096 };

struct probe_events {
	size_t n;		 /* possible CPUs */
	struct bpf_link **links; /* by CPU; NULL: not there, or not asked for */
};

static int skeleton_configure(struct probe *probe)
{
	const struct probe_options *options = &probe->options;
	struct oncpu *skel = probe->oncpu;

	skel->rodata->hash_seed = options->hash_seed;
	skel->rodata->with_idle = options->with_idle;
	skel->rodata->ring_wake_bytes = RING / 4;
	skel->rodata->ring_stack_bytes = RING - RING / 4;
	if (options->filter)
		memcpy(&skel->rodata->filter, options->filter, sizeof(*options->filter));
	return probe_prepare(probe, sizeof(struct sample_key), sizeof(struct sample_sums), RING,
			     SEEN);
}

static int event_attach(struct probe *probe, unsigned int cpu)
{
	const uint64_t period = probe->options.period_ns;
	struct broker_sampling what = { .clock = probe->hook, .cpu = cpu };
	struct bpf_link *link;
	int fd, r;

	/*
	 * The software clock samples each CPU, idle or not, in time. Cycles pass while there is
	 * work: the kernel aims at so many samples in a second of it.
	 */
	if (what.clock == BROKER_CYCLES)
		what.frequency_hz = (NS_PER_S + period / 2) / period;
	else
		what.period = period;
	r = broker_open_sampling(probe->options.broker, &what, &fd);
	if (r)
		return r;
	/* The link has the fd from here on. */
	link = bpf_program__attach_perf_event(probe->oncpu->progs.on_sample, fd);
	r = (int)libbpf_get_error(link);
	if (r) {
		close(fd);
		return r;
	}
	probe->events->links[cpu] = link;
	return 0;
}

static bool cpu_is_wanted(const struct probe *probe, unsigned int cpu)
{
	const struct int_list *cpus = probe->options.cpus;
	size_t i;

	for (i = 0; cpus && i < cpus->n; i++)
		if (cpus->v[i] == cpu)
			return true;
	return !cpus || cpus->n == 0;
}

/* An event of a CPU that went stays with it and says nothing more: it goes too. */
static int events_update(struct probe *probe)
{
	_cleanup_(freep) bool *online = calloc(probe->events->n, sizeof(*online));
	unsigned int cpu;
	int r, failed = 0;

	if (!online)
		return -ENOMEM;
	r = cpu_list_read("/sys/devices/system/cpu/online", online, probe->events->n);
	for (cpu = 0; cpu < probe->events->n && r >= 0; cpu++) {
		struct bpf_link **link = &probe->events->links[cpu];

		if (*link && !online[cpu]) {
			bpf_link__destroy(*link);
			*link = NULL;
		}
		if (*link || !online[cpu] || !cpu_is_wanted(probe, cpu))
			continue;
		r = event_attach(probe, cpu);
		if (r && r != -ENODEV /* it went just now */)
			failed = r;
		r = 0;
	}
	return failed ? failed : r < 0 ? r : 0;
}

static void events_close(struct probe_events *events)
{
	size_t i;

	for (i = 0; i < events->n; i++) {
		bpf_link__destroy(events->links[i]);
		events->links[i] = NULL;
	}
}

/* Virtual machines often have no counter. */
static int events_update_cycles(struct probe *probe)
{
	int r;

	probe->hook = BROKER_CYCLES;
	r = events_update(probe);
	if (r != -ENOENT && r != -EOPNOTSUPP)
		return r;
	events_close(probe->events);
	probe->hook = BROKER_CPU_CLOCK;
	probe_fail(probe, "this machine has no counter of cycles: sampled by cpu-clock");
	return events_update(probe);
}

static int events_open(struct probe *probe)
{
	int n = libbpf_num_possible_cpus();

	if (n < 0)
		return n;
	probe->events = calloc(1, sizeof(*probe->events));
	if (!probe->events)
		return -ENOMEM;
	probe->events->links = calloc((size_t)n, sizeof(struct bpf_link *));
	if (!probe->events->links)
		return -ENOMEM;
	probe->events->n = (size_t)n;
	return probe->options.with_cycles ? events_update_cycles(probe) : events_update(probe);
}

static int probe_try(struct probe *probe)
{
	int r;

	probe->oncpu = oncpu__open();
	if (!probe->oncpu)
		return -errno;
	probe->object = probe->oncpu->obj;
	r = skeleton_configure(probe);
	if (!r)
		r = oncpu__load(probe->oncpu);
	if (!r && !probe->oncpu->bss)
		r = -ENOMEM; /* libbpf goes on without its variables mapped */
	if (!r)
		r = probe_finish(probe);
	if (!r)
		r = probe_follow(probe);
	if (!r)
		r = events_open(probe);
	return r;
}

int probe_oncpu_open(struct probe *probe)
{
	int r;

	probe_warning_clear();
	r = probe_try(probe);
	if (r) {
		probe_fail(probe, "perf_event/cpu-clock: %s",
			   probe_warning()[0] ? probe_warning() : strerror(-r));
		if (!probe_warning()[0] && (r == -EACCES || r == -EPERM))
			broker_refusal(probe->reason, sizeof(probe->reason));
		probe_unload(probe);
		return r;
	}
	probe->cut = &probe->oncpu->bss->cut;
	return 0;
}

void probe_oncpu_refresh(struct probe *probe)
{
	int r = probe->events ? events_update(probe) : 0;

	if (r)
		log_err(r, "sample the CPUs that have come");
}

void probe_oncpu_detach(struct probe *probe)
{
	struct probe_events *events = probe->events;

	if (events)
		events_close(events);
	if (events)
		free(events->links);
	free(events);
	probe->events = NULL;
}

void probe_oncpu_close(struct probe *probe)
{
	oncpu__destroy(probe->oncpu);
	probe->oncpu = NULL;
}

void probe_oncpu_status(const struct probe *probe, struct probe_status *out)
{
	out->hook = probe->hook == BROKER_CYCLES ? "perf_event/cycles" : "perf_event/cpu-clock";
	if (probe->hook == BROKER_CPU_CLOCK)
		out->blind[out->n_blind++] = "kernel code that runs with interrupts off";
}
