/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/probe/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/layout.h"
#include "common/base.h"
#include "daemon/broker/broker.h"
#include "daemon/probe/multi_attach.h"
#include "daemon/probe/target.h"

#include "stackcount.skel.h"

/* Many stacks a window, of calls from everywhere; of those streamed a record each. */
enum { RING = 2 << 20, SEEN = 16384 };

/* A CPU's own guard: half of its time, where the budget is less than a whole one. */
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
	const struct stackcount *skel = probe->stackcount;

	switch (probe->options.targets->kind) {
	case TARGET_TRACEPOINT:
		return false;
	case TARGET_USER:
	case TARGET_USDT:
		return bpf_program__expected_attach_type(skel->progs.on_user_function) ==
		       PROBE_CALLS_UPROBE_MULTI;
	case TARGET_FUNCTION:
		break;
	}
	return bpf_program__expected_attach_type(skel->progs.on_function) == BPF_TRACE_KPROBE_MULTI;
}

/* The program of the tracepoint of that place, on_tracepoint_1f. */
static struct bpf_program *tracepoint_program(const struct probe *probe, size_t i)
{
	char name[32];

	snprintf(name, sizeof(name), "on_tracepoint_%02zx", i);
	return bpf_object__find_program_by_name(probe->object, name);
}

static int tracepoints_configure(struct probe *probe)
{
	const struct targets *targets = probe->options.targets;
	struct stackcount *skel = probe->stackcount;
	struct bpf_program *program;
	size_t i;
	int r = 0;

	for (i = 0; i < targets->n && i < TRACEPOINTS_MAX && !r; i++) {
		program = tracepoint_program(probe, i);
		skel->rodata->tracepoint_ips[i] = targets->v[i].address;
		bpf_program__set_autoload(program, true);
		r = bpf_program__set_attach_target(program, 0, targets->v[i].name);
	}
	return r;
}

static int target_configure(struct probe *probe)
{
	struct stackcount *skel = probe->stackcount;

	switch (probe->options.targets->kind) {
	case TARGET_TRACEPOINT:
		return tracepoints_configure(probe);
	case TARGET_USER:
	case TARGET_USDT:
		if (probe_calls_has_user_multi())
			bpf_program__set_expected_attach_type(skel->progs.on_user_function,
							      PROBE_CALLS_UPROBE_MULTI);
		return bpf_program__set_autoload(skel->progs.on_user_function, true);
	case TARGET_FUNCTION:
		break;
	}
	if (probe_calls_has_multi())
		bpf_program__set_expected_attach_type(skel->progs.on_function,
						      BPF_TRACE_KPROBE_MULTI);
	return bpf_program__set_autoload(skel->progs.on_function, true);
}

static int skeleton_configure(struct probe *probe)
{
	const struct probe_options *options = &probe->options;
	struct stackcount *skel = probe->stackcount;
	int r;

	skel->rodata->hash_seed = options->hash_seed;
	skel->rodata->call_kind = call_kinds[options->targets->kind];
	skel->rodata->streams = options->kind == PROBE_STACKSNOOP;
	skel->rodata->ring_wake_bytes = RING / 4;
	skel->rodata->ring_stack_bytes = RING - RING / 4;
	skel->bss->pace.every = 1;
	skel->bss->pace.slice_ns = slice_ns(options->config->budget_cpu);
	if (options->rate)
		skel->bss->pace.interval_ns = (uint64_t)NS_PER_S / options->rate;
	if (options->filter)
		memcpy(&skel->rodata->filter, options->filter, sizeof(*options->filter));
	r = target_configure(probe);
	return r ? r
		 : probe_prepare(probe, sizeof(struct sample_key), sizeof(struct sample_sums), RING,
				 SEEN);
}

static int functions_attach(struct probe *probe)
{
	const struct targets *targets = probe->options.targets;
	struct bpf_program *program = targets->kind == TARGET_FUNCTION
					      ? probe->stackcount->progs.on_function
					      : probe->stackcount->progs.on_user_function;
	int r = probe_calls_open(probe->options.broker, bpf_program__fd(program), targets,
				 is_multi(probe), &probe->calls, probe->reason,
				 sizeof(probe->reason));

	if (r)
		return r;
	probe->n_functions = probe_calls_attached(probe->calls);
	if (probe_calls_refused(probe->calls))
		probe_fail(probe, "%zu functions were refused: %s",
			   probe_calls_refused(probe->calls),
			   probe_calls_refused_names(probe->calls));
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

static int probe_try(struct probe *probe)
{
	int r;

	probe->stackcount = stackcount__open();
	if (!probe->stackcount)
		return -errno;
	probe->object = probe->stackcount->obj;
	r = skeleton_configure(probe);
	if (!r)
		r = stackcount__load(probe->stackcount);
	if (!r && !probe->stackcount->bss)
		r = -ENOMEM; /* libbpf goes on without its variables mapped */
	if (!r)
		r = probe_finish(probe);
	if (!r)
		r = probe_follow(probe);
	return r ? r : targets_attach(probe);
}

/* What a kernel without any hook for it cannot do at all, in words. */
static bool has_hook(struct probe *probe)
{
	if (probe->options.targets->kind != TARGET_FUNCTION || probe_calls_has_functions())
		return true;
	probe_fail(probe,
		   "this kernel lets no function of its own be traced (it has neither kprobes "
		   "nor fprobe): tracepoints (t:) and functions of programs (u:) can be");
	return false;
}

int probe_stackcount_open(struct probe *probe)
{
	const char *hook = hook_names[probe->options.targets->kind];
	int r;

	probe_warning_clear();
	if (!has_hook(probe))
		return -EOPNOTSUPP;
	r = probe_try(probe);
	if (!r) {
		probe->cut = &probe->stackcount->bss->cut;
		probe->pace = &probe->stackcount->bss->pace;
		return 0;
	}
	if (!probe_warning()[0] && (r == -EACCES || r == -EPERM))
		broker_refusal(probe->reason, sizeof(probe->reason));
	else if (!probe->reason[0])
		probe_fail(probe, "%s: %s", hook,
			   probe_warning()[0] ? probe_warning() : strerror(-r));
	probe_unload(probe);
	return r;
}

void probe_stackcount_detach(struct probe *probe)
{
	probe->calls = probe_calls_close(probe->calls);
}

void probe_stackcount_close(struct probe *probe)
{
	probe->pace = NULL;
	stackcount__destroy(probe->stackcount);
	probe->stackcount = NULL;
}

void probe_stackcount_status(const struct probe *probe, struct probe_status *out)
{
	out->hook = (is_multi(probe) ? multi_names : hook_names)[probe->options.targets->kind];
	out->blind[out->n_blind++] = "calls made while another one was being recorded on that CPU";
}
