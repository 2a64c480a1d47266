/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/probe/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bpf/layout.h"
#include "common/base.h"
#include "daemon/base/log.h"
#include "daemon/broker/broker.h"
#include "daemon/host/cpu_list.h"
#include "daemon/probe/libbpf_log.h"

#include "oncpu.skel.h"

/*
 * RING: size of the ring buffer in bytes; it may be small, because a sample has at most two new
 * stacks. SEEN: number of entries in the map of stacks that were sent before. MAX_SAMPLE_KEYS: in a
 * session of a client, the maximum number of entries in the map of one window.
 */
enum { RING = 512 << 10, SEEN = 4096, MAX_SAMPLE_KEYS = 65536 };

struct perf_links {
	size_t n;		 /* number of possible CPUs */
	struct bpf_link **links; /* links[i] is the perf event of CPU i; NULL: the CPU is offline or
				    not in the filter */
};

static int oncpu_configure(struct probe *probe)
{
	struct oncpu *skel = (struct oncpu *)probe->skeleton;
	const struct probe_sizes sizes = { sizeof(struct sample_key), sizeof(struct sample_sums),
					   RING, SEEN };

	probe_set_variables(probe, skel->rodata, RING);
	skel->rodata->with_idle = probe->options.with_idle;
	return probe_prepare(probe, &sizes);
}

static int event_attach(struct probe *probe, unsigned int cpu)
{
	const struct oncpu *skel = (const struct oncpu *)probe->skeleton;
	const uint64_t period = probe->options.period_ns;
	struct broker_sampling what = { .clock = probe->hook, .cpu = cpu };
	struct bpf_link *link;
	int fd, r;

	/*
	 * With the hardware counter of cycles, ask the kernel for a frequency: a number of samples
	 * for each second in which the CPU is busy, because the counter stands still while the CPU
	 * is idle. With the software clock, ask for one sample per period: this clock also runs
	 * while the CPU is idle.
	 */
	if (what.clock == BROKER_CYCLES)
		what.frequency_hz = (NS_PER_S + period / 2) / period;
	else
		what.period = period;
	r = broker_open_sampling(probe->options.broker, &what, &fd);
	if (r)
		return r;
	/* If this succeeds, the link owns the fd. */
	link = bpf_program__attach_perf_event(skel->progs.on_sample, fd);
	r = (int)libbpf_get_error(link);
	if (r) {
		close(fd);
		return r;
	}
	probe->perf_links->links[cpu] = link;
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

/*
 * Opens perf events on CPUs that have come online. Closes the perf events of CPUs that have gone
 * offline, because they would not fire again.
 */
static int events_update(struct probe *probe)
{
	_cleanup_(freep) bool *online = calloc(probe->perf_links->n, sizeof(*online));
	unsigned int cpu;
	int r, failed = 0;

	if (!online)
		return -ENOMEM;
	r = cpu_list_read("/sys/devices/system/cpu/online", online, probe->perf_links->n);
	for (cpu = 0; cpu < probe->perf_links->n && r >= 0; cpu++) {
		struct bpf_link **link = &probe->perf_links->links[cpu];

		if (*link && !online[cpu]) {
			bpf_link__destroy(*link);
			*link = NULL;
		}
		if (*link || !online[cpu] || !cpu_is_wanted(probe, cpu))
			continue;
		r = event_attach(probe, cpu);
		if (r && r != -ENODEV /* the CPU has just gone offline */)
			failed = r;
		r = 0;
	}
	return failed ? failed : r < 0 ? r : 0;
}

static void events_close(struct perf_links *events)
{
	size_t i;

	for (i = 0; i < events->n; i++) {
		bpf_link__destroy(events->links[i]);
		events->links[i] = NULL;
	}
}

/*
 * Takes samples by CPU cycles. If the machine has no counter of cycles, like many virtual machines,
 * takes samples by time.
 */
static int events_update_cycles(struct probe *probe)
{
	int r;

	probe->hook = BROKER_CYCLES;
	r = events_update(probe);
	if (r != -ENOENT && r != -EOPNOTSUPP)
		return r;
	events_close(probe->perf_links);
	probe->hook = BROKER_CPU_CLOCK;
	r = events_update(probe);
	if (!r)
		probe_fail(probe,
			   "this machine has no counter of cycles: samples are taken by cpu-clock");
	return r;
}

static int events_open(struct probe *probe)
{
	int n = libbpf_num_possible_cpus();

	if (n < 0)
		return n;
	probe->perf_links = calloc(1, sizeof(*probe->perf_links));
	if (!probe->perf_links)
		return -ENOMEM;
	probe->perf_links->links = calloc((size_t)n, sizeof(struct bpf_link *));
	if (!probe->perf_links->links)
		return -ENOMEM;
	probe->perf_links->n = (size_t)n;
	return probe->options.with_cycles ? events_update_cycles(probe) : events_update(probe);
}

static int oncpu_attach(struct probe *probe)
{
	int r = probe_follow(probe);

	if (r)
		return r;
	r = events_open(probe);
	if (r && !libbpf_log_warning()[0])
		probe_fail_if_refused(probe, r);
	return r;
}

static void oncpu_refresh(struct probe *probe)
{
	int r = probe->perf_links ? events_update(probe) : 0;

	if (r)
		log_err(r, "sample the CPUs that have come online");
}

static void oncpu_detach(struct probe *probe)
{
	struct perf_links *events = probe->perf_links;

	if (!events)
		return;
	events_close(events);
	free(events->links);
	free(events);
	probe->perf_links = NULL;
}

static const char *oncpu_hook(const struct probe *probe)
{
	return probe->hook == BROKER_CYCLES ? "perf_event/cycles" : "perf_event/cpu-clock";
}

static void oncpu_blind(const struct probe *probe, struct probe_status *out)
{
	if (probe->hook == BROKER_CPU_CLOCK)
		out->blind[out->n_blind++] = "kernel code that runs with interrupts off";
}

static bool oncpu_is_enabled(const struct config *config)
{
	return config->oncpu_enabled;
}

/*
 * Returns the maximum number of entries in the BPF map of one window. A client's session may sample
 * faster than the settings say, so it gets an entry for each sample, up to MAX_SAMPLE_KEYS.
 */
static uint64_t oncpu_keys_max(const struct probe_options *options)
{
	const struct config *config = options->config;
	uint64_t n = (uint64_t)config->window_length_ns / options->period_ns;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (!options->is_small)
		return config->oncpu_max_keys;
	n *= cpus > 0 ? (uint64_t)cpus : 1;
	if (n > MAX_SAMPLE_KEYS)
		return MAX_SAMPLE_KEYS;
	return n > config->oncpu_max_keys ? n : config->oncpu_max_keys;
}

PROBE_SKELETON(oncpu)

const struct probe_ops probe_oncpu_ops = {
	.is_enabled = oncpu_is_enabled,
	.keys_max = oncpu_keys_max,
	.open = oncpu_open,
	.configure = oncpu_configure,
	.cut = oncpu_cut,
	.attach = oncpu_attach,
	.hook = oncpu_hook,
	.blind = oncpu_blind,
	.refresh = oncpu_refresh,
	.detach = oncpu_detach,
};
