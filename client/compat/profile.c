/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>

#include "client/compat/compat.h"
#include "common/base.h"

enum { GROUP_THREADS = 1, GROUP_STACKS, GROUP_RATE, HZ_DEFAULT = 49 };

static const struct compat_option options[] = {
	{ 'p', "pid", "P,..", "--pid",
	  "include only these processes, by process id (pid), such as 17,42", GROUP_THREADS,
	  COMPAT_NATIVE },
	{ 'L', "tid", "T,..", "--tid", "include only these threads, by thread id, such as 17,42",
	  GROUP_THREADS, COMPAT_NATIVE },
	{ 'U', "user-stacks-only", NULL, "--user-stacks",
	  "include only the user-space frames of each stack", GROUP_STACKS, COMPAT_NATIVE },
	{ 'K', "kernel-stacks-only", NULL, "--kernel-stacks",
	  "include only the kernel frames of each stack", GROUP_STACKS, COMPAT_NATIVE },
	{ 'F', "frequency", "HZ", "--frequency",
	  "take HZ samples a second on each CPU (default 49)", GROUP_RATE, COMPAT_NATIVE },
	{ 'c', "count", "PERIOD", "--count", "take a sample on each CPU every PERIOD nanoseconds",
	  GROUP_RATE, COMPAT_NATIVE },
	{ 'd', "delimited", NULL, "--delimited",
	  "put a line -- (with -f: a frame named -) between the kernel frames and the user "
	  "frames",
	  0, COMPAT_NATIVE },
	{ 'a', "annotations", NULL, "--annotations",
	  "append _[k] to the name of each kernel function", 0, COMPAT_NATIVE },
	{ 'I', "include-idle", NULL, "--idle", "also count samples of idle CPUs", 0,
	  COMPAT_NATIVE },
	{ 'f', "folded", NULL, "--folded",
	  "print each stack as one line, the format that programs read to draw flame graphs", 0,
	  COMPAT_NATIVE },
	{ 'C', "cpu", "CPU", "--cpu", "include only samples on the CPU with this number", 4,
	  COMPAT_NATIVE },
	{ 0, "stack-storage-size", "N", NULL,
	  "has no effect; accepted because the original tool has this option", 0, COMPAT_STORAGE },
	{ 0, "cgroupmap", "MAP", "stackctl record oncpu --cgroup PATH filters by cgroup", NULL, 0,
	  COMPAT_MISSING },
	{ 0, "mntnsmap", "MAP", "stackctl record oncpu --cgroup PATH filters by cgroup", NULL, 0,
	  COMPAT_MISSING },
	{ 0, "ebpf", NULL, NULL, NULL, 0, COMPAT_PROGRAMS },
	{ 'h', "help", NULL, NULL, "print this text", 0, COMPAT_HELP },
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

/* Sets the sampling rate to the tool's own default, whatever the default of the daemon is. */
static int prepare(struct compat_run *run)
{
	if (run->options.frequency == WIRE_ABSENT && run->options.period_ns == WIRE_ABSENT)
		run->options.frequency = HZ_DEFAULT;
	return 0;
}

const struct compat_tool compat_profile = {
	.name = "profile",
	.probe = "oncpu",
	.unit = "numbers of samples of what ran on the CPUs, by stack",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.examples = "  stackctl profile             49 samples a second, until Ctrl-C\n"
		    "  stackctl profile -F 99       99 a second\n"
		    "  stackctl profile -c 1000000  one every millisecond\n"
		    "  stackctl profile 5           for 5 seconds\n"
		    "  stackctl profile -adf 5      folded, kernel frames marked\n"
		    "  stackctl profile -p 185      only process 185\n",
	.value = compat_value_samples,
	.compare = compat_compare_value,
	.print_value = print_value,
	.print_header = print_header,
	.prepare = prepare,
};
