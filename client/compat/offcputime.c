/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/compat/compat.h"
#include "common/base.h"

enum { GROUP_THREADS = 1, GROUP_STACKS };

static const struct compat_option options[] = {
	{ 'p', "pid", "P,..", "--pid",
	  "include only these processes, by process id (pid), such as 17,42", GROUP_THREADS,
	  COMPAT_NATIVE },
	{ 't', "tid", "T,..", "--tid", "include only these threads, by thread id, such as 17,42",
	  GROUP_THREADS, COMPAT_NATIVE },
	{ 'u', "user-threads-only", NULL, "--user-threads",
	  "include only threads of programs, not those of the kernel", GROUP_THREADS,
	  COMPAT_NATIVE },
	{ 'k', "kernel-threads-only", NULL, "--kernel-threads",
	  "include only threads of the kernel", GROUP_THREADS, COMPAT_NATIVE },
	{ 'U', "user-stacks-only", NULL, "--user-stacks",
	  "include only the user-space frames of each stack", GROUP_STACKS, COMPAT_NATIVE },
	{ 'K', "kernel-stacks-only", NULL, "--kernel-stacks",
	  "include only the kernel frames of each stack", GROUP_STACKS, COMPAT_NATIVE },
	{ 'd', "delimited", NULL, "--delimited",
	  "put a line -- (with -f: a frame named -) between the kernel frames and the user "
	  "frames",
	  0, COMPAT_NATIVE },
	{ 'f', "folded", NULL, "--folded",
	  "print each stack as one line, the format that programs read to draw flame graphs", 0,
	  COMPAT_NATIVE },
	{ 'v', "verbose", NULL, "--verbose", "print the address of each frame, too", 0,
	  COMPAT_NATIVE },
	{ 's', "offset", NULL, "--offset",
	  "append to each function name the offset of the address within the function, as in "
	  "read+0x1c",
	  0, COMPAT_NATIVE },
	{ 'i', "interval", "SECONDS", NULL,
	  "every SECONDS seconds, print what was recorded since the last output", 0,
	  COMPAT_INTERVAL },
	{ 'T', "timestamp", NULL, NULL, "print the time of day above each output", 0,
	  COMPAT_TIMESTAMPS },
	{ 'm', "min-block-time", "US", "--min-block-time",
	  "include only waits that took US microseconds or more", 0, COMPAT_NATIVE },
	{ 'M', "max-block-time", "US", "--max-block-time",
	  "include only waits that took US microseconds or less", 0, COMPAT_NATIVE },
	{ 0, "state", "BITS", "--state",
	  "include only waits of threads in the task state with this number in the kernel, "
	  "such as 2 (D, uninterruptible)",
	  0, COMPAT_NATIVE },
	{ 0, "stack-storage-size", "N", NULL,
	  "has no effect; accepted because the original tool has this option", 0, COMPAT_STORAGE },
	{ 0, "cgroupmap", "MAP", "stackctl record offcpu --cgroup PATH filters by cgroup", NULL, 0,
	  COMPAT_MISSING },
	{ 0, "mntnsmap", "MAP", "stackctl record offcpu --cgroup PATH filters by cgroup", NULL, 0,
	  COMPAT_MISSING },
	{ 0, "ebpf", NULL, NULL, NULL, 0, COMPAT_PROGRAMS },
	{ 'h', "help", NULL, NULL, "print this text", 0, COMPAT_HELP },
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
	.unit = "microseconds off the CPU, by thread name and stack",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.examples = "  stackctl offcputime             all threads, until Ctrl-C\n"
		    "  stackctl offcputime 5           for 5 seconds\n"
		    "  stackctl offcputime -f 5        folded\n"
		    "  stackctl offcputime -m 1000     only waits of 1 ms and more\n"
		    "  stackctl offcputime -Ti 5       every 5 seconds, with the time\n"
		    "  stackctl offcputime -p 185      only process 185\n",
	.value = compat_value_waits,
	.compare = compat_compare_value,
	.print_value = compat_print_us,
	.print_header = print_header,
};
