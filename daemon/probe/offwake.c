/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/probe/switch_hook.h"

#include "bpf/layout.h"
#include "common/base.h"
#include "daemon/probe/libbpf_log.h"

#include "offwake.skel.h"

/*
 * RING: size in bytes of the ring buffer, which has stacks of waits and of wakers. SEEN: number of
 * entries in the map of stacks that were sent before.
 */
enum { RING = 1 << 20, SEEN = 16384 };

static int offwake_configure(struct probe *probe)
{
	struct offwake *skel = (struct offwake *)probe->skeleton;
	const struct probe_sizes sizes = { sizeof(struct wake_key), sizeof(struct wake_sums), RING,
					   SEEN };
	int r;

	probe_set_variables(probe, skel->rodata, RING);
	skel->rodata->min_wait_ns = (uint64_t)probe->options.min_wait_ns;
	skel->rodata->sample_from_ns = probe_sample_from(&probe->options);
	skel->rodata->stack_hook = probe->hook;
	r = probe_prepare(probe, &sizes);
	if (r)
		return r;
	r = bpf_map__set_max_entries(skel->maps.sleepers,
				     (uint32_t)probe->options.config->offcpu_max_threads);
	if (r)
		return r;
	return switch_hook_configure(probe, skel->progs.on_sched_exit,
				     skel->progs.on_finish_switch);
}

/*
 * Attaches the programs that note when an interrupt begins and ends on a CPU: first the programs
 * for the ends, then those for the beginnings. In the other order an end could be missed, and the
 * interrupt would seem to run for ever. is_optional: the interrupt exists on some machines only.
 */
static int marks_attach(struct probe *probe)
{
	const struct offwake *skel = (const struct offwake *)probe->skeleton;
	const struct {
		struct bpf_program *program;
		const char *tracepoint;
		bool is_optional;
	} marks[] = {
		{ skel->progs.on_hrtimer_exit, "hrtimer_expire_exit", false },
		{ skel->progs.on_timer_exit, "timer_expire_exit", false },
		{ skel->progs.on_softirq_exit, "softirq_exit", false },
		{ skel->progs.on_irq_exit, "irq_handler_exit", false },
		{ skel->progs.on_irq_exit, "irq_work_exit", true },
		{ skel->progs.on_irq_exit, "call_function_exit", true },
		{ skel->progs.on_irq_exit, "call_function_single_exit", true },
		{ skel->progs.on_hrtimer_entry, "hrtimer_expire_entry", false },
		{ skel->progs.on_timer_entry, "timer_expire_entry", false },
		{ skel->progs.on_softirq_entry, "softirq_entry", false },
		{ skel->progs.on_softirq_raise, "softirq_raise", false },
		{ skel->progs.on_irq_entry, "irq_handler_entry", false },
		{ skel->progs.on_irq_entry, "irq_work_entry", true },
		{ skel->progs.on_irq_entry, "call_function_entry", true },
		{ skel->progs.on_irq_entry, "call_function_single_entry", true },
	};
	size_t i;
	int r;

	for (i = 0; i < ARRAY_SIZE(marks); i++) {
		r = probe_attach_raw(probe, marks[i].program, marks[i].tracepoint);
		if (r && !marks[i].is_optional)
			return r;
	}
	libbpf_log_clear();
	return 0;
}

/*
 * Attaches the BPF program on sched_switch last, because waits begin there: the hook that takes the
 * stack of a wait must be attached before the first wait begins.
 */
static int offwake_attach(struct probe *probe)
{
	const struct offwake *skel = (const struct offwake *)probe->skeleton;
	int r = marks_attach(probe);

	if (r)
		return r;
	r = probe_follow(probe);
	if (r)
		return r;
	r = probe_attach_one(probe, skel->progs.on_waking);
	if (r)
		return r;
	r = switch_hook_attach(probe, skel->progs.on_sched_exit, skel->progs.on_finish_switch);
	if (r)
		return r;
	return probe_attach_one(probe, skel->progs.on_switch);
}

static void offwake_blind(const struct probe *probe, struct probe_status *out)
{
	out->blind[out->n_blind++] = "wakers of waits that are shorter than the minimum";
}

static bool offwake_is_enabled(const struct config *config)
{
	return config->offwake_enabled;
}

static int64_t offwake_min_wait(const struct config *config)
{
	return config->offwake_min_wait_ns;
}

static int64_t offwake_sample_below(const struct config *config)
{
	return config->offwake_sample_below_ns;
}

static uint64_t offwake_keys_max(const struct probe_options *options)
{
	return options->is_small ? PROBE_SMALL_KEYS : options->config->offwake_max_keys;
}

PROBE_SKELETON(offwake)

const struct probe_ops probe_offwake_ops = {
	.is_enabled = offwake_is_enabled,
	.min_wait = offwake_min_wait,
	.sample_below = offwake_sample_below,
	.keys_max = offwake_keys_max,
	.open = offwake_open,
	.configure = offwake_configure,
	.cut = offwake_cut,
	.attach = offwake_attach,
	.choose = switch_hook_choose,
	.hook = switch_hook_name,
	.blind = offwake_blind,
};
