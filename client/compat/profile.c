/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>

#include "client/compat/compat.h"
#include "common/base.h"

enum { GROUP_THREADS = 1, GROUP_STACKS, GROUP_RATE, HZ_DEFAULT = 49 };

static const struct compat_option options[] = {
	{ 'p', "pid", "P,..", "--pid", "these processes only", GROUP_THREADS, COMPAT_NATIVE },
	{ 'L', "tid", "T,..", "--tid", "these threads only", GROUP_THREADS, COMPAT_NATIVE },
	{ 'U', "user-stacks-only", NULL, "--user-stacks", "frames of programs only", GROUP_STACKS,
	  COMPAT_NATIVE },
	{ 'K', "kernel-stacks-only", NULL, "--kernel-stacks", "frames of the kernel only",
	  GROUP_STACKS, COMPAT_NATIVE },
	{ 'F', "frequency", "HZ", "--frequency", "samples a second and CPU (49)", GROUP_RATE,
	  COMPAT_NATIVE },
	{ 'c', "count", "PERIOD", "--count", "a sample each PERIOD ns of the CPU clock", GROUP_RATE,
	  COMPAT_NATIVE },
	{ 'd', "delimited", NULL, "--delimited", "-- between kernel and user, folded -", 0,
	  COMPAT_NATIVE },
	{ 'a', "annotations", NULL, "--annotations", "_[k] after names of the kernel", 0,
	  COMPAT_NATIVE },
	{ 'I', "include-idle", NULL, "--idle", "idle CPUs too", 0, COMPAT_NATIVE },
	{ 'f', "folded", NULL, "--folded", "one line a stack, for flame graphs", 0, COMPAT_NATIVE },
	{ 'C', "cpu", "CPU", "--cpu", "this CPU only", 4, COMPAT_NATIVE },
	{ 0, "stack-storage-size", "N", NULL, "taken, and not needed", 0, COMPAT_STORAGE },
	{ 0, "cgroupmap", "MAP", "stackctl record oncpu --cgroup PATH filters by cgroup", NULL, 0,
	  COMPAT_MISSING },
	{ 0, "mntnsmap", "MAP", "stackctl record oncpu --cgroup PATH filters by cgroup", NULL, 0,
	  COMPAT_MISSING },
	{ 0, "ebpf", NULL, NULL, NULL, 0, COMPAT_PROGRAMS },
	{ 'h', "help", NULL, NULL, "this text", 0, COMPAT_HELP },
};

static void print_value(FILE *out, const struct compat_entry *entry)
{
	fprintf(out, "%" PRId64, entry->value);
}

static void print_header(FILE *out, const struct compat_run *run)
{
	if (run->options.period_ns != WIRE_ABSENT)
		fprintf(out, "Sampling at every %" PRId64 " events of ", run->options.period_ns);
	else
		fprintf(out, "Sampling at %" PRId64 " Hertz of ", run->options.frequency);
	compat_print_threads(out, run, GROUP_THREADS);
	fprintf(out, " by %s stack", compat_stacks(run));
	if (run->options.cpus.n > 0)
		fprintf(out, " on CPU#%" PRId64, run->options.cpus.v[0]);
	for (size_t i = 1; i < run->options.cpus.n; i++)
		fprintf(out, ",%" PRId64, run->options.cpus.v[i]);
	compat_print_length(out, run);
}

/* Whatever rate the daemon is set to, this tool has its own. */
static int prepare(struct compat_run *run)
{
	if (run->options.frequency == WIRE_ABSENT && run->options.period_ns == WIRE_ABSENT)
		run->options.frequency = HZ_DEFAULT;
	return 0;
}

const struct compat_tool compat_profile = {
	.name = "profile",
	.probe = "oncpu",
	.unit = "samples of what ran on the CPUs",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.examples = "  stackctl profile             49 samples a second, until Ctrl-C\n"
		    "  stackctl profile -F 99       99 a second\n"
		    "  stackctl profile -c 1000000  one each millisecond\n"
		    "  stackctl profile 5           for 5 seconds\n"
		    "  stackctl profile -adf 5      folded, with marks\n"
		    "  stackctl profile -p 185      process 185 only\n",
	.value = compat_value_samples,
	.compare = compat_compare_value,
	.print_value = print_value,
	.print_header = print_header,
	.prepare = prepare,
};
