/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/compat/compat.h"
#include "common/base.h"

enum { GROUP_THREADS = 1, GROUP_STACKS };

static const struct compat_option options[] = {
	{ 'p', "pid", "P,..", "--pid",
	  "include only waits of these processes, by process id (pid), such as 17,42",
	  GROUP_THREADS, COMPAT_NATIVE },
	{ 't', "tid", "T,..", "--tid",
	  "include only waits of these threads, by thread id, such as 17,42", GROUP_THREADS,
	  COMPAT_NATIVE },
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
	  "put - between the kernel frames and the user frames", 0, COMPAT_NATIVE },
	{ 'f', "folded", NULL, "--folded",
	  "print each pair of stacks as one line, the format that programs read to draw flame "
	  "graphs",
	  0, COMPAT_NATIVE },
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
	{ 0, "ebpf", NULL, NULL, NULL, 0, COMPAT_PROGRAMS },
	{ 'h', "help", NULL, NULL, "print this text", 0, COMPAT_HELP },
};

/*
 * Returns how long a row's threads were blocked until the wakeup, in ns. The time from the wakeup
 * until a CPU was free is left out, as the waker does not cause it.
 */
static int64_t blocked_until_wakeup(const struct wire_row *row)
{
	int64_t open = row->open_ns == WIRE_ABSENT ? 0 : row->open_ns;

	if (compat_value_waits(row) <= 0 || row->blocked_ns == WIRE_ABSENT)
		return 0;
	return row->blocked_ns - open;
}

static void print_header(FILE *out, const struct compat_run *run)
{
	fprintf(out, "Tracing blocked time (us) by %s off-CPU and waker stack", compat_stacks(run));
	compat_print_length(out, run);
}

const struct compat_tool compat_offwaketime = {
	.name = "offwaketime",
	.probe = "offwake",
	.unit = "microseconds blocked, by stacks of the thread and its waker",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.examples = "  stackctl offwaketime            all threads, until Ctrl-C\n"
		    "  stackctl offwaketime 5          for 5 seconds\n"
		    "  stackctl offwaketime -fu 5      folded, programs only\n"
		    "  stackctl offwaketime -m 1000    only waits of 1 ms and more\n"
		    "  stackctl offwaketime -p 185     only process 185\n",
	.with_waker = true,
	.value = blocked_until_wakeup,
	.compare = compat_compare_value,
	.print_value = compat_print_us,
	.print_header = print_header,
};
