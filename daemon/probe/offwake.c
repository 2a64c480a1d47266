/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/probe/switch_hook.h"

#include <errno.h>
#include <string.h>

#include "bpf/layout.h"
#include "common/base.h"

#include "offwake.skel.h"

/* Stacks of waits and of wakers. */
enum { RING = 1 << 20, SEEN = 16384 };

static int skeleton_configure(struct probe *probe)
{
	const struct probe_options *options = &probe->options;
	struct offwake *skel = probe->offwake;
	int r;

	skel->rodata->hash_seed = options->hash_seed;
	skel->rodata->min_wait_ns = (uint64_t)options->min_wait_ns;
	skel->rodata->stack_hook = probe->hook;
	skel->rodata->ring_wake_bytes = RING / 4;
	skel->rodata->ring_stack_bytes = RING - RING / 4;
	if (options->filter)
		memcpy(&skel->rodata->filter, options->filter, sizeof(*options->filter));
	r = probe_prepare(probe, sizeof(struct wake_key), sizeof(struct wake_sums), RING, SEEN);
	if (!r)
		r = bpf_map__set_max_entries(skel->maps.sleepers,
					     (uint32_t)options->config->offcpu_max_threads);
	if (r)
		return r;
	bpf_program__set_autoload(skel->progs.on_sched_exit, probe->hook == HOOK_SCHED_EXIT);
	return bpf_program__set_autoload(skel->progs.on_finish_switch,
					 probe->hook == HOOK_FINISH_SWITCH);
}

/*
 * What ends first, so that no mark is left when it was entered before. Interrupts that are of one
 * kind of machine need not be there.
 */
static int marks_attach(struct probe *probe)
{
	const struct {
		struct bpf_program *program;
		const char *tracepoint;
		bool is_optional;
	} marks[] = {
		{ probe->offwake->progs.on_hrtimer_exit, "hrtimer_expire_exit", false },
		{ probe->offwake->progs.on_timer_exit, "timer_expire_exit", false },
		{ probe->offwake->progs.on_softirq_exit, "softirq_exit", false },
		{ probe->offwake->progs.on_irq_exit, "irq_handler_exit", false },
		{ probe->offwake->progs.on_irq_exit, "irq_work_exit", true },
		{ probe->offwake->progs.on_irq_exit, "call_function_exit", true },
		{ probe->offwake->progs.on_irq_exit, "call_function_single_exit", true },
		{ probe->offwake->progs.on_hrtimer_entry, "hrtimer_expire_entry", false },
		{ probe->offwake->progs.on_timer_entry, "timer_expire_entry", false },
		{ probe->offwake->progs.on_softirq_entry, "softirq_entry", false },
		{ probe->offwake->progs.on_irq_entry, "irq_handler_entry", false },
		{ probe->offwake->progs.on_irq_entry, "irq_work_entry", true },
		{ probe->offwake->progs.on_irq_entry, "call_function_entry", true },
		{ probe->offwake->progs.on_irq_entry, "call_function_single_entry", true },
	};
	size_t i;
	int r;

	for (i = 0; i < ARRAY_SIZE(marks); i++) {
		r = probe_attach_raw(probe, marks[i].program, marks[i].tracepoint);
		if (r && !marks[i].is_optional)
			return r;
	}
	probe_warning_clear();
	return 0;
}

/* sched_switch comes last: no wait is pending before the hook that takes its stack is there. */
static int probe_attach(struct probe *probe)
{
	struct offwake *skel = probe->offwake;
	int r = marks_attach(probe);

	if (!r)
		r = probe_follow(probe);
	if (!r)
		r = probe_attach_one(probe, skel->progs.on_waking);
	if (!r)
		r = probe_hook_attach(probe, skel->progs.on_sched_exit,
				      skel->progs.on_finish_switch);
	return r ? r : probe_attach_one(probe, skel->progs.on_switch);
}

static int probe_try(struct probe *probe)
{
	int r;

	probe->offwake = offwake__open();
	if (!probe->offwake)
		return -errno;
	probe->object = probe->offwake->obj;
	r = skeleton_configure(probe);
	if (!r)
		r = offwake__load(probe->offwake);
	if (!r && !probe->offwake->bss)
		r = -ENOMEM; /* libbpf goes on without its variables mapped */
	if (!r)
		r = probe_finish(probe);
	if (!r)
		r = probe_attach(probe);
	if (r) {
		probe_unload(probe);
		return r;
	}
	probe->cut = &probe->offwake->bss->cut;
	return 0;
}

int probe_offwake_open(struct probe *probe)
{
	return probe_hook_choose(probe, probe_try);
}

void probe_offwake_close(struct probe *probe)
{
	offwake__destroy(probe->offwake);
	probe->offwake = NULL;
}

void probe_offwake_status(const struct probe *probe, struct probe_status *out)
{
	out->hook = probe_hook_name(probe->hook);
	out->blind[out->n_blind++] = "who wakes waits shorter than the minimum";
}
