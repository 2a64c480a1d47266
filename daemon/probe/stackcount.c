/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/probe/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bpf/layout.h"
#include "common/base.h"
#include "daemon/probe/libbpf_log.h"
#include "daemon/probe/multi_attach.h"
#include "daemon/probe/target.h"

#include "stackcount.skel.h"

/*
 * RING: size in bytes of the ring buffer, which is large because calls come with many different
 * stacks, and each streamed call is a record in it. SEEN: number of entries in the map of stacks
 * that were sent before.
 */
enum { RING = 2 << 20, SEEN = 16384 };

/*
 * Returns the time, in ns, that a CPU may spend on recording calls in each interval of
 * CALL_SLICE_NS. This is half of the interval if the budget is below 100 % of a CPU, else
 * UINT64_MAX (no limit).
 */
static uint64_t slice_ns(uint64_t budget_percent)
{
	return budget_percent < 100 ? CALL_SLICE_NS / 2 : UINT64_MAX;
}

static const enum call_kind call_kinds[] = {
	[TARGET_FUNCTION] = CALL_FUNCTION,
	[TARGET_TRACEPOINT] = CALL_TRACEPOINT,
	[TARGET_USER] = CALL_USER,
	[TARGET_USDT] = CALL_USER,
};
static const char *const hook_names[] = {
	[TARGET_FUNCTION] = "kprobe",
	[TARGET_TRACEPOINT] = "tp_btf",
	[TARGET_USER] = "uprobe",
	[TARGET_USDT] = "uprobe",
};
static const char *const multi_names[] = {
	[TARGET_FUNCTION] = "kprobe.multi",
	[TARGET_USER] = "uprobe.multi",
	[TARGET_USDT] = "uprobe.multi",
};

static bool is_multi(const struct probe *probe)
{
	const struct stackcount *skel = (const struct stackcount *)probe->skeleton;

	if (!skel)
		return false;
	switch (probe->options.targets->kind) {
	case TARGET_TRACEPOINT:
		return false;
	case TARGET_USER:
	case TARGET_USDT:
		return bpf_program__expected_attach_type(skel->progs.on_user_function) ==
		       MULTI_ATTACH_UPROBE;
	case TARGET_FUNCTION:
		break;
	}
	return bpf_program__expected_attach_type(skel->progs.on_function) == BPF_TRACE_KPROBE_MULTI;
}

/*
 * Returns the BPF program for tracepoint i. The names of these programs end with i in two
 * hexadecimal digits: on_tracepoint_1f for 31.
 */
static struct bpf_program *tracepoint_program(const struct probe *probe, size_t i)
{
	char name[32];

	snprintf(name, sizeof(name), "on_tracepoint_%02zx", i);
	return bpf_object__find_program_by_name(probe->object, name);
}

static int tracepoints_configure(struct probe *probe)
{
	const struct targets *targets = probe->options.targets;
	struct stackcount *skel = (struct stackcount *)probe->skeleton;
	struct bpf_program *program;
	size_t i;
	int r = 0;

	for (i = 0; i < targets->n && i < TRACEPOINTS_MAX && !r; i++) {
		program = tracepoint_program(probe, i);
		skel->rodata->tracepoint_ips[i] = targets->v[i].address;
		if (strcmp(targets->v[i].name, "sched_process_exec") == 0)
			skel->rodata->exec_tracepoint = (uint32_t)i;
		bpf_program__set_autoload(program, true);
		r = bpf_program__set_attach_target(program, 0, targets->v[i].name);
	}
	return r;
}

static int target_configure(struct probe *probe)
{
	struct stackcount *skel = (struct stackcount *)probe->skeleton;

	switch (probe->options.targets->kind) {
	case TARGET_TRACEPOINT:
		return tracepoints_configure(probe);
	case TARGET_USER:
	case TARGET_USDT:
		if (multi_attach_has_user())
			bpf_program__set_expected_attach_type(skel->progs.on_user_function,
							      MULTI_ATTACH_UPROBE);
		return bpf_program__set_autoload(skel->progs.on_user_function, true);
	case TARGET_FUNCTION:
		break;
	}
	if (multi_attach_has_kernel())
		bpf_program__set_expected_attach_type(skel->progs.on_function,
						      BPF_TRACE_KPROBE_MULTI);
	return bpf_program__set_autoload(skel->progs.on_function, true);
}

