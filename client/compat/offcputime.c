/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/compat/compat.h"
#include "common/base.h"

enum { GROUP_THREADS = 1, GROUP_STACKS };

static const struct compat_option options[] = {
	{ 'p', "pid", "P,..", "--pid", "these processes only", GROUP_THREADS, COMPAT_NATIVE },
	{ 't', "tid", "T,..", "--tid", "these threads only", GROUP_THREADS, COMPAT_NATIVE },
	{ 'u', "user-threads-only", NULL, "--user-threads", "threads of programs only",
	  GROUP_THREADS, COMPAT_NATIVE },
	{ 'k', "kernel-threads-only", NULL, "--kernel-threads", "threads of the kernel only",
	  GROUP_THREADS, COMPAT_NATIVE },
	{ 'U', "user-stacks-only", NULL, "--user-stacks", "frames of programs only", GROUP_STACKS,
	  COMPAT_NATIVE },
	{ 'K', "kernel-stacks-only", NULL, "--kernel-stacks", "frames of the kernel only",
	  GROUP_STACKS, COMPAT_NATIVE },
	{ 'd', "delimited", NULL, "--delimited", "-- between kernel and user, folded -", 0,
	  COMPAT_NATIVE },
	{ 'f', "folded", NULL, "--folded", "one line a stack, for flame graphs", 0, COMPAT_NATIVE },
	{ 'v', "verbose", NULL, "--verbose", "raw addresses", 0, COMPAT_NATIVE },
	{ 's', "offset", NULL, "--offset", "offsets within functions", 0, COMPAT_NATIVE },
	{ 'i', "interval", "SECONDS", NULL, "print each so many seconds", 0, COMPAT_INTERVAL },
	{ 'T', "timestamp", NULL, NULL, "the time above what is printed", 0, COMPAT_TIMESTAMPS },
	{ 'm', "min-block-time", "US", "--min-block-time", "waits of at least that", 0,
	  COMPAT_NATIVE },
	{ 'M', "max-block-time", "US", "--max-block-time", "waits of at most that", 0,
	  COMPAT_NATIVE },
	{ 0, "state", "BITS", "--state", "waits in one of these states; 0 is running", 0,
	  COMPAT_NATIVE },
	{ 0, "stack-storage-size", "N", NULL, "taken, and not needed", 0, COMPAT_STORAGE },
	{ 0, "cgroupmap", "MAP", "stackctl record offcpu --cgroup PATH filters by cgroup", NULL, 0,
	  COMPAT_MISSING },
	{ 0, "mntnsmap", "MAP", "stackctl record offcpu --cgroup PATH filters by cgroup", NULL, 0,
	  COMPAT_MISSING },
	{ 0, "ebpf", NULL, NULL, NULL, 0, COMPAT_PROGRAMS },
	{ 'h', "help", NULL, NULL, "this text", 0, COMPAT_HELP },
};

static void print_header(FILE *out, const struct compat_run *run)
{
	fputs("Tracing off-CPU time (us) of ", out);
	compat_print_threads(out, run, GROUP_THREADS);
	fprintf(out, " by %s stack", compat_stacks(run));
	compat_print_length(out, run);
}

const struct compat_tool compat_offcputime = {
	.name = "offcputime",
	.probe = "offcpu",
	.unit = "us off the CPU by task and stack",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.examples = "  stackctl offcputime             all threads, until Ctrl-C\n"
		    "  stackctl offcputime 5           for 5 seconds\n"
		    "  stackctl offcputime -f 5        folded\n"
		    "  stackctl offcputime -m 1000     waits of 1 ms and more\n"
		    "  stackctl offcputime -Ti 5       each 5 seconds, with the time\n"
		    "  stackctl offcputime -p 185      process 185 only\n",
	.value = compat_value_waits,
	.compare = compat_compare_value,
	.print_value = compat_print_us,
	.print_header = print_header,
};