/* True if the kernel can trace the probe's targets in any way; if not, sets probe->reason. */
static bool has_hook(struct probe *probe)
{
	if (probe->options.targets->kind != TARGET_FUNCTION || multi_attach_has_functions())
		return true;
	probe_fail(probe, "%s", multi_attach_no_functions);
	return false;
}

static int stackcount_configure(struct probe *probe)
{
	const struct probe_options *options = &probe->options;
	struct stackcount *skel = (struct stackcount *)probe->skeleton;
	const struct probe_sizes sizes = { sizeof(struct sample_key), sizeof(struct sample_sums),
					   RING, SEEN };
	int r;

	if (!has_hook(probe))
		return -EOPNOTSUPP;
	probe_set_variables(probe, skel->rodata, RING);
	skel->rodata->call_kind = call_kinds[options->targets->kind];
	skel->rodata->streams = probe_kind_has(options->kind, PROBE_STREAMS);
	skel->bss->pace.every = 1;
	skel->bss->pace.slice_ns = slice_ns(options->config->stackcount_max_cpu);
	if (options->rate)
		skel->bss->pace.interval_ns = (uint64_t)NS_PER_S / options->rate;
	r = target_configure(probe);
	return r ? r : probe_prepare(probe, &sizes);
}

static int functions_attach(struct probe *probe)
{
	const struct targets *targets = probe->options.targets;
	const struct stackcount *skel = (const struct stackcount *)probe->skeleton;
	struct bpf_program *program = targets->kind == TARGET_FUNCTION
					      ? skel->progs.on_function
					      : skel->progs.on_user_function;
	char why[256] = "";
	int r = multi_attach_open(probe->options.broker, bpf_program__fd(program), targets,
				  is_multi(probe), &probe->functions, why, sizeof(why));

	if (r && why[0])
		probe_fail(probe, "%s", why);
	if (r && !libbpf_log_warning()[0])
		probe_fail_if_refused(probe, r);
	if (r)
		return r;
	probe->n_functions = multi_attach_attached(probe->functions);
	if (multi_attach_refused(probe->functions))
		probe_fail(probe, "%zu functions were refused: %s",
			   multi_attach_refused(probe->functions),
			   multi_attach_refused_names(probe->functions));
	return 0;
}

static int targets_attach(struct probe *probe)
{
	const struct targets *targets = probe->options.targets;
	size_t i;
	int r = 0;

	if (targets->kind != TARGET_TRACEPOINT)
		return functions_attach(probe);
	for (i = 0; i < targets->n && i < TRACEPOINTS_MAX && !r; i++)
		r = probe_attach_one(probe, tracepoint_program(probe, i));
	probe->n_functions = i;
	return r;
}

static int stackcount_attach(struct probe *probe)
{
	struct stackcount *skel = (struct stackcount *)probe->skeleton;
	int r = probe_follow(probe);

	if (!r)
		r = targets_attach(probe);
	if (!r)
		probe->pace = &skel->bss->pace;
	return r;
}

static void stackcount_detach(struct probe *probe)
{
	probe->functions = multi_attach_close(probe->functions);
}

static void stackcount_close(struct probe *probe)
{
	probe->pace = NULL;
}

static const char *stackcount_hook(const struct probe *probe)
{
	return (is_multi(probe) ? multi_names : hook_names)[probe->options.targets->kind];
}

static void stackcount_blind(const struct probe *probe, struct probe_status *out)
{
	out->blind[out->n_blind++] = "calls made while another one was being recorded on that CPU";
}

static uint64_t stackcount_keys_max(const struct probe_options *options)
{
	return options->config->stackcount_max_keys;
}

PROBE_SKELETON(stackcount)

const struct probe_ops probe_stackcount_ops = {
	.keys_max = stackcount_keys_max,
	.open = stackcount_open,
	.configure = stackcount_configure,
	.cut = stackcount_cut,
	.attach = stackcount_attach,
	.hook = stackcount_hook,
	.blind = stackcount_blind,
	.detach = stackcount_detach,
	.close = stackcount_close,
};
